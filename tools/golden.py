"""Golden files: what one version records and answers, kept so that later versions can be held to it.

    python -m tools.golden tests/golden/LABEL      write a new set, into a new folder
    python -m tools.golden FOLDER --only estimates also runs, batch, service, programs

Only what outlives a reorganisation is used: the names of `ahead_ldp` itself, the commands, and HTTP. What people send
to the service comes from the client, whose names are imported in one place below. `tests/golden` reads the sets.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import math
import os
import platform
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

import ahead_ldp
from ahead_ldp.device.ledger import Ledger

# The people's side. Where these names move, only these lines follow.
from ahead_ldp.service.client import Client, HttpTransport, IssuerClient, OwnerPolicy
from ahead_ldp.service.client.crowd import Crowd
from ahead_ldp.service.client.views import fetch_campaign, fetch_wave

Columns = dict[str, NDArray[Any]]
Told = dict[str, Any]

# Estimates: every method, from simulations with a fixed seed.

PEOPLE = 6000
ONE = ["pay=real,0,100,64"]
WIDE = ["steps=integer,0,25599,256"]
BORN = ["born=date,1960-01-01,2009-12-31,48,missing=cell"]
TOWN = ["town=nominal,Ulm|Bonn|Kiel|Jena|Trier|Hof|Celle|Gera|Worms|Suhl|Fulda|Soest"]
TWO = ["pay=real,0,100,32", "age=integer,18,81,32"]
THREE = ["pay=real,0,100,16", "age=integer,18,81,16", "hour=integer,0,7"]
MIXED = [
    "born=date,1960-01-01,2009-12-31,24,missing=cell",
    "colour=nominal,red|green|blue|grey",
    "size=category,S|M|L|XL",
]

QUERIES = {
    "one": ["pay in 10..20", "pay >= 30", "pay <= 12.5", "pay in 17.3..61.9"],
    "wide": ["steps in 0..4999", "steps >= 12000", "steps in 7350..7449", "steps <= 20001"],
    "born": ["born in 1970-01-01..1979-12-31", "born missing", "born <= 1984-06-15", "born not missing"],
    "town": ["town in {Ulm, Bonn}", "town = Soest", "town in {Kiel, Jena, Trier, Worms}"],
    "two": ["pay in 10..30 and age in 30..49", "pay >= 40", "age <= 41", "pay in 17.3..61.9 and age >= 52"],
    "three": ["pay in 10..30 and age in 30..49", "pay <= 25 and hour in 2..5", "age >= 50 and hour <= 3 and pay >= 20"],
    "mixed": [
        "born in 1975-01-01..1994-12-31 and colour in {red, blue}",
        "born missing and size = M",
        "size in M..L",
        "colour = grey and size <= M and born <= 1990-12-31",
    ],
}
SCHEMAS = {"one": ONE, "wide": WIDE, "born": BORN, "town": TOWN, "two": TWO, "three": THREE, "mixed": MIXED}
EPSILONS = {"one": "1", "wide": "0.5", "born": "2", "town": "0.5", "two": "1", "three": "2", "mixed": "2"}
OTHER_EPSILON = {"0.5": "1", "1": "2", "2": "0.5"}  # for the settings that are not the default
ORDERED: dict[str, tuple[list[Any], list[Any] | None, bool]] = {  # points, borders and whether there is a mean
    "pay": ([5, 12.5, 40, 99], [0, 10, 20, 40, 100], True),
    "steps": ([0, 4999, 10049, 20000], [0, 3000, 9000, 25599], True),
    "age": ([18, 30, 47, 80], [18, 30, 45, 81], True),
    "hour": ([0, 3, 6], [0, 3, 7], True),
    "born": (["1965-05-05", "1980-01-01", "1999-12-31"], ["1960-01-01", "1980-01-01", "2009-12-31"], True),
    "size": (["S", "L"], None, False),
}
OTHERWISE = {"paper": ("one", "two", "three"), "strong": ("one",)}  # which shapes other settings are tried on
TOO_SLOW = {("wide", "hio")}  # a second and a half for its errors; hh has the same tree
LEVELS = [0.1, 0.25, 0.5, 0.9]
MODEL = ("--intervals", "model")  # the intervals that are kept: a method's own, which stay what they were


@dataclass(frozen=True, slots=True)
class Case:
    """One estimate: a population, a method and its settings, all that a seed makes repeatable."""

    shape: str
    method: str
    settings: str = "default"
    epsilon: str = ""
    choices: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        told = "".join(f"-{key}={value}" for key, value in self.choices.items())
        return f"{self.shape}-{self.method}-{self.settings}{told}"

    @property
    def seed(self) -> int:
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:4], "big")


CHOICES: list[tuple[str, str, dict[str, Any]]] = [
    *(("one", "flat", {"oracle": oracle}) for oracle in ("grr", "oue", "olh", "ss", "hrr", "sue")),
    ("one", "flat", {"non_negative": False}),
    ("one", "ahead", {"fanout": 4, "tested": "norm_sub", "stopped": "retested", "oracle": "best"}),
    ("two", "ahead", {"scale": 0.5, "oracle": "olh"}),
    ("three", "lle", {"combine": "weighted_update", "fanout": 3, "stopped": "retested"}),
    ("one", "adaptive", {"estimator": "smooth", "waves": 2}),
    ("wide", "adaptive", {"shifts": 2, "scales": 3, "oracle": "olh", "finest": 0.2}),
    ("two", "fused", {"waves": 2, "bins": 16, "smoothness": 3, "single": 0.5}),
    ("three", "fused", {"fineness": 0.8}),
    ("one", "hh", {"fanout": 2, "oracle": "hrr", "non_negative": False}),
    ("two", "hio", {"fanout": 4, "consistent": False, "non_negative": False}),
    ("two", "tdg", {"oracle": "best", "rounding": "exact"}),
    ("three", "hdg", {"update": "complement", "rounding": "exact"}),
    ("three", "calm", {"theta": 0.05}),
    ("one", "sw", {"smooth": True, "tolerance": 0.0001}),
    ("two", "pripl", {"segments": 8, "slots": 10}),
    ("one", "adaptive", {"users": 700}),
    ("wide", "adaptive", {"users": 1300, "group_people": 40}),
    ("two", "fused", {"users": 1000}),
    ("three", "fused", {"users": 1100}),
    ("mixed", "fused", {"users": 3000, "group_people": 100}),
]


def cases() -> Iterator[Case]:
    """Every registered method on everything it takes; other settings where they are others than the default."""
    for name, cls in ahead_ldp.MECHANISMS.items():
        for shape, texts in SCHEMAS.items():
            if cls.most_attributes is not None and len(texts) > cls.most_attributes:
                continue
            if (cls.ordered_only and shape in ("born", "town", "mixed")) or (shape, name) in TOO_SLOW:
                continue
            yield Case(shape, name, "default", EPSILONS[shape])
            for settings in ("paper", "strong"):
                case = Case(shape, name, settings, OTHER_EPSILON[EPSILONS[shape]])
                if shape in OTHERWISE[settings] and _differs(case):
                    yield case
    for shape, method, choices in CHOICES:
        yield Case(shape, method, "chosen", EPSILONS[shape], choices)


def _differs(case: Case) -> bool:
    if not hasattr(ahead_ldp.MECHANISMS[case.method], case.settings):
        return False
    plain = ahead_ldp.make_mechanism(case.method, SCHEMAS[case.shape], case.epsilon, PEOPLE)
    return mechanism(case).record() != plain.record()


def mechanism(case: Case) -> ahead_ldp.Mechanism:
    """The method of a case with its settings."""
    texts = SCHEMAS[case.shape]
    if case.settings != "strong":
        paper = case.settings == "paper"
        choices = {"users": PEOPLE, **case.choices}
        return ahead_ldp.make_mechanism(case.method, texts, case.epsilon, paper=paper, **choices)
    cls: Any = ahead_ldp.MECHANISMS[case.method]
    try:
        return cls.strong(epsilon=case.epsilon, users=PEOPLE)
    except TypeError:  # plans without the number of people
        return cls.strong(epsilon=case.epsilon)


def population(shape: str) -> Columns:
    """People of all attributes of a shape, some of them without a date of birth."""
    rng = np.random.default_rng(20_211_115)
    pay = np.minimum(rng.lognormal(3.0, 0.6, PEOPLE), 99.9)
    age = np.clip(18 + 0.6 * pay + rng.normal(12, 9, PEOPLE), 18, 81).astype(int)
    born = np.datetime64("1960-01-01") + np.clip(rng.beta(2, 3, PEOPLE) * 18_262, 0, 18_261).astype("timedelta64[D]")
    born = np.where(rng.random(PEOPLE) < 0.1, np.datetime64("NaT"), born)
    shift = (np.arange(PEOPLE) % 4) + (pay > 25)
    columns: Columns = {
        "pay": pay,
        "age": age,
        "hour": np.clip(rng.normal(2 + age / 25, 1.3, PEOPLE), 0, 7).astype(int),
        "steps": np.clip(rng.gamma(3, 2600, PEOPLE), 0, 25_599).astype(int),
        "born": born,
        "town": np.array(TOWN[0].partition(",")[2].split("|"))[np.minimum(rng.geometric(0.25, PEOPLE) - 1, 11)],
        "colour": np.array(["red", "green", "blue", "grey"])[np.minimum(shift, 3)],
        "size": np.array(["S", "M", "L", "XL"])[np.clip(rng.poisson(shift), 0, 3)],
    }
    return {name: columns[name] for name in attribute_names(shape)}


def attribute_names(shape: str) -> list[str]:
    """The attributes of a shape."""
    return [text.partition("=")[0] for text in SCHEMAS[shape]]


def simulated(case: Case, made: ahead_ldp.Mechanism | None = None) -> ahead_ldp.Estimate:
    """The estimate of a case, the same every time; by another version of its method if one is given."""
    made = mechanism(case) if made is None else made
    rng = np.random.default_rng(case.seed)  # as sets drew before a number had a stream of its own in `simulate`
    return ahead_ldp.simulate(population(case.shape), SCHEMAS[case.shape], method=made, seed=rng)


def told(estimate: ahead_ldp.Estimate, shape: str) -> Told:
    """What an estimate answers to the fixed questions of its shape, as plain data."""
    answers = estimate.ask(*QUERIES[shape])
    constant, rule = answers.critical(0.9, simultaneous=True)
    found: Told = {
        "consistent": estimate.consistent,
        "ask": plain(answers.columns(kind="model")),
        "ask_90": plain(answers.interval(0.9, kind="model")),
        "critical_90": [plain(constant), rule],
        "outward": plain(estimate.ask(*QUERIES[shape], snap="outward").values),
        "attributes": {name: _told_of(estimate, name, i == 0) for i, name in enumerate(attribute_names(shape))},
        "sample": plain(estimate.sample(6, seed=7, backend="dict")),
    }
    if len(estimate.schema.names) > 1:
        found["marginal"] = _condensed(estimate.marginal(*estimate.schema.names[:2], errors=False))
    return found


def _told_of(estimate: ahead_ldp.Estimate, name: str, whole: bool) -> Told:
    """What is known of one attribute; of all but the first less is asked, to save time."""
    found: Told = {"cells": _condensed(estimate.marginal(name, errors=False))}
    if name not in ORDERED:
        found["histogram"] = plain(estimate.histogram(name).columns(kind="model"))
        return found
    points, borders, has_mean = ORDERED[name]
    found["cdf"] = plain(estimate.cdf(name, points).columns(kind="model"))
    if not whole:
        return found
    found["quantiles"] = plain(estimate.quantiles(name, LEVELS).columns(kind="model"))
    found["histogram"] = plain(estimate.histogram(name, borders).columns(kind="model"))
    if has_mean:
        mean = estimate.mean(name)
        ends = mean.interval(kind="model")
        found["mean"] = plain([mean.value, mean.number, mean.standard_error, mean.bias_error, *ends])
    return found


def _condensed(answers: ahead_ldp.Answers) -> list[float]:
    """Many shares in a few numbers, each of which any of them moves."""
    shares = answers.values.reshape(-1)
    found: list[float] = plain([shares.sum(), (shares**2).sum(), shares @ np.cos(np.arange(shares.size)), shares.max()])
    return found


def plain(value: Any) -> Any:
    """Arrays and moments as JSON has them; numbers in full, those that are not finite as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return [plain(inner) for inner in (value.astype(str) if value.dtype.kind in "mM" else value).tolist()]
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def write_estimates(folder: Path, methods: Sequence[str] = ()) -> None:
    """Two lists, a line for each estimate: its saved record, and what it answers. All methods if none are named."""
    records, answers = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for case in (case for case in cases() if not methods or case.method in methods):
            estimate, path = simulated(case), Path(scratch) / "estimate.json"
            estimate.save(path)
            data = path.read_bytes()
            waves = json.loads(data)["waves"]
            asked = [{entry["group"]: entry["tally"]["question"] for entry in wave} for wave in waves]
            record = hashlib.sha256(data.removesuffix(b"\n")).hexdigest()
            about = {"name": case.name, "case": asdict(case), "record": record, "questions": asked}
            answers.append(json.dumps({**about, "told": told(estimate, case.shape)}).encode() + b"\n")
            records.append(data)
    write_packed(folder / "records.jsonl.gz", b"".join(records))
    write_packed(folder / "answers.jsonl.gz", b"".join(answers))


