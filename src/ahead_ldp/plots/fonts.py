"""Fonts that have the letters of a report: matplotlib's own, and others on this machine for letters that it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LAST = "Last Resort"  # a font that comes with matplotlib and has a box for every letter


@dataclass(frozen=True, slots=True)
class Fonts:
    """Families in the order in which a letter is looked for, their files, and the letters that are boxes in all."""

    families: tuple[str, ...]
    files: tuple[Path, ...]  # the same order
    bold: Path  # of the first family
    missing: str = ""


def fonts_for(letters: str) -> Fonts:
    """The font that matplotlib is set to (DejaVu Sans, unless it is told otherwise), and more as the letters need."""
    from matplotlib import font_manager

    normal, bold = font_manager.FontProperties(), font_manager.FontProperties(weight="bold")
    first = Path(font_manager.findfont(normal))
    families, files = [font_manager.FontProperties(fname=first).get_name()], [first]
    wanted = {letter for letter in letters if letter.isprintable() and not letter.isspace()} - _letters_of(first)
    if wanted:
        entries = font_manager.fontManager.ttflist
        regular = (e for e in entries if e.style == "normal" and e.weight in (400, "normal", "regular"))
        others = sorted({(entry.name, Path(entry.fname)) for entry in regular})
        known = {(name, file): _letters_of(file) & wanted for name, file in others if _LAST not in name}
        while wanted and known:
            (name, file), held = max(known.items(), key=lambda item: len(item[1] & wanted))  # the first of equals
            if not held & wanted:
                break
            families.append(name)
            files.append(file)
            wanted -= held
        for name, file in others:
            if wanted and _LAST in name:
                families.append(name)
                files.append(file)
    return Fonts(tuple(families), tuple(files), Path(font_manager.findfont(bold)), "".join(sorted(wanted)))


@contextmanager
def drawn_with(fonts: Fonts) -> Iterator[None]:
    """Pictures that are made and written meanwhile use these fonts, and are the same for the same numbers."""
    import matplotlib as mpl

    settings: Any = {"font.family": list(fonts.families), "svg.hashsalt": "ahead", "svg.fonttype": "path"}
    with mpl.rc_context({**settings, "text.parse_math": False}):  # a name such as $50 is no formula
        yield


def _letters_of(file: Path) -> set[str]:
    """The letters that a font has; none for one that cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        return {chr(code) for code in FT2Font(str(file)).get_charmap()}
    except (OSError, RuntimeError):
        return set()
