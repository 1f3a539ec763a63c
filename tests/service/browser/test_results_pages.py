"""Pages of results without a browser: every method, many attributes, large and nominal domains, many groups."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.service.dashboard import make_pages
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.server.sessions import sign_in
from tests.service.server.harness import bench

ONE = ["age=integer,0,15"]
TWO = ["age=integer,0,15", "pay=real,0,800,8"]


@pytest.fixture
def service(tmp_path):
    with bench(tmp_path) as made:
        made.app.pages = make_pages(made.service)
        yield made


def cookie(service, token):
    """The header of somebody who has signed in."""
    return {"cookie": f"{COOKIE}={sign_in(service.service, token)}"}


def look(service, path):
    answer = service.client.get(path, headers=cookie(service, service.analyst))
    assert answer.status_code == 200, (path, answer.text)
    return answer.text


def finished(service, attributes, method, n=240, **more):
    """A campaign that ran to its end; nominal values are taken in turn, numbers from the lower half."""
    schema = {text.partition("=")[0]: text.partition("=")[2].split(",") for text in attributes}
    rng, people = np.random.default_rng(4), []
    for i in range(n):
        people.append({name: value_of(kind, i, rng) for name, kind in schema.items()})
    name = service.opened(attributes=attributes, method={"name": method}, minimum=1, users=1000, **more)
    service.run(name, people)
    assert service.state(name)["state"] == "finished"
    return name


def value_of(kind, i, rng):
    if kind[0] in ("category", "ordered", "nominal"):
        labels = kind[1].split("|")
        return labels[i % len(labels)]
    low, high = float(kind[1]), float(kind[2])
    value = low + (high - low) * rng.random() / 2
    return value if kind[0] == "real" else int(value)


def pictures(page):
    """Every chart of a page, as XML without broken numbers."""
    found = re.findall(r"<svg class=\"chart\".*?</svg>", page, re.DOTALL)
    for text in found:
        ET.fromstring(text)
        assert not re.search(r"\b(nan|inf)\b", text), text[:300]
        assert 'width="-' not in text
        assert 'height="-' not in text
    return found


@pytest.mark.parametrize("method", sorted(set(MECHANISMS) - {"uni"}))
def test_results_of_every_method_are_drawn(service, method):
    attributes = ONE if MECHANISMS[method].most_attributes == 1 else TWO
    name = finished(service, attributes, method)
    page = look(service, f"/campaigns/{name}/results")
    assert f"<h2>{attributes[0].partition('=')[0]}</h2>" in page
    shown = pictures(page)
    assert len(shown) >= (2 if attributes == ONE else 5)
    assert len([text for text in shown if "data-down" in text]) == (attributes == TWO)
    assert "are below" in page
    look(service, f"/campaigns/{name}")
    for form in ("csv", "svg"):
        answer = service.client.get(
            f"/campaigns/{name}/download?attribute=age&format={form}", headers=cookie(service, service.analyst)
        )
        assert answer.status_code == 200


def test_a_method_that_asks_nobody_is_not_offered(service):
    """The uniform guess is for comparisons: a campaign of it has no group, and the service refuses it."""
    page = service.client.get("/new", headers=cookie(service, service.operator)).text
    assert sorted(re.findall(r'<option value="(\w+)" >', page))[:2] == ["adaptive", "ahead"]
    assert '"uni"' not in page


def test_many_attributes_are_drawn_when_they_are_looked_at(service):
    attributes = [f"a{i}=integer,0,15" for i in range(5)] + ["town=nominal," + "|".join(f"town {i}" for i in range(12))]
    name = finished(service, attributes, "hdg")
    page = look(service, f"/campaigns/{name}/results")
    assert len(pictures(page)) <= 2 * 3 + 1
    assert len(page) < 200_000
    later = re.findall(r'data-part="([^"]+)"', page)
    assert len(later) == 4
    for path in later:
        assert pictures(look(service, path))
    assert "town 7" in look(service, later[-1])
    chosen = look(service, f"/campaigns/{name}/results?across=town&up=a3")
    assert 'data-attribute="town" data-codes="12" data-down="a3" data-down-codes="16"' in chosen
    assert "nonsense" not in look(service, f"/campaigns/{name}/results?across=nonsense&up=a3")
    headers = cookie(service, service.analyst)
    assert service.client.get(f"/campaigns/{name}/attribute?name=zz", headers=headers).status_code == 404


def test_large_and_nominal_domains_stay_small_pages(service):
    towns = "|".join(f"the town of number {i}" for i in range(60))
    name = finished(service, [f"town=nominal,{towns}", "pay=integer,0,1023"], "hdg", n=400)
    page = look(service, f"/campaigns/{name}/results")
    assert len(page) < 400_000
    shown = pictures(page)
    bars = next(text for text in shown if "Share of people by town, with" in text)
    assert bars.count('class="bar"') == 30
    assert "the 30 largest of 60" in bars
    assert any("data-down" in text for text in shown)  # nominal attributes have a heat map as well


def test_boxes_of_the_heat_map_are_densities(service):
    """64 buckets in 48 blocks: some blocks hold two buckets, and must not look twice as full."""
    name = finished(service, ["x=integer,0,63", "y=integer,0,63"], "hdg")
    heat = next(text for text in pictures(look(service, f"/campaigns/{name}/results")) if "data-down" in text)
    estimate = service.service.directory.estimate(name)
    shares = estimate.marginal("x", "y", errors=False).values
    cells = [float(x) for x in re.findall(r'class="cell"[^>]*fill-opacity="([\d.]+)"', heat)]
    edges = np.arange(49) * 64 // 48
    sums = np.add.reduceat(np.add.reduceat(shares, edges[:-1], axis=0), edges[:-1], axis=1)
    density = np.maximum(sums / np.outer(np.diff(edges), np.diff(edges)), 0)
    expected = [x for x in (density / density.max()).ravel() if x >= 0.004]
    np.testing.assert_allclose(cells, expected, atol=6e-4)


def test_many_groups_and_their_screens_fit_a_page(service):
    attributes = [f"a{i}=integer,0,15" for i in range(9)]
    name = service.opened(attributes=attributes, method={"name": "hdg"}, minimum=1, users=100_000)
    page = look(service, f"/campaigns/{name}")
    groups = page.count("<progress ")
    assert groups > 40
    assert re.search(r'class="groups" role="region" tabindex="0"', page)
    assert f'<span id="reached">0</span> of {groups} groups' in page
    service.answer(name, 1, [{f"a{k}": (i + k) % 16 for k in range(9)} for i in range(5000)])
    assert service.close(name, 1)["state"] == "done"
    page = look(service, f"/campaigns/{name}")
    kinds = re.search(r"<td>(<span class=\"screen.*?)(<details>|</td>)", page, re.DOTALL)[1]
    assert 1 <= kinds.count('class="screen') <= 8
    assert re.search(r"<details><summary>all \d+</summary>", page)


def test_long_labels_have_room(service):
    """Dates and moments along an axis: few enough not to overlap, and inside the picture."""
    attributes = ["born=date,1950-01-01,2010-12-31,12", "seen=datetime,2026-01-01T00:00:00,2026-12-31T00:00:00,16"]
    name = service.opened(attributes=attributes, method={"name": "hdg"}, minimum=1, users=1000)
    service.run(
        name, [{"born": f"19{50 + i % 50}-05-01", "seen": f"2026-{1 + i % 12:02d}-03T10:00:00"} for i in range(240)]
    )
    for chart in pictures(look(service, f"/campaigns/{name}/results")):
        for x, anchor, said in re.findall(r'<text x="([\d.-]+)" y="[\d.]+" text-anchor="(\w+)">([^<]*)<', chart):
            begins = float(x) - (5 * len(said) if anchor == "end" else 0)  # 9 pixels high, about 5 wide
            assert begins >= 0, said