# Runs and batch campaigns: directories that commands made.

RUNS = {
    "wire": (["--attribute", ONE[0] + ",missing=cell", "--epsilon", "1"], QUERIES["one"]),
    "parquet": (
        ["--attribute", MIXED[0], "--attribute", MIXED[1], "--epsilon", "2", "--parquet"],
        ["born >= 1980-01-01 and colour = red", "born missing", "colour in {blue, grey}"],
    ),
    "paper": (
        ["--attribute", TWO[0], "--attribute", TWO[1], "--epsilon", "0.5", "--method", "hio", "--paper"],
        QUERIES["two"],
    ),
}
BATCH = ["--attribute", "age=integer,18,49", "--epsilon", "2", "--users", "480"]
BATCH_QUERIES = ["age in 20..29", "age >= 35", "age <= 19"]
PERTURB = ["--data", "holder/people.csv", "--row-key", "person"]


def write_runs(folder: Path) -> None:
    """What `ahead collect` keeps, and what `ahead query` says of it."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        for run, (options, queries) in RUNS.items():
            wanted = [word.partition("=")[0] for word in options if "=" in word and not word.startswith("--")]
            columns = {**population("two"), **population("mixed")}
            _write_table(scratch / "people.csv", {key: columns[key][:240] for key in wanted})
            ahead("collect", "--data", "people.csv", *options, "--out", run, at=scratch)
            found = json.loads(ahead("query", run, *queries, "--recount", *MODEL, "--json", at=scratch))
            pack(folder / f"{run}.tar.gz", scratch, run)
            write_json(folder / f"{run}.query.json", {"queries": queries, "told": found})


def write_batch(folder: Path) -> None:
    """A campaign in batch with its second wave answered and open, with its holder's side, and the same at its end."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        (scratch / "holder").mkdir()
        ages = np.clip(18 + np.random.default_rng(3).exponential(8, 480), 18, 49).astype(int)
        people = {"person": np.array([f"p{i}" for i in range(480)]), "age": ages}
        _write_table(scratch / "holder/people.csv", people)
        ahead("start", "campaign", *BATCH, at=scratch)
        ahead("perturb", "campaign", *PERTURB, at=scratch)
        ahead("advance", "campaign", at=scratch)
        ahead("perturb", "campaign", *PERTURB, at=scratch)
        pack(folder / "middle.tar.gz", scratch, "campaign", "holder")
        ahead("estimate", "campaign", "--out", "middle.json", at=scratch)
        shutil.copyfile(scratch / "middle.json", folder / "middle.estimate.json")
        ahead("advance", "campaign", at=scratch)
        while not (scratch / "campaign/estimate.json").exists():
            ahead("perturb", "campaign", *PERTURB, at=scratch)
            ahead("advance", "campaign", at=scratch)
        pack(folder / "finished.tar.gz", scratch, "campaign")
        told = json.loads(ahead("query", "campaign", *BATCH_QUERIES, "--recount", *MODEL, "--json", at=scratch))
        counted = json.loads(ahead("tally", "campaign", "--verify", "--json", at=scratch))
        write_json(folder / "finished.json", {"queries": BATCH_QUERIES, "told": told, "tally": counted})


