"""`ahead campaign ...`: campaigns of a server, over HTTP."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from ahead_ldp import device
from ahead_ldp.cli import printing, rehearsing
from ahead_ldp.cli.options import Intervals, Queries, Text, Texts, argument, flag, group, option
from ahead_ldp.cli.printing import Shown, Table, between, percent
from ahead_ldp.cli.remote import Remote, find, problem_text
from ahead_ldp.cli.survey import ask_survey, survey_text
from ahead_ldp.engines import campaigns, layout
from ahead_ldp.protocol import session as sessions
from ahead_ldp.service.campaigns import export as exports
from ahead_ldp.service.campaigns import survey as surveys
from ahead_ldp.service.server import embedded

Name = Annotated[str, argument("CAMPAIGN", "Name of the campaign, or its digest, or the beginning of it.")]
Wave = Annotated[int | None, option("--wave", "N", "Number of the wave; left out, the latest.")]
_WAIT = "?wait=60"


def create(file: Annotated[Path, argument("FILE", "The campaign as .toml.")], *, remote: Remote) -> Shown:
    """Create a campaign as a draft, and print its digest."""
    try:
        draft = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"expected a campaign as TOML in {str(file)!r}: {error}") from None
    return _created(remote.post("/campaigns", draft))


def _created(created: dict[str, Any]) -> Shown:
    """The digest of a draft; beside it the plan and what comes next."""
    for line in _planned(created.get("plan")):
        printing.note(line)
    name = created.get("name", created["campaign"])
    printing.note(f"next: ahead campaign open {name}; or first ahead campaign rehearse {name}")
    return Shown(created, [created["campaign"]])


def _planned(plan: dict[str, Any] | None) -> Iterator[str]:
    """How the people expected are spread; a server of an earlier version does not say it."""
    if plan is None:
        yield "the text does not say how many people you expect (users): so nobody can tell whether they will be enough"
        return
    people = ", ".join(f"{wave['people']:,.0f}" for wave in plan["waves"])
    groups = f"{plan['groups']} group{'' if plan['groups'] == 1 else 's'}"
    yield f"{plan['users']:,} people expected, in {groups}; people per wave: {people}"
    if plan["left_out"]:
        yield f"since people are few: {plan['left_out']}"
    sure = printing.certainty(plan["chance"], plan["turnout"])
    yield f"chance that every group reaches its minimum of {plan['minimum']:,} reports: at least {sure}"


def new(
    *,
    survey: Annotated[Path | None, option("--survey", "FILE", "Questions in everyday words, as .toml.")] = None,
    keep: Annotated[
        Path | None, option("--keep", "FILE", "Write the answers of the guide to a new survey.toml.")
    ] = None,
    remote: Remote,
) -> Shown:
    """Create a draft from a survey file, or from a few questions.

    Without --survey the questions are asked here, one by one. The campaign's
    digest is printed.
    """
    if keep is not None and (survey is not None or keep.exists()):
        raise ValueError("expected --keep to be a new file, and no --survey beside it")
    if survey is None:
        remote.get("/campaigns")  # who is not let in should know it before answering the guide
    asked = ask_survey(input) if survey is None else surveys.read_survey(survey)
    if keep is not None:
        keep.write_text(survey_text(asked), "utf-8")
    return _created(remote.post("/campaigns", surveys.survey_draft(asked)))


def rehearse(
    what: Annotated[
        Text, argument("[WHAT]", "A survey or campaign as .toml, a record as .json, or a server's campaign.")
    ] = None,
    *,
    people: Annotated[int | None, option("--people", "N", "How many answer; left out, as many as expected.")] = None,
    asked: Annotated[Texts, option("--ask", "QUERY", 'Such as "pay > 50k"; repeat for more.')] = None,
    seed: Annotated[int | None, option("--seed", "S", "The same synthetic people again; their noise is new.")] = None,
    keep: Annotated[bool, flag("--keep", "Show the page of results in a browser until Ctrl-C.")] = False,
    remote: Remote,
) -> Shown:
    """Let made-up people answer a copy of a campaign.

    The answers are printed beside the truth. The copy is marked as a
    rehearsal. It runs on a server, store and keys of its own, and is deleted
    at the end. Without WHAT the questions are asked here, one by one.
    """
    return rehearsing.show(rehearsing.terms_of(what, remote), embedded.stage, people, seed, asked or [], keep)


def list_(*, remote: Remote) -> Shown:
    """List all campaigns."""
    listed = remote.get("/campaigns")
    lines = [f"{c['name']}  {c['state']}  {c['title']}\n    {c['campaign']}" for c in listed]
    return Shown(listed, lines or ["no campaigns yet: `ahead campaign new`"])


def open_(name: Name, *, remote: Remote) -> Shown:
    """Open the first wave of a draft."""
    return _changed(remote.post(f"{_at(remote, name)}/open"))


def approve(name: Name, *, remote: Remote) -> Shown:
    """Open the next wave of a campaign in review."""
    return _changed(remote.post(f"{_at(remote, name)}/approve"))


def close(name: Name, *, wave: Wave = None, remote: Remote) -> Shown:
    """Close a wave and count it."""
    return _changed(remote.post(f"{_wave_at(remote, name, wave)}/close{_WAIT}"))


def release(name: Name, *, wave: Wave = None, remote: Remote) -> Shown:
    """Count a wave that its screens hold."""
    return _changed(remote.post(f"{_wave_at(remote, name, wave)}/release{_WAIT}"))


def extend(
    name: Name,
    *,
    seconds: Annotated[int, option("--seconds", "S", "From now on.")],
    wave: Wave = None,
    remote: Remote,
) -> Shown:
    """Give the open wave a new deadline."""
    return _changed(remote.post(f"{_wave_at(remote, name, wave)}/extend", {"seconds": seconds}))


def void(
    name: Name,
    *,
    wave: Wave = None,
    part: Annotated[Text, option("--group", "G", "Give up only this group of a wave.")] = None,
    whole: Annotated[bool, flag("--whole", "Give up the whole campaign.")] = False,
    remote: Remote,
) -> Shown:
    """Give up a wave, one group of it, or the whole campaign.

    Reports are deleted uncounted.
    """
    if whole and (wave is not None or part is not None):
        raise ValueError("expected --whole alone, or --wave and --group")
    if whole:
        changed = remote.post(f"{_at(remote, name)}/void")
    elif part is not None:
        changed = remote.post(f"{_wave_at(remote, name, wave)}/void-group", {"group": part})
    else:
        changed = remote.post(f"{_wave_at(remote, name, wave)}/void{_WAIT}")
    return _changed(changed)


def finish(name: Name, *, remote: Remote) -> Shown:
    """End a campaign here: count what the open wave has, ask no more."""
    return _changed(remote.post(f"{_at(remote, name)}/finish{_WAIT}"))


def progress(name: Name, *, remote: Remote) -> Shown:
    """Say how many reports the latest wave has."""
    state = remote.get(f"{_at(remote, name)}/progress")
    if state["state"] == "draft":  # without waves and groups
        return Shown(state, [f"draft: nobody is asked yet; next: ahead campaign open {name}"])
    rows = [[g["group"], g["state"], f"{g['reports']:,}", f"{g['minimum']:,}"] for g in state["groups"]]
    held = ", being counted" if state["counting"] else ", held by its screens" if state["held"] else ""
    title = f"{state['state']}, wave {state['wave']}{held}: {state['reports']:,} reports"
    refused = [f"refused, {reason}: {count:,}" for reason, count in sorted(state["refused"].items())]
    notice = [state["notice"]] if state.get("notice") else []
    return Shown(state, [Table(title, ["group", "state", "reports", "minimum"], rows, left=2), *refused, *notice])


def results(name: Name, *, shown: Intervals, remote: Remote) -> Shown:
    """Print the distribution of every attribute, with intervals."""
    results = remote.get(f"{_at(remote, name)}/results" + "?intervals=model" * shown.model)
    return Shown(results, _results(results))


def _results(results: dict[str, Any]) -> Iterator[str | Table]:
    state = "all waves" if results["complete"] else f"{results['waves']} waves so far"
    yield f"{results['method']}, {results['people']:,} people, {state}"
    for attribute in results["attributes"]:
        rows = [_row(r, r[attribute["name"]], results) for r in attribute["histogram"]]
        yield Table(attribute["name"], _head("bucket", results), rows)
    for bound in results["manipulation"]["largest_shift_of_a_cell"]:
        shift = bound["one_group" if results["manipulation"]["group_can_be_chosen"] else "spread"]
        yield f"{100 * bound['fakes']:g} % fake reports could move one cell by up to {100 * shift:.1f} points"
    held = [s for wave in results["screens"] for s in wave["screens"] if s["z"] > wave["hold_z"]]
    yield f"screens: {len(held) or 'nothing'} beyond the threshold"
    yield from results["notes"]


def query(name: Name, queries: Queries, *, shown: Intervals, remote: Remote) -> Shown:
    """Answer range queries from the closed waves."""
    asked = {"queries": queries, **({"intervals": "model"} if shown.model else {})}
    answered = remote.post(f"{_at(remote, name)}/queries", asked)
    rows = [_row(r, r["query"], answered) for r in answered["queries"]]
    title = f"{answered['people']:,} people, {answered['waves']} waves"
    return Shown(answered, [Table(title, _head("query", answered), rows), *answered["notes"]])


def export(
    name: Name,
    *,
    out: Annotated[Path, option("--out", "DIR", "A new directory.")],
    parquet: Annotated[bool, flag("--parquet", "Reports as Parquet files.")] = False,
    remote: Remote,
) -> None:
    """Write everything as files, for a recount elsewhere."""
    before = os.umask(0o077)  # reports are for those alone who asked for them
    try:
        _export(name, out, parquet, remote)
    finally:
        os.umask(before)
    print(f"written: {out}")


def _export(name: str, out: Path, parquet: bool, remote: Remote) -> None:
    if out.exists() and any(out.iterdir()):
        raise ValueError(f"expected a new directory, got {str(out)!r}")
    at = _at(remote, name)
    record, chain = remote.read(at), remote.get(f"{at}/chain")
    _write(out / "campaign.json", record)
    _write(out / "schema.json", device.canonical_bytes(chain["campaign"]["schema"]))
    groups = []
    for wave in chain["waves"]:
        for asked in wave["groups"]:
            place = partial(layout.place, out, wave=int(wave["number"]), group=asked["group"])  # refuses other paths
            question = device.canonical_bytes(asked["question"])
            _write(place("questions"), question)
            if asked["tally"] is not None:
                _write(place("tallies"), device.canonical_bytes(asked["tally"]))
            chosen = quote(asked["group"], safe="")
            reports = remote.read(f"{at}/waves/{wave['number']}/reports?group={chosen}")
            if parquet:
                groups.append((question, reports))
            else:
                _write(place("reports", end="bin"), reports, end=b"")
    if parquet:
        exports.write_parquet(out / "reports", groups)
    if chain["state"] == "finished":
        _write_estimate(out)


def _write_estimate(root: Path) -> None:
    """The estimate of a campaign whose waves are all there, after every question was computed again."""
    try:
        session = campaigns.open_campaign(root)
    except (sessions.ReplayMismatch, ValueError) as error:  # another program's method: the files stand without it
        printing.note(f"the estimate is not written: {error}")
        return
    if session.estimate is not None:
        session.estimate.save(root / layout.ESTIMATE)


def _write(path: Path, data: bytes, end: bytes = b"\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data + end)


def _at(remote: Remote, name: str) -> str:
    return f"/campaigns/{find(remote, name)}"


def _wave_at(remote: Remote, name: str, wave: int | None) -> str:
    at = _at(remote, name)
    number = remote.get(f"{at}/state")["wave"] if wave is None else wave
    return f"{at}/waves/{number}"


def _head(label: str, answered: dict[str, Any]) -> list[str]:
    model = answered["intervals"] == "model"
    return [label, "share", *["std. error"] * model, f"{100 * answered['level']:g} % interval"]


def _row(answer: dict[str, Any], label: object, answered: dict[str, Any]) -> list[str]:
    """An answer; beside the model's interval stand the error that it rests on, and the mark of what it leaves out."""
    error, model = answer["standard_error"], answered["intervals"] == "model"
    share = percent(answer["share"]) + "*" * (model and answer["bias_not_included"])
    return [
        str(label),
        share,
        *["" if error is None else percent(error)] * model,
        between(answer["low"], answer["high"]),
    ]


def _changed(changed: dict[str, Any]) -> Shown:
    return Shown(changed, _became(changed))


def _became(changed: dict[str, Any]) -> Iterator[str]:
    """What a campaign or a wave is now; an error where the change was refused."""
    if changed.get("problem"):
        raise ValueError(problem_text(changed["problem"]))
    result = changed.get("result") or changed
    yield ", ".join(f"{key} {value}" for key, value in result.items() if value not in (None, [], {}))


campaign = group(
    "Create, run and query campaigns of a server.",
    new, rehearse, create, list_, open_, approve, close, release, extend, void, finish, progress, results, query,
    export,
)  # fmt: skip
