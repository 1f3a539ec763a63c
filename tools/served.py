"""Write the digest and the sizes of what the server serves into docs/browser.md: `python -m tools.served`."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STATIC = ROOT / "src" / "ahead_ldp" / "service" / "dashboard" / "static"
PAGE = ROOT / "docs" / "browser.md"


def main() -> None:
    text = PAGE.read_text("utf-8")
    digest = hashlib.sha256((STATIC / "participant.js").read_bytes()).hexdigest()
    text = re.sub(r"^[0-9a-f]{64}$", digest, text, flags=re.MULTILINE)
    for path in STATIC.iterdir():
        size = f"{len(gzip.compress(path.read_bytes(), 9)):,}"
        text = re.sub(rf"^(\| `{re.escape(path.name)}`[^|]*\| )[\d,]+ \|$", rf"\g<1>{size} |", text, flags=re.MULTILINE)
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