# The service: a store with campaigns in several states, a device's ledger, an issuer's office.

TEXTS = {
    "purpose": "to keep what was recorded",
    "controller": "The golden files",
    "contact": "nobody@example.org",
    "texts": {"consent": "Your device adds noise before anything is sent."},
    "created": "2021-11-15",
    "minimum": 20,
    "closing": {"kind": "manual"},
    "retention_days": 36_500,
}
DRAFTS: dict[str, dict[str, Any]] = {
    "open": {"title": "Hours", "attributes": ["hours=integer,0,31"], "epsilon": "2"},
    "finished": {
        "title": "Birth and colour",
        "attributes": ["born=date,1960-01-01,2009-12-31,16,missing=cell", "colour=nominal,red|green|blue"],
        "epsilon": "1",
        "users": 1500,
        "enrolment": "panel",
    },
    "tokens": {"title": "Pay", "attributes": ["pay=real,0,100,16"], "epsilon": "0.5", "method": {"name": "flat"}},
    "draft": {"title": "Towns", "attributes": [TOWN[0]], "epsilon": "1", "method": {"name": "calm"}, "review": True},
}
ASKED = {
    "open": {
        "queries": ["hours in 8..15", "hours >= 20", "hours <= 3"],
        "cdf": ["hours"],
        "quantiles": [{"attribute": "hours", "levels": [0.25, 0.5, 0.75]}],
        "histograms": [{"attribute": "hours", "bins": 4}],
        "means": ["hours"],
    },
    "finished": {
        "queries": ["born <= 1979-12-31 and colour = red", "born missing"],
        "quantiles": [{"attribute": "born", "levels": [0.5]}],
        "means": ["born"],
        "level": 0.9,
    },
}
VALUE = {"hours": 13}  # of the person whose report waits in the ledger
LONG_AGO = 1_600_000_000  # when its device drew it, so that it is due whenever the files are read
PUBLIC, SHOWN = ("", "/state", "/chain"), ("/tallies", "/progress", "/screens")


