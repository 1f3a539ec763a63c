"""Pages of results without a browser: every method, many attributes, large and nominal domains, many groups."""

import re
import xml.etree.ElementTree as ET
from html import unescape
from urllib.parse import urlencode

import numpy as np
import pytest

from ahead_ldp.estimates.answers import STRICT_NOTE
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.schema.attributes import parse_attribute
from ahead_ldp.service.dashboard import charts, joint_charts, make_pages, results
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.dashboard.results import PICKED_NOTE, choices, compared
from ahead_ldp.service.server.sessions import sign_in, visitor_of
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


def complete(service, path):
    """A page with everything that it loads by itself, as its script does: one part after the other."""
    for part in parts(look(service, path)):
        assert not parts(look(service, part)), part
    page = look(service, path)
    assert not parts(page)
    return page


def parts(page):
    return [unescape(path) for path in re.findall(r'class="part(?: lines)?" data-part="([^"]+)"', page)]


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
    if kind[0] == "date":
        return f"{1950 + i % 50}-05-01"
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
    page = complete(service, f"/campaigns/{name}/results")
    assert f"<h2>{attributes[0].partition('=')[0]}</h2>" in page
    shown = pictures(page)
    assert len(shown) >= (2 if attributes == ONE else 4)
    assert len([text for text in shown if "data-down" in text]) == (attributes == TWO)
    assert "are below" in page
    said = re.sub(r'<span class="unbroken">(.*?)</span>', r"\1", page)
    low, high = re.search(r"For about [\d.]+ % \(([\d.]+) to ([\d.]+) %\) of the people, age is", said).groups()
    lead = re.search(r'class="lead">(For about|Half of the people are below)', said)[1]
    if abs(float(high) - float(low) - 50) > 1:  # which is rounded
        assert (lead == "For about") == (float(high) - float(low) < 50)
    assert pictures(look(service, f"/campaigns/{name}/checks")) or MECHANISMS[method].most_attributes == 1
    look(service, f"/campaigns/{name}")
    for form in ("csv", "svg"):
        answer = service.client.get(
            f"/campaigns/{name}/download?attribute=age&format={form}", headers=cookie(service, service.analyst)
        )
        assert answer.status_code == 200


def test_where_a_share_is_hardly_known_the_middle_comes_first_and_days_are_before(service):
    """A range that stands out had 41 % (0 to 96 %) as the first thing to read."""
    few = finished(service, ["born=date,1950-01-01,1999-12-31,90"], "hh", n=60)
    page = complete(service, f"/campaigns/{few}/results")
    assert re.search(r'class="lead">Half of the people are before .*\), and half after\.</p><p>For about', page)
    assert "How many are at or before a day" in page
    assert ">are before<" in page
    assert "below a value" not in page


def test_further_questions_are_named_as_people_read_them_and_come_before_the_queries(service):
    attributes = [f"a{i}=integer,0,3" for i in range(3)]
    words = [{"attribute": "a2", "question": "How <many> have you?"}]
    name = finished(service, attributes, "hdg", n=60, wording=words)
    page = look(service, f"/campaigns/{name}/results")
    assert "<summary>How &lt;many&gt; have you?</summary>" in page
    assert page.index("The other questions") < page.index('id="asking"')
    assert f'<a href="/campaigns/{name}/attribute?name=a2">' in page  # also where scripts are not allowed


def test_a_method_that_asks_nobody_is_not_offered(service):
    """The uniform guess is for comparisons: a campaign of it has no group, and the service refuses it."""
    page = service.client.get("/new", headers=cookie(service, service.operator)).text
    assert sorted(re.findall(r'<option value="(\w+)" >', page))[:2] == ["adaptive", "ahead"]
    assert '"uni"' not in page


def test_many_attributes_are_drawn_when_they_are_looked_at(service):
    attributes = [f"a{i}=integer,0,15" for i in range(5)] + ["town=nominal," + "|".join(f"town {i}" for i in range(12))]
    name = finished(service, attributes, "hdg")
    page = complete(service, f"/campaigns/{name}/results")
    assert len(pictures(page)) <= 2 * 3 + 1
    assert len(page) < 200_000
    later = re.findall(r'class="lazy" data-part="([^"]+)"', page)
    assert len(later) == 4
    for path in later:
        assert pictures(complete(service, path))
    assert "town 7" in look(service, later[-1])
    chosen = look(service, f"/campaigns/{name}/results?across=town&up=a3")
    assert 'data-attribute="town" data-codes="12" data-down="a3" data-down-codes="16"' in chosen
    assert "nonsense" not in look(service, f"/campaigns/{name}/results?across=nonsense&up=a3")
    headers = cookie(service, service.analyst)
    for wrong in ("name=zz", "name=a0&piece=zz", "name=town&piece=cumulative", "name=town&piece=quantiles"):
        assert service.client.get(f"/campaigns/{name}/attribute?{wrong}", headers=headers).status_code == 404


