"""Each finding of the security review is a named test, in Python or in TypeScript."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FINDINGS = set(range(1, 20))


def test_every_finding_of_the_review_has_a_test_of_its_number():
    python = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    script = (path.read_text("utf-8") for path in (ROOT / "js" / "test").glob("*.ts"))
    named = [int(n) for text in python for n in re.findall(r"^def test_finding_(\d+)_\w+\(", text, re.MULTILINE)]
    named += [int(n) for text in script for n in re.findall(r'^test\("finding (\d+): ', text, re.MULTILINE)]
    assert set(named) == FINDINGS