class Process:
    """A command that serves, until the block ends; its address and what it printed first."""

    def __init__(self, scratch: Path, *words: str, port: int, token: bool = False) -> None:
        self.url, self.token = f"http://127.0.0.1:{port}", ""
        self._log = (scratch / f"{port}.log").open("w+")
        command = [sys.executable, "-m", "ahead_ldp", *words]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True, env=one_thread())
        assert self._process.stdout is not None
        if token:
            self.token = self._process.stdout.readline().strip()
        for _ in range(1200):
            try:
                self.get("/health")
                return
            except OSError:
                time.sleep(0.05)
            if self._process.poll() is not None:
                break
        self._log.seek(0)
        raise RuntimeError(f"{' '.join(words)} did not start: {self._log.read()}")

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=60)
        self._log.close()

    def read(self, path: str, body: Any = None) -> bytes:
        """The bytes of an answer; with a body it is posted, bytes as they are and anything else as JSON."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        headers["content-type"] = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        asked = urllib.request.Request(f"{self.url}/v1{path}", data, headers)
        with urllib.request.urlopen(asked, timeout=120) as answer:
            found: bytes = answer.read()
            return found

    def get(self, path: str) -> Any:
        return json.loads(self.read(path))

    def post(self, path: str, body: Any = None) -> Any:
        return json.loads(self.read(path, {} if body is None else body))

    def close(self, campaign: str, wave: int) -> None:
        """Close a wave and wait for its tallies."""
        done = self.read(f"/campaigns/{campaign}/waves/{wave}/close?wait=60", b"")
        assert json.loads(done)["state"] == "done", done


@contextmanager
def serving(scratch: Path, store: str, token: str = "") -> Iterator[Process]:
    """`ahead serve` over a store in the folder; without a token the store is new and its first one is taken."""
    port = _free_port()
    settings = {
        "port": port,
        "store": scratch / store,
        "keys": scratch / "keys",
        "closer_interval_s": 0.05,
        "rate_per_s": 0,
    }
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    server = Process(scratch, "serve", *(() if token else ("--init",)), *words, port=port, token=not token)
    server.token = token or server.token
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def issuing(scratch: Path, office: Path) -> Iterator[Process]:
    """`ahead issue serve` over an office."""
    port = _free_port()
    issuer = Process(scratch, "issue", "serve", str(office), "--port", str(port), port=port)
    try:
        yield issuer
    finally:
        issuer.stop()


def shown(server: Process, campaign: str, asked: dict[str, Any] | None = None) -> dict[str, str]:
    """Everything that a server says of a campaign, by path, as the text that it sent."""
    at = f"/campaigns/{campaign}"
    waves = [f"/waves/{wave['number']}" for wave in server.get(f"{at}/state")["waves"]]
    closed = any(wave["state"] == "closed" for wave in server.get(f"{at}/state")["waves"])
    found = {path: server.read(at + path).decode() for path in (*PUBLIC, *waves, *(SHOWN if closed else ()))}
    if closed:
        found["/results"] = server.read(f"{at}/results?intervals=model").decode()
    if asked is not None and closed:
        found["/queries"] = server.read(f"{at}/queries", {**asked, "intervals": "model"}).decode()
    return found


def write_service(folder: Path) -> None:
    """A store while its server runs and after, what the server said, and what came of one more report."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        secrets = _new_office(scratch)
        with serving(scratch, "store.db") as server, issuing(scratch, scratch / "office") as issuer:
            names = {key: _create(server, key, scratch) for key in DRAFTS}
            _answer_waves(server, names, issuer, secrets)
            _ledger(server, names, scratch / "ledger.db")
            ahead("store", "backup", "store.db", "backup.db", at=scratch)
            answers = {key: shown(server, names[key], ASKED.get(key)) for key in names}
            events, token = server.get("/events"), server.token
        pack(folder / "files.tar.gz", scratch, "store.db", "backup.db", "ledger.db", "office", "keys")
        checked = json.loads(ahead("store", "check", "store.db", "--keys", "keys", "--json", at=scratch))
        status = json.loads(ahead("issue", "status", "office", "--json", at=scratch))
        with serving(scratch, "store.db", token) as server:
            words = respond_words(server.url, names["open"], VALUE, scratch / "ledger.db")
            sent = json.loads(ahead(*words))
            server.close(names["open"], 2)
            after = shown(server, names["open"], ASKED["open"])
    about = {"campaigns": names, "value": VALUE, "asked": ASKED, "sent": sent, "secret": secrets[-1]}
    write_json(folder / "about.json", {**about, "office": status, "store": checked, "events": events})
    write_json(folder / "answers.json.gz", {"before": answers, "after": {"open": after}})