def test_large_and_nominal_domains_stay_small_pages(service):
    towns = "|".join(f"the town of number {i}" for i in range(60))
    name = finished(service, [f"town=nominal,{towns}", "pay=integer,0,1023"], "hdg", n=400)
    page = complete(service, f"/campaigns/{name}/results")
    assert len(page) < 400_000
    shown = pictures(page)
    bars = next(text for text in shown if "Share of people by town, with" in text)
    assert bars.count('class="bar"') == 30
    assert "the 30 largest of 60" in bars
    assert any("data-down" in text for text in shown)  # nominal attributes have a heat map as well


def test_boxes_of_the_heat_map_are_densities(service):
    """The last block may be shorter than the others, and must look as dense as it is."""
    name = finished(service, ["x=integer,0,62", "y=integer,0,63"], "hdg")
    heat = next(text for text in pictures(look(service, f"/campaigns/{name}/results")) if "data-down" in text)
    estimate = service.service.directory.estimate(name)
    shares = estimate.marginal("x", "y", errors=False).values
    cells = [float(x) for x in re.findall(r'class="cell"[^>]*fill-opacity="([\d.]{5})"', heat)]
    (x, step), (y, _) = joint_charts.pair_bins(estimate.schema.attributes)
    assert (step, x[-2:].tolist(), x.size - 1, y.size - 1) == (2.0, [62, 63], 32, 32)
    sums = np.add.reduceat(np.add.reduceat(shares, x[:-1], axis=0), y[:-1], axis=1)
    density = np.maximum(sums / np.outer(np.diff(x), np.diff(y)), 0)
    expected = [v for v in (density / density.max()).ravel() if v >= 0.004]
    np.testing.assert_allclose(cells, expected, atol=6e-4)
    tall = [float(h) for h in re.findall(r'class="bar" x="[\d.]+" y="[\d.]+" width="[\d.]+" height="([\d.]+)"', heat)]
    long = [float(w) for w in re.findall(r'class="bar" x="[\d.]+" y="[\d.]+" width="([\d.]+)"', heat)]
    for drawn, axis, ends in ((tall[: x.size - 1], "x", x), (long[x.size - 1 :], "y", y)):  # each of the two by itself
        alone = estimate.marginal(axis, errors=False).values
        dense = np.maximum(np.add.reduceat(alone, ends[:-1]) / np.diff(ends), 0)
        np.testing.assert_allclose(drawn, 40 * dense / dense.max(), atol=0.01)
    assert "of people in a box" in heat  # the colour scale
    assert '<text class="title"' in heat


def test_two_attributes_have_a_table_of_shares_with_intervals(service):
    name = finished(service, ["pay=integer,0,63", "town=nominal,north|south|west"], "hdg", n=600)
    path = f"/campaigns/{name}/attribute?name=pay&with=town"
    table = look(service, path)
    assert table.split("<tbody>")[1].count("<tr>") == 3
    cells = re.findall(r'<td class="number">(\d+) %<span class="note">(\d+) to (\d+) %</span>', table)
    assert len(cells) == 3 * 3  # from 0, 20 and 40
    estimate = service.service.directory.estimate(name)
    answers = estimate.ask("pay in 20..39 and town = south")
    low, high = (100 * float(side[0]) for side in answers.interval())
    share, least, most = map(int, cells[3 + 1])  # the middle of either
    assert (share, least, most) == (round(max(100 * float(answers.values[0]), 0)), round(low), round(high))
    assert "south" in table
    page = complete(service, f"/campaigns/{name}/results")
    assert "pay and town as a table" in page
    for wrong in ("pay&with=pay", "pay&with=zz", "zz&with=pay"):
        answer = service.client.get(
            f"/campaigns/{name}/attribute?name={wrong}", headers=cookie(service, service.analyst)
        )
        assert answer.status_code == 404


