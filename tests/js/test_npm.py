"""The TypeScript client: its own tests, its size, and that the server serves what the sources build."""

import gzip
import json
import re
import shutil
import subprocess
import tarfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ahead_ldp.cli.remote import Remote
from ahead_ldp.device.laws import LAWS
from ahead_ldp.oracles import make_oracle
from ahead_ldp.service.server.config import Settings
from ahead_ldp.service.server.embedded import start
from ahead_ldp.service.store import open_store
from tests.needs import needed
from tools import release, system

JS = Path(__file__).resolve().parent.parent.parent / "js"
SERVED = JS.parent / "src" / "ahead_ldp" / "service" / "dashboard" / "static" / "participant.js"
LARGEST = 12_000  # bytes of the client, gzipped


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


@pytest.fixture(scope="module")
def packed(npm, tmp_path_factory):
    """The npm package, and its SHA-256 by its name."""
    folder = tmp_path_factory.mktemp("packed")
    digests = release.pack_client(folder)
    (file,) = folder.iterdir()
    return file, digests


def test_it_is_packed_with_all_that_it_names_and_nothing_else(packed, tmp_path):
    """Twice, with the same bytes: the client, its types, its licence; what package.json points to is there."""
    file, digests = packed
    assert digests == release.pack_client(tmp_path)
    assert list(release.strays([file])) == []
    with tarfile.open(file) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    about = json.loads((JS / "package.json").read_text("utf-8"))
    assert {about["main"], about["types"], "LICENSE", "README.md", "dist/node.js", "dist/participant.js"} <= inside
    assert about["version"] == release.version()
    assert "dependencies" not in about  # so nothing of others is in it, and no licence but ours


def test_the_packed_client_answers_as_its_readme_says(packed, tmp_path):
    """In an empty project, with the program of the README, against a server; a second run sends nothing new."""
    package = tmp_path / "node_modules" / "ahead-ldp"
    with tarfile.open(packed[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    package.parent.mkdir()
    (tmp_path / "package").rename(package)
    for place in re.findall(r'"(\./dist/[^"*]+)"', (package / "package.json").read_text("utf-8")):
        assert (package / place).is_file(), place
    program = re.search(r"```js\n(.*?)```", (package / "README.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "answer.mjs").write_text(program[1], "utf-8")
    with closing(open_store(f"{tmp_path}/npm.db", keys=f"{tmp_path}/keys")) as store:
        server = start(store, Settings(port=0, rate_per_s=0.0))
        draft = {
            "title": "Pay", "purpose": "To know.", "controller": "Somebody", "contact": "a@example.org",
            "attributes": ["pay=integer,0,159999,64"], "epsilon": "2", "method": {"name": "flat"}, "minimum": 100,
            "closing": {"kind": "manual"}, "retention_days": 1,
        }  # fmt: skip
        operator = Remote(server.url, server.service.add_token("operator", "me"))
        campaign = operator.post("/campaigns", draft)["campaign"]
        operator.post(f"/campaigns/{campaign}/open")
        for _ in range(2):
            words = [str(system.node()), "answer.mjs", server.url, campaign]
            found = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
            assert found.stdout == "acknowledged\n", found.stderr
        assert operator.get(f"/campaigns/{campaign}/progress")["groups"][0]["reports"] == 1
        server.stop()


def test_a_stray_file_of_the_package_is_found(tmp_path):
    file = tmp_path / "x.tgz"
    with tarfile.open(file, "w:gz") as archive:
        for name in ("package/dist/ahead.js", "package/package.json", "package/src/index.ts", "package/.npmrc"):
            archive.addfile(tarfile.TarInfo(name))
    assert list(release.strays([file])) == ["x.tgz: src/index.ts", "x.tgz: .npmrc"]
