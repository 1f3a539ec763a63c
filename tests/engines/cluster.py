"""A standalone Spark cluster: a master and workers, each on a host of its own, and a driver in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ahead_ldp.engines.spark_session import check_java
from tests.hosts import Hosts

_START_S = 90
_SMALL = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx300m")


class Cluster:
    """Host 1 has the master, hosts 2 and on a worker each. Everything they write is below ``folder``."""

    def __init__(self, folder: Path, workers: int = 2, cores: int = 2) -> None:
        self.folder, self.hosts = folder, Hosts(workers + 1)
        self.drivers: list[subprocess.Popen[str]] = []
        spec = importlib.util.find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        self.jars = Path(spec.origin).parent / "jars"
        self.master = f"spark://{self.hosts.address(1)}:7077"
        try:
            self._start(1, "org.apache.spark.deploy.master.Master", "--port", "7077", "--webui-port", "0")
            for host in range(2, workers + 2):
                own = ("--cores", cores, "--memory", "1g", "--webui-port", "0", "-d", folder / f"work{host}")
                self._start(host, "org.apache.spark.deploy.worker.Worker", *own, self.master)
            self._wait(workers)
        except BaseException:
            self.remove()
            raise

    def _start(self, host: int, kind: str, *words: object) -> None:
        command = [check_java(), *_SMALL, "-cp", f"{self.jars}/*", kind, "--host", self.hosts.address(host), *words]
        scala = next(self.jars.glob("spark-core_*.jar")).name.split("_")[1].split("-")[0]
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": self.hosts.address(host),
            "SPARK_HOME": str(self.jars.parent),
            "SPARK_SCALA_VERSION": scala,
        }
        with open(self.folder / f"host{host}.log", "ab") as log:
            self.hosts.start(host, command, stdout=log, stderr=log, env=environment, cwd=self.folder)

    def _wait(self, workers: int) -> None:
        until = time.monotonic() + _START_S
        while (self.folder / "host1.log").read_text(errors="replace").count("Registering worker") < workers:
            if time.monotonic() > until:
                raise TimeoutError((self.folder / "host1.log").read_text(errors="replace")[-2000:])
            time.sleep(0.1)

    def driver(self, *words: object, **settings: str) -> subprocess.Popen[str]:
        """`python -m tests.engines.cluster_job` with these words, on this cluster."""
        environment = {
            **os.environ,
            "AHEAD_SPARK_MASTER": self.master,
            "AHEAD_SPARK_DRIVER": self.hosts.address(0),
            "PYSPARK_PYTHON": sys.executable,
            **settings,
        }
        command = [sys.executable, "-m", "tests.engines.cluster_job", *map(str, words)]
        driver = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.drivers.append(driver)
        return driver

    def remove(self) -> None:
        """End everything, drivers and their children included."""
        for driver in self.drivers:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
            driver.communicate()
        self.hosts.remove()
