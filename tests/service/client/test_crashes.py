"""A device killed between any two writes never sends two different reports and never charges twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.client.fake import KEY, FakeServer, make_campaign

PROGRAM = Path(__file__).parent / "crashing.py"


def run(tmp_path, tier="none", enrolment="walk_in", mutant="", step=1):
    token = {"tier": "none"} if tier == "none" else KEY.token_record(tier)
    method = {"method": "flat"} if enrolment == "panel" else {}  # one group, so that its wave is the open one
    server = FakeServer(make_campaign(token=token, enrolment=enrolment, **method))
    base = f"/v1/campaigns/{server.name}"
    shown = {path: server.request("GET", path).body.decode() for path in (base, f"{base}/state", f"{base}/waves/1")}
    given = {"campaign": server.name, "shown": shown, "tier": tier, "mutant": mutant, "step": step}
    given["key"] = [str(x) for x in (KEY.p, KEY.q, KEY.d)]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("tier", "enrolment"), [("none", "walk_in"), ("none", "panel"), ("blind", "walk_in")])
def test_killed_at_every_point(tmp_path, tier, enrolment):
    found = run(tmp_path, tier, enrolment)
    assert found["killed"] > 30
    assert found["problems"] == []


@pytest.mark.parametrize("mutant", ["sends first", "forgets"])
def test_a_device_that_sends_before_it_writes_is_caught(tmp_path, mutant):
    """A report that is drawn again may be the same by chance, so there are several lives to catch it in."""

    def caught(life: int) -> bool:
        (tmp_path / str(life)).mkdir()
        found = run(tmp_path / str(life), mutant=mutant)
        return any("2 different reports" in problem for problem in found["problems"])

    assert any(caught(life) for life in range(12))