def _new_office(scratch: Path) -> list[str]:
    """An issuer's office with 31 people enrolled; their secrets."""
    ahead("issue", "create", "office", at=scratch)
    return ahead("issue", "enrol", "office", "--count", "31", at=scratch).split()


def _create(server: Process, key: str, scratch: Path) -> str:
    draft = {**TEXTS, **DRAFTS[key]}
    if key == "tokens":
        draft["token"] = json.loads(ahead("issue", "key", "office", at=scratch))
    campaign = str(server.post("/campaigns", draft)["campaign"])
    if key != "draft":
        server.read(f"/campaigns/{campaign}/open", b"")
    return campaign


def _answer_waves(server: Process, names: dict[str, str], issuer: Process, secrets: Sequence[str]) -> None:
    """Two waves of the open campaign, the first closed; all of the finished one; thirty people with a token."""
    rng = np.random.default_rng(5)
    hours = np.clip(rng.normal(14, 5, 420), 0, 31).astype(int).tolist()
    _people(server, names["open"], 1, [{"hours": h} for h in hours[:210]])
    server.close(names["open"], 1)
    _people(server, names["open"], 2, [{"hours": h} for h in hours[210:]])
    columns = population("mixed")
    born, colours = plain(columns["born"]), np.array(["red", "green", "blue"])[rng.integers(0, 3, PEOPLE)].tolist()
    people = [{"born": None if b == "NaT" else b, "colour": c} for b, c in zip(born[:1500], colours, strict=False)]
    crowd, wave = _crowd(server, names["finished"], people), 1
    while server.get(f"/campaigns/{names['finished']}/state")["state"] == "open":
        _send(server, crowd, wave)
        server.close(names["finished"], wave)
        wave += 1
    signers = [IssuerClient(issuer.url, secret) for secret in secrets[:-1]]
    pay = [{"pay": float(p)} for p in population("two")["pay"][:30]]
    _send(server, _crowd(server, names["tokens"], pay, signers), 1)


