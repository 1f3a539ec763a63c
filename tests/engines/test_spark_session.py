"""Java and the session: found, or one clear error."""

import builtins

import pytest

from ahead_ldp.engines.perturb import map_items
from ahead_ldp.engines.spark_session import check_java, java_error, spark_session


def java(folder, says: str):
    """A program of this name that prints a version."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("says", "got"),
    [('openjdk version "11.0.2" 2019-01-15', "got 11"), ('java version "1.8.0_292"', "got 8"), ("?", "got no version")],
)
def test_an_old_java_is_refused(tmp_path, monkeypatch, says, got):
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, says)))
    with pytest.raises(ValueError, match=f"expected Java 17 or newer for Spark, {got}.*apt install openjdk-17-jre"):
        check_java()


def test_no_java_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"found none: install it .*openjdk-17-jre-headless"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ValueError, match="got no java in"):
        check_java()


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.1"])
def test_a_new_java_is_taken(tmp_path, monkeypatch, version):
    home = java(tmp_path, f'openjdk version "{version}" 2025-04-15')
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert check_java() == str(home / "bin" / "java")


def test_without_the_extra_it_says_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("pyspark"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ValueError, match=r"expected the extra spark for --engine spark: pip install"):
        spark_session()


@pytest.mark.parametrize(
    ("master", "says"),
    [
        (
            "spark://127.0.0.1:7999",
            "a Spark master at AHEAD_SPARK_MASTER=spark://127.0.0.1:7999 that answers, got java.lang.IllegalState",
        ),
        (None, "expected Spark to start, got java.lang.IllegalState"),
    ],
)
def test_a_spark_that_does_not_start_is_one_line(monkeypatch, master, says):
    """A master that is not there was a Python trace with a Java trace in it, of 200 lines."""
    from pyspark.sql import SparkSession

    def fail(builder):
        raise RuntimeError("An error occurred\n: java.lang.IllegalStateException: a stopped SparkContext\n at x")

    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: None))
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", fail)
    monkeypatch.setattr("ahead_ldp.engines.spark_session.check_java", lambda: "java")
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "python")
    if master is None:
        monkeypatch.delenv("AHEAD_SPARK_MASTER", raising=False)
    else:
        monkeypatch.setenv("AHEAD_SPARK_MASTER", master)
    with pytest.raises(ValueError, match=says) as error:
        spark_session()
    assert len(str(error.value).splitlines()) == 1


def test_a_given_session_is_used():
    mine = object()
    assert spark_session(mine) is mine


def test_the_telling_line_of_an_error():
    assert java_error(RuntimeError("Job aborted\n  Caused by: no such file\n more")) == "Caused by: no such file"
    assert java_error(RuntimeError("")) == "RuntimeError"


def square(x: int) -> int:
    return x * x


def test_items_are_mapped_in_order_by_any_number_of_processes():
    items = list(range(20))
    assert list(map_items(square, iter(items), 2)) == list(map_items(square, items)) == [x * x for x in items]
    assert list(map_items(square, [])) == []
