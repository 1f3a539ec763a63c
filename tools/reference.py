"""The parts of the reference that are made from the program: HTTP routes, metrics, problems, and modules.

A page marks such a part with `<!-- made: NAME -->` and `<!-- end: NAME -->`; `python -m tools.docs` fills it.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tools import docs

MADE = re.compile(r"(?P<start><!-- made: (?P<name>[a-z]+) -->\n).*?(?P<end><!-- end: (?P=name) -->)", re.DOTALL)
IMPORTED = re.compile(
    r"^(?:>>> )?(?:from (?P<home>ahead_ldp(?:\.\w+)+) import|import (?P<whole>ahead_ldp(?:\.\w+)+))", re.M
)


@cache
def openapi() -> dict[str, Any]:
    """The OpenAPI document of a server on an empty store."""
    from ahead_ldp.service.server.app import make_control
    from ahead_ldp.service.server.config import Settings
    from ahead_ldp.service.server.service import Service
    from ahead_ldp.service.store import open_store

    with TemporaryDirectory() as folder:
        store = open_store(f"{folder}/empty.db", keys=f"{folder}/keys")
        try:
            return make_control(Service(store, Settings())).openapi()
        finally:
            store.close()


def http() -> str:
    """One section for each group of routes, one subsection for each route."""
    document = openapi()
    groups: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            text = _route(method.upper(), path, operation, document)
            groups.setdefault(operation.get("tags", ["process"])[0], []).append(text)
    return "\n".join(f"## Routes: {group}\n\n" + "\n".join(routes) for group, routes in groups.items())


def _route(method: str, path: str, operation: dict[str, Any], document: dict[str, Any]) -> str:
    said = " ".join((operation.get("description") or operation.get("summary", "")).split())
    lines = [f"### {method} {path}", "", _sentence(said.replace("docs/wire.md has", "[The wire](../wire.md) has"))]
    if operation.get("security"):
        lines += ["", "Needs a bearer token."]
    if given := operation.get("parameters"):
        lines += ["", "| parameter | in | type | |", "| --- | --- | --- | --- |"]
        lines += [
            f"| `{p['name']}` | {p['in']} | {_type(p['schema'])} | {'required' if p.get('required') else 'optional'} |"
            for p in given
        ]
    if body := operation.get("requestBody"):
        lines += ["", f"Body: {_contents(body['content'])}."]
    lines += ["", "| status | answer |", "| --- | --- |"]
    for status, answer in sorted(operation["responses"].items()):
        told = "" if answer.get("description") == "Successful Response" else _cell(answer.get("description", ""))
        lines.append(f"| {status} | {': '.join(part for part in (told, _answer(answer)) if part) or 'done'} |")
    return "\n".join([*lines, ""])


def _answer(answer: dict[str, Any]) -> str:
    content = {kind: what for kind, what in answer.get("content", {}).items() if kind != "application/problem+json"}
    return _contents(content)


def _contents(content: dict[str, Any]) -> str:
    return ", ".join(
        f"`{kind}`" + (f" ({shape})" if (shape := _type(what.get("schema", {}))) else "")
        for kind, what in content.items()
    )


def _type(schema: dict[str, Any]) -> str:
    """A type in a few words: a link to its fields where the document has them."""
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {})) or 'anything'}"
    if "enum" in schema:
        return "one of " + ", ".join(f"`{one}`" for one in schema["enum"])
    limits = {
        "minimum": "at least",
        "maximum": "at most",
        "pattern": "as",
        "maxLength": "of at most this many characters:",
    }
    told = [
        f"{words} `{str(schema[key]).replace('|', chr(92) + '|')}`" for key, words in limits.items() if key in schema
    ]
    return " ".join([str(schema.get("type", "")), *told]).strip()


def records() -> str:
    """The fields of every body that the routes take or give."""
    sections = []
    for name, schema in sorted(openapi()["components"]["schemas"].items()):
        lines = [f"### {name}", "", _sentence(schema.get("description", "")), ""]
        if properties := schema.get("properties"):
            needed = set(schema.get("required", []))
            lines += ["| field | type | |", "| --- | --- | --- |"]
            lines += [
                f"| `{field}` | {_type(what) or 'anything'} | {'required' if field in needed else 'optional'} |"
                for field, what in properties.items()
            ]
        else:
            lines.append(_type(schema) or "Any JSON.")
        sections.append("\n".join([*lines, ""]))
    return "\n".join(sections)


def problems() -> str:
    """The kinds of problem documents."""
    from ahead_ldp.service.campaigns.problems import KINDS, problem_type

    lines = ["| kind | status | what it says |", "| --- | --- | --- |"]
    lines += [f"| `{kind}` | {status} | {title} |" for kind, (status, title) in sorted(KINDS.items())]
    lines += ["", f"The `type` of a problem is its kind with a prefix, for example `{problem_type('busy')}`."]
    return "\n".join([*lines, ""])


def metrics() -> str:
    """The metrics of a server process."""
    from ahead_ldp.service.server.metrics import Metrics

    lines = ["| metric | kind | labels | what it counts |", "| --- | --- | --- | --- |"]
    for name, metric in sorted((m._name, m) for m in vars(Metrics()).values() if hasattr(m, "_documentation")):
        shown = name + ("_total" if metric._type == "counter" else "")
        labels = ", ".join(f"`{label}`" for label in metric._labelnames)
        lines.append(f"| `{shown}` | {metric._type} | {labels} | {metric._documentation} |")
    return "\n".join([*lines, ""])


def documented_modules(root: Path) -> list[str]:
    """The modules that a Python block of any page imports from: what is shown is supported."""
    found: set[str] = set()
    for page in docs.pages(root):
        for block in docs.blocks(page.read_text("utf-8")):
            if block.info == "python":
                found |= {match["home"] or match["whole"] for match in IMPORTED.finditer(block.text)}
    return sorted(found)


def modules() -> str:
    """One section for each module that the pages import from, with its public names."""
    sections = []
    for name in documented_modules(docs.ROOT):
        options = "   :members:\n   :show-inheritance:"
        sections.append(f"## {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n{options}\n```\n")
    return "\n".join(sections)


def versions() -> str:
    """What has a version of its own, with the number that this program writes."""
    from ahead_ldp.device import frames, ledger_files, tokens
    from ahead_ldp.device.campaign import campaign_record, wave_record
    from ahead_ldp.engines import files
    from ahead_ldp.mechanisms import MECHANISMS
    from ahead_ldp.schema.attributes import as_schema
    from ahead_ldp.service.store.migrations import SCHEMA_VERSION

    schema = as_schema("age=integer,18,99")
    campaign = campaign_record(
        title="A", purpose="B", controller="C", contact="D", created="2026-01-01", schema=schema, epsilon="1",
        method=MECHANISMS.find("flat")(epsilon=1.0).record(), groups=[("all", 1)], minimum=1,
        closing={"kind": "manual"},
    )  # fmt: skip
    asked = {schema.record()["version"], wave_record("", 1, [])["version"]}
    rows = [
        ("an upload of reports", frames.VERSION, "the server refuses a version that it does not know"),
        ("a campaign's record", campaign["version"], "a device refuses a version that it does not know"),
        (
            "records of schemas and waves",
            ", ".join(map(str, sorted(asked))),
            "a device refuses a version that it does not know",
        ),
        ("a token's message", tokens.TOKEN_VERSION, "campaigns of version 1 go on; new ones have the newest"),
        ("the HTTP routes", "v1", "stands in every address; fields and routes may be added"),
        ("the tables of a store", SCHEMA_VERSION, "older ones are migrated on request; newer ones are refused"),
        ("a ledger", ledger_files.VERSION, "older ones are brought up when they are opened; newer ones are refused"),
        ("a file of reports", files.VERSION, "a version that is not known is refused"),
    ]
    lines = ["| what | version | what happens to another one |", "| --- | --- | --- |"]
    lines += [f"| {what} | {number} | {said} |" for what, number, said in rows]
    lines += ["", "| method | its questions | its estimate |", "| --- | --- | --- |"]
    found = {name: MECHANISMS.find(name) for name in sorted(MECHANISMS)}
    lines += [f"| `{name}` | {cls.version} | {cls.estimate_version} |" for name, cls in found.items()]
    return "\n".join([*lines, ""])


def band() -> str:
    """The place of the figure about epsilon, with the shares that its script draws."""
    from tools import figures

    shares = ",".join(f"{share:.4f}" for share in figures.shares().tolist())
    return f'<div id="epsilon-figure" data-shares="{shares}"></div>\n'


MAKERS: dict[str, Callable[[], str]] = {
    "band": band, "http": http, "records": records, "problems": problems, "metrics": metrics, "modules": modules,
    "versions": versions,
}  # fmt: skip


def filled(text: str) -> str:
    """The page with every made part as the program is now."""
    return MADE.sub(lambda part: f"{part['start']}\n{MAKERS[part['name']]()}\n{part['end']}", text)


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if not text or text.endswith((".", ":")) else text + "."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