def test_categories_have_a_table(service):
    name = finished(service, ["town=nominal,north|south|west"], "flat", n=300)
    look(service, f"/campaigns/{name}/attribute?name=town&piece=distribution")
    page = look(service, f"/campaigns/{name}/results")
    rows = re.findall(r'<th scope="row">(\w+)</th><td class="number">([\d.]+) %</td><td class="number">[\d.]+ to', page)
    assert [town for town, _ in rows] == ["north", "south", "west"]
    answers = service.service.directory.estimate(name).histogram("town", errors=False).values
    assert [float(share) for _, share in rows] == [round(100 * max(x, 0), 1) for x in answers.tolist()]


def test_what_screens_compare_is_said_in_words():
    assert compared("joint_fit pay") == "whether groups agree about pay"
    assert compared("joint_fit fit") == "whether groups agree about fit"  # an attribute of that name
    assert compared("fit") == "the answers as a whole"
    assert compared("of tomorrow") == "of tomorrow"


def test_many_groups_and_their_screens_fit_a_page(service):
    attributes = [f"a{i}=integer,0,15" for i in range(9)]
    name = service.opened(attributes=attributes, method={"name": "hdg"}, minimum=1, users=100_000)
    page = look(service, f"/campaigns/{name}")
    groups = page.count("<progress ")
    assert groups > 40
    assert re.search(r'class="groups" role="region" tabindex="0"', page)
    assert f'<span id="reached">0</span> of {groups} groups' in page
    assert "Round 1" in page
    service.answer(name, 1, [{f"a{k}": (i + k) % 16 for k in range(9)} for i in range(5000)])
    assert service.close(name, 1)["state"] == "done"
    page = look(service, f"/campaigns/{name}/checks")
    kinds = re.search(r"<td>(<span class=\"screen.*?)(<details>|</td>)", page, re.DOTALL)[1]
    assert 1 <= kinds.count('class="screen') <= 8
    assert re.search(r"<details><summary>all \d+, by their technical names</summary>", page)


def test_long_labels_have_room(service):
    """Dates and moments along an axis: few enough not to overlap, and inside the picture."""
    attributes = ["born=date,1950-01-01,2010-12-31,12", "seen=datetime,2026-01-01T00:00:00,2026-12-31T00:00:00,16"]
    name = service.opened(attributes=attributes, method={"name": "hdg"}, minimum=1, users=1000)
    service.run(
        name, [{"born": f"19{50 + i % 50}-05-01", "seen": f"2026-{1 + i % 12:02d}-03T10:00:00"} for i in range(240)]
    )
    for chart in pictures(complete(service, f"/campaigns/{name}/results")):
        for x, anchor, said in re.findall(
            r'<text(?: class="title")? x="([\d.-]+)" y="[\d.]+" text-anchor="(\w+)">([^<]*)<', chart
        ):
            begins = float(x) - (5 * len(said) if anchor == "end" else 0)  # 9 pixels high, about 5 wide
            assert begins >= 0, said


# Intervals.


def polygon(chart, name):
    """The corners of a band, in shares of the picture's height and width."""
    points = re.search(rf'<polygon class="{name}" points="([^"]+)"', chart)[1]
    return np.array([[float(x) for x in point.split(",")] for point in points.split()])


def test_pictures_show_strict_intervals_of_at_most_forty_stretches(service, monkeypatch):
    """Bands at forty places hold between them as steps: the lower one lags, the upper one leads."""
    name = finished(service, ["pay=integer,0,511"], "ahead", n=600)
    path = f"/campaigns/{name}/results"
    first = look(service, path)
    assert len(parts(first)) == 4
    assert "are worked out" in first
    page = complete(service, path)
    estimate = service.service.directory.estimate(name)
    curve = next(chart for chart in pictures(page) if "Share of people up to each value" in chart)
    low, high = estimate.cdf("pay", 40).interval(simultaneous=True)
    corners = polygon(curve, "wide band")
    assert len(corners) == 4 * 40
    tall = charts.HEIGHT - charts.TOP - charts.BOTTOM
    shares = (charts.HEIGHT - charts.BOTTOM - corners[:, 1]) / tall
    np.testing.assert_allclose(shares[:80], np.repeat(high, 2), atol=1e-3)
    np.testing.assert_allclose(shares[80:][::-1], np.repeat([0.0, *low[:-1]], 2), atol=1e-3)
    assert len(re.findall(",", re.search(r'<polyline class="line" points="([^"]+)"', curve)[1])) == 513
    bars = next(c for c in pictures(page) if "Distribution of" in c)
    assert 4 <= bars.count('class="bar"') == bars.count('class="whisker"') == bars.count('class="wide whisker"') <= 40
    for piece in results._PIECES:
        monkeypatch.setitem(results._PIECES, piece, None)
    for part in parts(first):
        look(service, part)  # kept, not made again