def _crowd(server: Process, campaign: str, people: Sequence[Mapping[str, Any]], signers: Sequence[Any] = ()) -> Crowd:
    found = fetch_campaign(HttpTransport(server.url), campaign)
    return Crowd.of_values(found, people, OwnerPolicy("4"), signers.__getitem__ if signers else None)


def _send(server: Process, crowd: Crowd, wave: int) -> None:
    data = fetch_wave(HttpTransport(server.url), crowd.campaign, wave)
    for upload in crowd.uploads(data, wave, range(len(crowd.people))):
        answer = json.loads(server.read(f"/campaigns/{crowd.campaign.digest}/reports", upload.body))
        assert not answer["refused"], answer


def _people(server: Process, campaign: str, wave: int, people: Sequence[Mapping[str, Any]]) -> None:
    _send(server, _crowd(server, campaign, people), wave)


def _ledger(server: Process, names: dict[str, str], path: Path) -> None:
    """A device that has one report in its outbox, for the open campaign."""
    with Ledger(path) as ledger:
        policy = OwnerPolicy("4", least_group=10, fields={names["open"]: {name: name for name in VALUE}})
        client = Client(server.url, ledger, policy, jitter_s=3600, clock=lambda: LONG_AGO)
        outcome = client.answer(names["open"], lambda offer: True, lambda offer: dict(VALUE))
        assert outcome.status.value == "queued", outcome
        assert client.receipt(names["open"]) is not None


