"""README.md as a package index shows it: there, a link into the repository needs the repository's address.

Hatchling runs this file by itself while it builds (pyproject.toml), also from the source archive, so it imports nothing
of `tools`. With an address `Source` under `[project.urls]`, links and pictures lead to the tag of this version there.
Without one, a link becomes its text, and pictures are left out, rather than lead nowhere.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?://|#)(?P<target>[^)\s]+)\)")


def shown(text: str, version: str, source: str | None = None) -> str:
    """The text with every relative link absolute, or without it where the repository has no address yet."""

    def there(match: re.Match[str]) -> str:
        picture, words, target = match["picture"], match["text"], match["target"]
        if source is None:
            return "" if picture else words
        return f"{picture}[{words}]({source.rstrip('/')}/{'raw' if picture else 'blob'}/v{version}/{target})"

    parts = FENCED.split(text)
    parts[::2] = [LINK.sub(there, part) for part in parts[::2]]
    return re.sub(r"\n{3,}", "\n\n", "".join(parts))


class PackagePage(MetadataHookInterface):
    """Gives the package its long description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add `readme`; hatchling calls this."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        source = metadata.get("urls", {}).get("Source")
        page = shown(text, metadata["version"], source)
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
