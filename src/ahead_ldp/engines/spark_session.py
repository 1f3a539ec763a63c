"""The Spark session that the engine runs on: the caller's, or one that is started here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")
LEAST_JAVA = 17
_EXTRA = "pip install 'ahead-ldp[batch,spark]'"
_JAVA = (
    f"expected Java {LEAST_JAVA} or newer for Spark, {{}}: install it (Debian and Ubuntu: apt install "
    "openjdk-17-jre-headless, or openjdk-21-jre-headless) or set JAVA_HOME, or use --engine local"
)


def spark_session(session: Any = None) -> Any:
    """The given session; else the one that is active; else a new one.

    A new one runs on this machine (``local[*]``), unless AHEAD_SPARK_MASTER names another master or spark-submit has
    chosen one. Python workers use this interpreter, unless PYSPARK_PYTHON names another.
    """
    if session is not None:
        return session
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ValueError(f"expected the extra spark for --engine spark: {_EXTRA}") from None
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.appName("ahead")
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # not under spark-submit
        master = os.environ.get("AHEAD_SPARK_MASTER", "local[*]")
        builder = builder.master(master)
        if master.startswith("local"):
            for key in ("spark.driver.host", "spark.driver.bindAddress"):
                builder = builder.config(key, "127.0.0.1")
            builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    try:
        started = builder.getOrCreate()
    except Exception as error:
        raise ValueError(_no_session(os.environ.get("AHEAD_SPARK_MASTER"), error)) from error
    started.sparkContext.setLogLevel("ERROR")
    return started


def _no_session(master: str | None, error: Exception) -> str:
    if master is None:
        return f"expected Spark to start, got {java_error(error)}"
    return f"expected a Spark master at AHEAD_SPARK_MASTER={master} that answers, got {java_error(error)}"


def check_java() -> str:
    """The Java that Spark will start, if it is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise ValueError(_JAVA.format(f"got no java in {home!r}" if home else "found none"))
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if version is None or int(version[1]) < LEAST_JAVA:
        raise ValueError(_JAVA.format(f"got {version[1] if version else 'no version'} from {java}"))
    return java


def java_error(error: Exception) -> str:
    """The first telling line of an error that Spark raised."""
    lines = [line.strip(" \t:") for line in str(error).splitlines() if line.strip(" \t:")]
    telling = [line for line in lines if "Caused by" in line or "Error" in line]
    thrown = [line for line in lines if "Exception" in line]
    return (telling or thrown or lines or [type(error).__name__])[0][:300]


def spark_map(function: Callable[[A], B], items: Sequence[A], session: Any = None) -> list[B]:
    """The results in order, a Spark task for each item. The function must give the same for the same item."""
    if not items:
        return []
    context = spark_session(session).sparkContext
    numbered = context.parallelize(list(enumerate(items)), len(items))
    results = numbered.map(lambda item: (item[0], function(item[1]))).collect()
    return [result for _, result in sorted(results, key=lambda item: item[0])]