def respond_words(url: str, campaign: str, values: Mapping[str, Any], ledger: Path) -> list[str]:
    """The command with which somebody answers a campaign at once."""
    given = [word for name, value in values.items() for word in ("--value", f"{name}={value}")]
    given += [word for name in values for word in ("--field", f"{name}={name}")]
    return ["respond", url, campaign, *given, "--yes", "--jitter", "0", "--ledger", str(ledger), "--json"]


# Programs whose seed is fixed.

PROGRAMS = {
    "methods": ["methods"],
    "plan": ["plan", "--attribute", "age=integer,18,33", "--epsilon", "1", "--users", "5000", "--simulate"],
    "plan-target": [
        *("plan", "--attribute", "x=codes,16", "--epsilon", "1", "--target", "2%", "--method", "flat", "--simulate"),
        *("--shuffle-delta", "1e-6"),
    ],
    "evaluate": [
        *("evaluate", "--data", "people.csv", "--attribute", TWO[0], "--attribute", TWO[1], "--epsilon", "0.5"),
        *("--method", "fused,ahead,hdg", "--random", "20", "--repeats", "2", "--seed", "3"),
    ],
    "compare": [
        *("compare", "--data", "people.csv", "--attribute", ONE[0], "--epsilon", "1", "--repeats", "2"),
        *("--random", "20", "--seed", "3", "--users", "500", "--method", "default,hh:strong"),
    ],
}


