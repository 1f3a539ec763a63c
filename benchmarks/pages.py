"""The dashboard's pages of a finished campaign: server CPU of the page and of every part that it loads by itself."""

from __future__ import annotations

import re
import time
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ahead_ldp.device.frames import ID_LENGTH
from ahead_ldp.service.dashboard import make_pages
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.server.sessions import sign_in
from ahead_ldp.service.store.sqlite import SQLiteStore
from benchmarks.measuring import Section, Sizes, at_most
from benchmarks.populations import gaussian_records
from benchmarks.rendering import seconds
from tests.service.server.harness import Bench, bench_over

_AT_ONCE = 10_000  # reports of one upload
_MOST = 1.0  # seconds of a page or a part
_PART = re.compile(r'class="part(?: lines)?" data-part="([^"]+)"')


def run(sizes: Sizes) -> Section:
    """One attribute and two: the page, its parts when they are first asked for, everything again, and one query."""
    rows, targets, numbers = [], [], {}
    cases = [("one attribute", (sizes.cells,)), ("two attributes", (128, 128))]
    for name, shape in cases:
        with TemporaryDirectory() as folder:
            store = SQLiteStore(Path(folder) / "service.db", keys=Path(folder) / "keys")
            with bench_over(store) as server:
                server.app.pages = make_pages(server.service)
                campaign = _finished(server, shape, sizes.people)
                spent = _looked_at(server, campaign, len(shape))
            store.close()
        rows += [(name, what, seconds(value)) for what, value in spent.items()]
        slowest = max(spent, key=lambda what: spent[what])
        targets.append(at_most(f"slowest page or part, {name} ({slowest})", spent[slowest], _MOST, "s"))
        numbers[name] = spent
    notes = (
        f"CPU of the server process, epsilon 1, {sizes.people:,} people in the waves of the default method. "
        "Parts are what the page asks for by itself after it is shown; a part that was made once is kept.",
    )
    return Section("Pages of results", ("campaign", "what", "CPU"), tuple(rows), notes, tuple(targets), numbers)


def _finished(server: Bench, shape: tuple[int, ...], people: int) -> str:
    """A campaign of the default method, answered to its end."""
    attributes = [f"a{i}=integer,0,{size - 1}" for i, size in enumerate(shape)]
    method = {"name": "adaptive" if len(shape) == 1 else "fused"}
    name = server.opened(attributes=attributes, epsilon="1", method=method, users=people, minimum=1)
    records = gaussian_records(people, shape[0], len(shape))
    rng, done, number = np.random.default_rng(3), 0, 1
    shares = dict(server.service.directory.terms(name).campaign.groups)
    while server.state(name)["state"] == "open":
        questions = server.questions(name, number)
        weights = np.array([shares[group] for group in questions])
        count = people * int(weights.sum()) // sum(shares.values())
        part, records = records[:count], records[count:]
        groups = rng.choice(len(weights), size=len(part), p=weights / weights.sum())
        wave = server.service.directory.session(name).wave
        for place, (group, sent) in enumerate(questions.items()):
            question = wave[group]
            codes = part[groups == place][:, list(question.attributes)]
            drawn = question.oracle.perturb(question.partition.locate(codes), rng)
            ids = np.frombuffer(rng.bytes(len(drawn) * ID_LENGTH), np.uint8).reshape(-1, ID_LENGTH)
            frames = np.concatenate([ids, drawn], axis=1)
            for at in range(0, len(frames), _AT_ONCE):
                body = sent.header.encode() + frames[at : at + _AT_ONCE].tobytes()
                done += server.upload(name, body).json()["accepted"]
        server.close(name, number)
        number += 1
    assert done + len(records) == people, (done, people)
    return name


def _looked_at(server: Bench, campaign: str, attributes: int) -> dict[str, float]:
    headers = {"cookie": f"{COOKIE}={sign_in(server.service, server.analyst)}"}

    def look(path: str) -> tuple[str, float]:
        start = time.process_time()
        answer = server.client.get(path, headers=headers)
        spent = time.process_time() - start
        assert answer.status_code == 200, (path, answer.text)
        return answer.text, spent

    base = f"/campaigns/{campaign}"
    page, first = look(f"{base}/results")
    found = {"the page, first time": first}
    for part in map(unescape, _PART.findall(page)):
        found[part.partition("?")[2].replace("&", ", ")] = look(part)[1]
    found["the page, again"] = look(f"{base}/results")[1]
    query = " and ".join(f"a{i} in 10..40" for i in range(attributes))
    start = time.process_time()
    asked = server.call("POST", f"{base}/queries", "analyst", json={"queries": [query]})
    found["a query that is typed"] = time.process_time() - start
    assert asked.status_code == 200, asked.text
    return found
