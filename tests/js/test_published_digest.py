"""The documentation publishes the digest and the sizes of what the server serves."""

import gzip
import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
STATIC = ROOT / "src" / "ahead_ldp" / "service" / "dashboard" / "static"
PAGE = (ROOT / "docs" / "browser.md").read_text("utf-8")


def test_the_digest_in_the_docs_is_that_of_the_file():
    listed = re.findall(r"^[0-9a-f]{64}$", PAGE, re.MULTILINE)
    assert listed == [hashlib.sha256((STATIC / "participant.js").read_bytes()).hexdigest()]


@pytest.mark.parametrize("name", ["participant.js", "page.css", "dashboard.js"])
def test_the_sizes_in_the_docs_are_measured(name):
    said = int(re.search(rf"^\| `{re.escape(name)}`[^|]*\| ([\d,]+) \|$", PAGE, re.MULTILINE)[1].replace(",", ""))
    assert said == pytest.approx(len(gzip.compress((STATIC / name).read_bytes(), 9)), rel=0.01)