def write_programs(folder: Path) -> None:
    """What planning, evaluating and comparing print."""
    folder.mkdir(parents=True)
    columns = {name: column[:2000] for name, column in population("two").items()}
    _write_table(folder / "people.csv", {**columns, "pay": np.round(columns["pay"], 2)})
    for name, words in PROGRAMS.items():
        told = json.loads(ahead(*words, "--json", at=folder))
        write_json(folder / f"{name}.json", {"words": words, "told": without_clock(told)})


def without_clock(told: Told) -> Told:
    """The same without what a clock or a memory meter said."""
    measured = {"seconds", "peak_memory_bytes"}
    results = [{k: v for k, v in r.items() if k not in measured} for r in told.get("results", [])]
    return {**told, "results": results} if results else told


# Files and processes.


def ahead(*words: str, at: Path | None = None) -> str:
    """What a command prints; an error names it."""
    command = [sys.executable, "-m", "ahead_ldp", *words]
    done = subprocess.run(command, cwd=at, env=one_thread(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ahead {' '.join(words)}: {done.stderr}")
    return done.stdout


def one_thread() -> dict[str, str]:
    """The environment of a command that leaves the other cores alone."""
    return {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")}


def machine() -> dict[str, Any]:
    """What the last digits of a result depend on. Where it differs, so do the draws behind simultaneous intervals."""
    kernels = sorted({f"{found['internal_api']} {found.get('architecture')}" for found in threadpool_info()})
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    return {**versions, "processor": platform.machine(), "kernels": [k for k in kernels if k.startswith("openblas")]}


def write_json(path: Path, value: Any) -> None:
    """JSON, small if the name ends in .gz and else for people to read."""
    if path.suffix == ".gz":
        write_packed(path, json.dumps(value).encode())
    else:
        path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """What `write_json` wrote."""
    return json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())


def write_packed(path: Path, data: bytes) -> None:
    """Compressed, the same bytes every time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0))


def pack(path: Path, root: Path, *names: str) -> None:
    """Files and folders below ``root`` in one archive that names neither their owner nor their time."""

    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return None if entry.name.endswith(".lock") else entry

    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in names:
            archive.add(root / name, name, filter=anonymous)
    write_packed(path, data.getvalue())


def unpack(path: Path, root: Path) -> None:
    """What `pack` wrote, with the modes that it had."""
    with tarfile.open(path) as archive:
        archive.extractall(root, filter="data")


def _write_table(path: Path, columns: Columns) -> None:
    texts = [["" if t == "NaT" else str(t) for t in plain(column)] for column in columns.values()]
    lines = [",".join(columns), *(",".join(row) for row in zip(*texts, strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


PARTS = {
    "estimates": write_estimates,
    "runs": write_runs,
    "batch": write_batch,
    "service": write_service,
    "programs": write_programs,
}


def main() -> None:
    """Write the parts that are asked for; each must be new."""
    parser = argparse.ArgumentParser(prog="python -m tools.golden", description=__doc__)
    parser.add_argument("folder", type=Path, help="such as tests/golden/LABEL")
    parser.add_argument("--only", choices=PARTS, action="append", help="one part; repeat for more")
    parser.add_argument("--methods", default="", help="with --only estimates: of these methods alone, A,B")
    options = parser.parse_args()
    if options.methods and options.only != ["estimates"]:
        sys.exit("expected --methods with --only estimates")
    for name in options.only or PARTS:
        if (options.folder / name).exists():
            sys.exit(f"expected no {options.folder / name} yet: a set is written once")
    for name in options.only or PARTS:
        folder = (options.folder / name).resolve()
        if options.methods:
            write_estimates(folder, options.methods.split(","))
        else:
            PARTS[name](folder)
        print(f"written: {options.folder / name}")
    write_json(options.folder / "machine.json", machine())


if __name__ == "__main__":
    main()
