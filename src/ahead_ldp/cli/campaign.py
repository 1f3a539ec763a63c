"""`ahead campaign ...`: campaigns of a server, over HTTP."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ahead_ldp.cli import printing
from ahead_ldp.cli.remote import Remote
from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.service.campaigns.export import write_parquet

_WAIT = "?wait=60"


def create(server: str, token: str, file: Path, as_json: bool) -> None:
    """Create from a file of the fields of a draft."""
    try:
        draft = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"expected a campaign as TOML in {str(file)!r}: {error}") from None
    made = Remote(server, token).post("/campaigns", draft)
    printing.print_json(made) if as_json else print(made["campaign"])


def list_campaigns(server: str, token: str, as_json: bool) -> None:
    """Print all campaigns."""
    found = Remote(server, token).get("/campaigns")
    if as_json:
        printing.print_json(found)
        return
    printing.print_table(
        "campaigns", ["campaign", "state", "title"], [[c["campaign"], c["state"], c["title"]] for c in found], left=3
    )


def change(server: str, token: str, name: str, action: str, as_json: bool) -> None:
    """Ask for a change of the whole campaign."""
    _say(Remote(server, token).post(f"/campaigns/{quote(name)}/{action}"), as_json)


def change_wave(server: str, token: str, name: str, wave: int | None, action: str, as_json: bool) -> None:
    """Ask for a change of one wave and wait for it."""
    remote = Remote(server, token)
    _say(remote.post(f"{_wave(remote, name, wave)}/{action}{_WAIT}"), as_json)


def extend(server: str, token: str, name: str, wave: int | None, seconds: int, as_json: bool) -> None:
    """Give the wave a new deadline."""
    remote = Remote(server, token)
    _say(remote.post(f"{_wave(remote, name, wave)}/extend", {"seconds": seconds}), as_json)


def void(server: str, token: str, name: str, wave: int | None, group: str | None, whole: bool, as_json: bool) -> None:
    """Give up a campaign, a wave or a group."""
    if whole and (wave is not None or group is not None):
        raise ValueError("expected --whole alone, or --wave and --group")
    remote = Remote(server, token)
    if whole:
        _say(remote.post(f"/campaigns/{quote(name)}/void"), as_json)
    elif group is not None:
        _say(remote.post(f"{_wave(remote, name, wave)}/void-group", {"group": group}), as_json)
    else:
        _say(remote.post(f"{_wave(remote, name, wave)}/void{_WAIT}"), as_json)


def progress(server: str, token: str, name: str, as_json: bool) -> None:
    """Print the numbers of reports."""
    found = Remote(server, token).get(f"/campaigns/{quote(name)}/progress")
    if as_json:
        printing.print_json(found)
        return
    rows = [[g["group"], g["state"], f"{g['reports']:,}", f"{g['minimum']:,}"] for g in found["groups"]]
    held = ", held by its screens" if found["held"] else ""
    title = f"{found['state']}, wave {found['wave']}{held}: {found['reports']:,} reports"
    printing.print_table(title, ["group", "state", "reports", "minimum"], rows, left=2)
    for reason, count in sorted(found["refused"].items()):
        print(f"refused, {reason}: {count:,}")


def results(server: str, token: str, name: str, as_json: bool) -> None:
    """Print every attribute's distribution."""
    found = Remote(server, token).get(f"/campaigns/{quote(name)}/results")
    if as_json:
        printing.print_json(found)
        return
    state = "all waves" if found["complete"] else f"{found['waves']} waves so far"
    print(f"{found['method']}, {found['people']:,} people, {state}")
    for attribute in found["attributes"]:
        rows = [_row(r, r[attribute["name"]]) for r in attribute["histogram"]]
        printing.print_table(attribute["name"], ["bucket", "share", "std. error", "interval"], rows)
    for bound in found["manipulation"]["largest_shift_of_a_cell"]:
        shift = bound["one_group" if found["manipulation"]["group_can_be_chosen"] else "spread"]
        print(f"{100 * bound['fakes']:g} % fake reports could move one cell by up to {100 * shift:.1f} points")
    held = [s for wave in found["screens"] for s in wave["screens"] if s["z"] > wave["hold_z"]]
    print(f"screens: {len(held)} beyond the threshold" if held else "screens: nothing beyond the threshold")
    for text in found["notes"]:
        print(text)


def query(server: str, token: str, name: str, queries: Sequence[str], as_json: bool) -> None:
    """Print answers to queries."""
    found = Remote(server, token).post(f"/campaigns/{quote(name)}/queries", {"queries": list(queries)})
    if as_json:
        printing.print_json(found)
        return
    rows = [_row(r, r["query"]) for r in found["queries"]]
    title = f"{found['people']:,} people, {found['waves']} waves"
    printing.print_table(title, ["query", "share", "std. error", f"{100 * found['level']:g} % interval"], rows)
    for text in found["notes"]:
        print(text)


def export(server: str, token: str, name: str, out: Path, parquet: bool) -> None:
    """Write everything of a campaign as files, in the layout of a collected run; reports also as Parquet if asked."""
    remote, at = Remote(server, token), f"/campaigns/{quote(name)}"
    if out.exists() and any(out.iterdir()):
        raise ValueError(f"expected a new directory, got {str(out)!r}")
    record = remote.read(at)
    chain = remote.get(f"{at}/chain")
    _write(out / "campaign.json", record)
    _write(out / "schema.json", canonical_bytes(chain["campaign"]["schema"]))
    groups = []
    for wave in chain["waves"]:
        for group in wave["groups"]:
            place = f"{wave['number']}/{group['group']}"
            _write(out / "questions" / f"{place}.json", canonical_bytes(group["question"]))
            if group["tally"] is not None:
                _write(out / "tallies" / f"{place}.json", canonical_bytes(group["tally"]))
            reports = remote.read(f"{at}/waves/{wave['number']}/reports?group={quote(group['group'], safe='')}")
            if parquet:
                groups.append((canonical_bytes(group["question"]), reports))
            else:
                _write(out / "reports" / f"{place}.bin", reports, end=b"")
    if parquet:
        write_parquet(out / "reports", groups)
    print(f"written: {out}")


def _write(path: Path, data: bytes, end: bytes = b"\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data + end)


def _wave(remote: Remote, name: str, wave: int | None) -> str:
    number = remote.get(f"/campaigns/{quote(name)}/state")["wave"] if wave is None else wave
    return f"/campaigns/{quote(name)}/waves/{number}"


def _row(answer: dict[str, Any], label: Any) -> list[str]:
    mark = "*" if answer["bias_not_included"] else ""
    between = f"{100 * answer['low']:.2f} % to {100 * answer['high']:.2f} %"
    error = answer["standard_error"]
    return [
        str(label),
        f"{100 * answer['share']:.2f} %{mark}",
        "" if error is None else f"{100 * error:.2f} %",
        between,
    ]


def _say(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        printing.print_json(found)
        return
    if found.get("problem"):
        raise ValueError(": ".join(filter(None, [found["problem"]["title"], found["problem"].get("detail")])))
    result = found.get("result") or found
    print(", ".join(f"{key} {value}" for key, value in result.items() if value not in (None, [], {})))
