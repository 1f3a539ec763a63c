"""Ten million reports and more through the batch path: memory does not grow with them, and the files are gone."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

MOST_MEMORY = 900  # MB, of writing too; hashes of ids are in memory up to 2^22
SIZES = ("1e6", "1e7", os.environ.get("AHEAD_SCALE", "3e7"))  # 1e8 takes 6 GB of disk


@pytest.mark.soak
def test_memory_is_bounded_and_time_is_linear_in_the_batch_path():
    found = []
    for size in SIZES:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.scale", "files", size], capture_output=True, text=True, check=True
        )
        found.append(json.loads(done.stdout))
    print(*found, sep="\n")
    assert all(one["memory"] < MOST_MEMORY for one in found)
    per_report = [one["count"]["cpu_s"] / one["n"] for one in found[1:]]
    assert max(per_report) < 1.5 * min(per_report)  # CPU seconds beside other work; 1.1 on idle cores
    assert not list(Path(tempfile.gettempdir()).glob("ahead-scale-*"))
