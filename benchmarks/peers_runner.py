"""One measurement of another package, in that package's environment: ``-m benchmarks.peers_runner PACKAGE ...``.

Arguments: package, mechanism, users, cells, epsilon, and how many of the reports are counted. Prints one JSON object.
Neither package has a client for many users, so it is called once for each.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.resident import peak, start_peak

Client = Callable[[int], Any]  # code -> report
Server = Callable[[list[Any]], Any]  # reports -> frequencies


@dataclass(frozen=True)
class Setting:
    """What is measured."""

    mechanism: str
    cells: int
    epsilon: float


def pure_ldp(setting: Setting) -> tuple[Client, Server]:
    """A client for one code and a server that takes report by report."""
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    # The package counts values from 1 unless it is told otherwise, which would move code 0 to the last cell.
    fixed: dict[str, Any] = {"epsilon": setting.epsilon, "d": setting.cells, "index_mapper": lambda code: code}
    if setting.mechanism == "oue":
        client, make_server = UEClient(use_oue=True, **fixed), lambda: UEServer(use_oue=True, **fixed)
    else:
        client, make_server = LHClient(use_olh=True, **fixed), lambda: LHServer(use_olh=True, **fixed)

    def count(reports: list[Any]) -> Any:
        server = make_server()
        for report in reports:
            server.aggregate(report)
        server.check_and_update_estimates()
        return np.asarray(server.estimated_data) / len(reports)

    return client.privatise, count


def multi_freq_ldpy(setting: Setting) -> tuple[Client, Server]:
    """A compiled client for one code and a server that takes the list of all reports."""
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    d, epsilon = setting.cells, setting.epsilon
    if setting.mechanism == "oue":
        return lambda code: UE_Client(code, d, epsilon, True), lambda reports: UE_Aggregator_MI(reports, epsilon, True)
    return lambda code: LH_Client(code, d, epsilon, True), lambda reports: LH_Aggregator_MI(reports, d, epsilon, True)


PACKAGES = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy}


def measure(package: str, setting: Setting, users: int, counted: int) -> dict[str, Any]:
    """CPU seconds of perturbation and of counting, and the memory that the reports took."""
    np.random.seed(1)  # noqa: NPY002 (the packages draw from the global generators)
    random.seed(1)
    client, count = PACKAGES[package](setting)
    weight = (np.arange(setting.cells) + 1.0) ** -1.1
    codes = np.random.default_rng(1).choice(setting.cells, size=users, p=weight / weight.sum()).tolist()
    count([client(code) for code in codes[:20]])  # imports and compiles what it needs
    base = start_peak()
    start = time.process_time()
    reports = [client(code) for code in codes]
    made = time.process_time()
    found = count(reports[:counted])
    done = time.process_time()
    truth = np.bincount(codes[:counted], minlength=setting.cells) / counted
    return {
        "package": package,
        "version": version(package),
        "mechanism": setting.mechanism,
        "perturb_s": made - start,
        "count_s": (done - made) * users / counted,
        "counted": counted,
        "peak_over_base_mb": peak() - base,
        "rmse": float(np.sqrt(np.mean((np.asarray(found) - truth) ** 2))),
    }


if __name__ == "__main__":
    package, mechanism, users, cells, epsilon, counted = sys.argv[1:]
    setting = Setting(mechanism, int(cells), float(epsilon))
    print(json.dumps(measure(package, setting, int(users), int(counted))))