def test_a_closed_wave_makes_new_pieces(service):
    name = service.opened(attributes=ONE, method={"name": "ahead"}, minimum=1, users=1000)
    path = f"/campaigns/{name}/results"
    rng = np.random.default_rng(4)
    for wave in (1, 2):
        service.answer(name, wave, [{"age": int(x)} for x in rng.integers(0, 16, 100)])
        assert service.close(name, wave)["state"] == "done"
        assert len(parts(look(service, path))) == 4
        complete(service, path)


def test_texts_of_the_page_are_those_of_the_library(service):
    name = finished(service, ["born=date,1950-01-01,2009-12-31,60", "age=integer,0,99"], "hdg", n=600)
    page = complete(service, f"/campaigns/{name}/results")
    estimate = service.service.directory.estimate(name)
    cell, levels = r'<td class="number">([^<]*)</td>', [0.1, 0.25, 0.5, 0.75, 0.9]
    rows = re.findall(rf'<th scope="row">(\d+ %)</th>{cell}{cell}', page)
    assert len(rows) == 2 * len(levels)
    born, age = (estimate.quantiles(name, levels) for name in ("born", "age"))
    spans = [f"{low} to {high}" for found in (born, age) for low, high in zip(*found.interval(), strict=True)]
    assert [span for _, _, span in rows] == spans
    assert [value for _, value, _ in rows[:5]] == [str(day) for day in born.values]
    assert [int(value) for _, value, _ in rows[5:]] == [round(float(value)) for value in age.values]  # no false digits
    assert "They come from the answers alone and hold whatever the data are like." in page


def asked(service, name, **form):
    visit = sign_in(service.service, service.analyst)
    headers = {"cookie": f"{COOKIE}={visit}", "content-type": "application/x-www-form-urlencoded"}
    body = urlencode({**form, "csrf": visitor_of(service.service, visit).csrf}).encode()
    return service.client.post(f"/campaigns/{name}/ask", content=body, headers=headers).json()


def test_a_dragged_range_has_the_simultaneous_interval_and_a_typed_one_both(service):
    name = finished(service, ["age=integer,0,15"], "ahead", n=600)
    estimate = service.service.directory.estimate(name)
    dragged = asked(service, name, drag='{"age": [3, 7]}')
    typed = asked(service, name, query="age in 3..7")
    answers = estimate.ask("age in 3..7")
    own, together = answers.interval(), answers.interval(1 - 0.05 / (16 * 17 // 2))
    assert [dragged["low"], dragged["high"]] == [float(side[0]) for side in together]
    assert [typed["low"], typed["high"]] == [float(side[0]) for side in own]
    assert typed["picked"] == dragged["interval"]
    assert dragged["picked"] == ""
    assert PICKED_NOTE in dragged["notes"]
    assert STRICT_NOTE in dragged["notes"]
    assert typed["notes"] == answers.remarks()
    assert dragged["low"] <= typed["low"] <= typed["share"] <= typed["high"] <= dragged["high"]


def test_all_ranges_that_can_be_picked_are_counted():
    a, b = parse_attribute("a=integer,0,9"), parse_attribute("b=nominal,x|y|z")
    long = parse_attribute("c=integer,0,99999")
    assert choices([a, b], "a in 3..7") == 55
    assert choices([a, b], "a in 3..7 and b = y") == 55 * 6
    assert choices([a, b], "b in {x, y}") == 6
    assert choices([a, b], "b in {x, z}") == 8
    assert choices([long], "c in 3..7") == 2048 * 2049 // 2
    many = [parse_attribute(f"c{i}=integer,0,99999") for i in range(3)]
    assert choices(many, "c0 in 3..7 and c1 in 3..7") > 10**12
    assert choices(many, "c0 in 3..7 and c1 in 3..7 and c2 in 3..7") is None
