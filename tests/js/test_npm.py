"""The TypeScript client: its own tests, its size, and that the server serves what the sources build."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ahead_ldp.device.laws import LAWS
from ahead_ldp.oracles import make_oracle
from tests.needs import needed
from tools import system

JS = Path(__file__).resolve().parent.parent.parent / "js"
SERVED = JS.parent / "src" / "ahead_ldp" / "service" / "dashboard" / "static" / "participant.js"
LARGEST = 10_000  # bytes of the client, gzipped


@pytest.fixture(scope="module")
def npm(tmp_path_factory):
    """A copy of js/ with its locked packages, and a way to run npm scripts in it; the shared vectors lie beside it."""
    program, environment = needed(system.npm(), "Node 20 or newer with npm", f"pip install '{system.NODE}'")
    needed((JS / "node_modules" / ".lock-digest").exists(), "node_modules of js/", "python -m tools.system")
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(JS, root / "js", ignore=shutil.ignore_patterns("node_modules", "dist", "build"))
    (root / "js" / "node_modules").symlink_to(JS / "node_modules")
    (root / "tests").symlink_to(JS.parent / "tests")
    (root / SERVED.relative_to(JS.parent).parent).mkdir(parents=True)

    def run(*arguments):
        command = [program, *arguments]
        found = subprocess.run(command, cwd=root / "js", env=environment, capture_output=True, text=True)
        assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]
        return found.stdout

    run.root = root
    return run


@pytest.fixture(scope="module")
def built(npm):
    output = npm("test", "--loglevel=error")
    assert "# fail 0" in output, output[-4000:]
    return npm.root


def test_its_own_tests_pass_and_the_page_is_what_the_sources_build(built):
    assert (built / SERVED.relative_to(JS.parent)).read_bytes() == SERVED.read_bytes(), "run: npm run build in js/"


def test_the_client_is_small(built):
    size = len(gzip.compress((built / "js" / "dist" / "ahead.js").read_bytes(), 9))
    assert size < LARGEST


@pytest.mark.parametrize("name", sorted(LAWS))
def test_reports_of_both_clients_follow_one_law(built, name):
    """2,000 reports drawn by Node with the platform's own randomness, counted by the oracle that counts Python's.

    The mean of each count is within 5 standard deviations of what the law says; a coin that is 30 % off is not.
    """
    n, cells, code = 2000, 12, 3
    law = LAWS[name].make("1", cells)
    script = f"""
      import {{ lawFrom }} from "{(built / "js" / "dist" / "laws.js").as_uri()}";
      import {{ SystemWords }} from "{(built / "js" / "dist" / "words.js").as_uri()}";
      const law = lawFrom({json.dumps(law.record())}); const words = new SystemWords(); const out = [];
      for (let i = 0; i < {n}; i++) out.push(Buffer.from(law.draw({code}, words)).toString("hex"));
      console.log(out.join("\\n"));
    """
    node = str(system.node())
    found = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    reports = [bytes.fromhex(line) for line in found.stdout.split()]
    for report in reports[:50]:
        law.check_payload(report)
    expected, deviation = outcome_law(law, code, n)
    counts = count_outcomes(law, reports)
    for outcome, mean in expected.items():
        assert abs(counts.get(outcome, 0) - mean) <= 5 * deviation[outcome] + 1, (name, outcome)


def outcome_law(law, code, n):
    """Expected counts of some outcomes and their standard deviations, from the oracle's exact probabilities."""
    oracle = make_oracle(law.name, "1", law.cells)
    people = np.zeros(law.cells, np.int64)
    people[code] = n
    rng = np.random.default_rng(7)
    runs = np.stack([oracle.simulate(people, rng).counts for _ in range(400)]).astype(float)
    mean, deviation = runs.mean(axis=0), runs.std(axis=0, ddof=1)
    return dict(enumerate(mean)), dict(enumerate(np.maximum(deviation, 1.0)))


def count_outcomes(law, reports):
    oracle = make_oracle(law.name, "1", law.cells)
    array = np.frombuffer(b"".join(reports), np.uint8).reshape(len(reports), -1)
    return dict(enumerate(oracle.tally(array).counts.tolist()))
