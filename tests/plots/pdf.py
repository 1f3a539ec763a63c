"""The text of a PDF as a reader copies it: each string of a page through the table from glyphs to letters."""

import re
import zlib


def pdf_text(file: bytes) -> str:
    """All text of all pages, a string a line."""
    streams = []
    for head, body in re.findall(rb"<<([^>]*/Length \d+[^>]*)>>\s*stream\r?\n(.*?)\r?\nendstream", file, re.DOTALL):
        streams.append(zlib.decompress(body) if b"FlateDecode" in head else body)
    tables = dict(enumerate(_letters(s) for s in streams if b"beginbfchar" in s or b"beginbfrange" in s))
    lines = []
    for stream in streams:
        if b" Tf" not in stream or b"BT" not in stream:
            continue
        for font, text in re.findall(rb"/F(\d+) [\d.]+ Tf|\(((?:\\.|[^\\)])*)\)", stream, re.DOTALL):
            if font:
                table = tables[int(font) - 1]
            else:
                raw = re.sub(rb"\\(.)", lambda m: {b"r": b"\r", b"n": b"\n"}.get(m[1], m[1]), text, flags=re.DOTALL)
                lines.append("".join(table.get(raw[i : i + 2], "?") for i in range(0, len(raw), 2)))
    return "\n".join(lines)


def _letters(stream: bytes) -> dict[bytes, str]:
    found = {}
    for code, letters in re.findall(rb"<([0-9A-Fa-f]{4})> <([0-9A-Fa-f]+)>", stream):
        found[bytes.fromhex(code.decode())] = bytes.fromhex(letters.decode()).decode("utf-16-be")
    return found
