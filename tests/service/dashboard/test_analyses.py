"""Pages of questions beyond shares: the library's numbers, pictures without broken ones, and mistakes that are said."""

import gc
import re
import sys
import weakref
from html import unescape
from urllib.parse import urlencode

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.service.campaigns import directory
from ahead_ldp.service.dashboard import make_pages
from ahead_ldp.service.dashboard.analyses import margins_of
from ahead_ldp.service.dashboard.analysis_charts import _distinct, _round_marks, _round_reach, caterpillar, points
from ahead_ldp.service.dashboard.found import own_margins
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.server.sessions import sign_in, visitor_of
from tests.service.browser.test_results_pages import parts, pictures
from tests.service.server.harness import bench

ATTRIBUTES = ["pay=integer,0,15", "team=nominal,north|=south"]
PAGES = ("spread", "change", "groups", "weights", "rounds", "report")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with bench(tmp_path_factory.mktemp("pages")) as made:
        made.app.pages = make_pages(made.service)
        made.names = []
        for title, moved in (("Pay <2025>", 0), ("Pay <2026>", 8)):
            answered(made, title, moved)
        made.visit = sign_in(made.service, made.analyst)
        yield made


def answered(service, title, moved=0):
    """One campaign more, with its results."""
    rng, people = np.random.default_rng(4), []
    for i in range(500):
        pay = int(min(rng.poisson(4), 7)) + (moved if i % 2 else 0)
        people.append({"pay": pay, "team": "north" if i % 3 else "=south"})
    options = {"attributes": ATTRIBUTES, "epsilon": "8", "method": {"name": "hdg"}, "minimum": 1, "users": 1000}
    service.names.append(service.opened(title=title, **options))
    service.run(service.names[-1], people)
    service.clock.pass_(86_400)


def look(service, path, status=200):
    answer = service.client.get(path, headers={"cookie": f"{COOKIE}={service.visit}"})
    assert answer.status_code == status, (path, answer.text)
    return answer.text


def asked(service, page, **fields):
    """A page with everything that it loads by itself, and these parts."""
    found = look(service, f"/campaigns/{service.names[1]}/{page}?{urlencode(fields, doseq=True)}")
    return found, "".join(look(service, path) for path in parts(found))


def estimates(service):
    return [service.service.directory.estimate(name) for name in service.names]


def said(page):
    return unescape(re.sub(r"<[^>]+>", " ", page))


def test_inequality_shows_the_librarys_numbers(service):
    page, found = asked(service, "spread", first="pay", second="team")
    assert "Pay &lt;2026&gt;" in page
    assert len(parts(page)) == 3  # numbers, the Lorenz curve, and the pair
    assert len(pictures(found)) == 1
    gini = estimates(service)[1].gini("pay")
    (low,), (high,) = gini.interval()
    assert f"{gini.said(low, high - low)} to {gini.said(high, high - low)}" in said(found)
    assert "Mutual information" in found
    assert "choose two different questions" in asked(service, "spread", first="pay", second="pay")[1]


def test_the_pages_of_analyses_stand_below_results(service):
    """And their tabs lead there: those of two pages led to `/campaigns/<Macro 'campaign'>/results`."""
    base = f"/campaigns/{service.names[1]}"
    for page in PAGES:
        shown = look(service, f"{base}/{page}")
        for path in set(re.findall(r'<a href="(/[^"]*)"', shown)):
            look(service, unescape(path))
        assert re.findall(r'href="([^"]*)" aria-current="(\w+)"', shown) == [
            (f"{base}/results", "true"),
            (f"{base}/{page}", "page"),
        ]


def test_change_shows_both_curves_and_what_moved(service):
    page, found = asked(service, "change", since=service.names[0], query="pay >= 8")
    assert f'value="{service.names[1]}"' not in page  # a campaign is not compared with itself
    assert len(pictures(found)) == 3  # two of pay, one of team
    assert "before line" in found
    change = ahead_ldp.difference(*estimates(service))
    where = change.test("pay")
    some = where.answers.labels["pay"][where.where].tolist()
    assert len(some) > 3  # so the first three are named
    named = ", ".join(map(str, some[:3]))
    assert f"pay changed, with 95 % confidence: another share of people is at or below {named} and others." in said(
        found
    )
    assert not change.test("team").rejected
    assert "Whether team changed cannot be told." in said(found)
    assert points(change.ask("pay >= 8").values[0]) in said(found)
    none, nothing = asked(service, "change")
    assert (parts(none), nothing) == ([], "")
    look(service, f"/campaigns/{service.names[1]}/change?since={'0' * 64}", 404)


def test_rows_whose_names_begin_alike_can_be_told_apart():
    assert _distinct(["Pay of our members 2025", "Pay of our members 2026", "Rent"])[:2] == [
        "Pay of …rs 2025",
        "Pay of …rs 2026",
    ]
    assert _distinct(["a long name of a group", "another"]) == ["a long name of…", "another"]


def test_names_of_groups_have_room():
    people = {"pay": np.arange(4000) % 200_000, "age": np.arange(4000) % 80}
    estimate = ahead_ldp.simulate(people, ["pay=integer,0,199999,40", "age=integer,0,79"], epsilon=8, seed=1)
    means = estimate.by("pay", 2).mean("age")
    assert "100,000..199,999" in means.labels["pay"]  # 16 letters: it was cut at 15, with room beside it
    assert ">100,000..199,999<" in caterpillar(means, "mean")


@pytest.mark.parametrize("reach, top", [(0.16, 0.2), (0.2, 0.2), (0.21, 0.4), (0.41, 1.0), (0.003, 0.004), (0.9, 1.0)])
def test_half_of_a_round_reach_is_round(reach, top):
    assert _round_reach(reach) == pytest.approx(top)


def test_groups_are_a_caterpillar_plot_and_a_table(service):
    for what, more in (("mean", {}), ("median", {}), ("share", {"query": "pay >= 8"})):
        _, found = asked(service, "groups", by="team", what=what, of="pay", first="north", second="=south", **more)
        (picture,) = pictures(found)
        assert picture.count('class="dot"') == 2
        assert "=south less north" in said(found)
    mean = estimates(service)[1].by("team").mean("pay")
    _, found = asked(service, "groups", by="team", what="mean", of="pay")
    low, high = mean.interval()
    assert f"{mean.said(low[0], high[0] - low[0])} to {mean.said(high[0], high[0] - low[0])}" in said(found)
    assert re.search(r"\d+ to \d+ %", said(asked(service, "groups", by="team", what="share", query="pay >= 8")[1]))
    for wrong, message in [
        ({"by": "team", "what": "share"}, "write of which people you want the share"),
        ({"by": "zz", "what": "mean", "of": "pay"}, "zz"),
        ({"by": "team", "what": "mean", "of": ""}, "choose what to ask about"),
        (
            {"by": "pay", "bins": "four", "what": "share", "query": "team = north"},
            "Ranges: please write a whole number of 1 or more.",
        ),
    ]:
        assert message in said(asked(service, "groups", **wrong)[1])


def weigh(service, **form):
    headers = {"cookie": f"{COOKIE}={service.visit}", "content-type": "application/x-www-form-urlencoded"}
    body = urlencode({**form, "csrf": visitor_of(service.service, service.visit).csrf}).encode()
    return service.client.post(f"/campaigns/{service.names[1]}/weights", content=body, headers=headers)


def test_weights_start_from_the_peoples_own_shares(service):
    page = look(service, f"/campaigns/{service.names[1]}/weights")
    estimate = estimates(service)[1]
    given = unescape(re.search(r'<textarea id="margins"[^>]*>(.*?)</textarea>', page, re.DOTALL)[1])
    assert given == own_margins(estimate)
    assert set(margins_of(given)["team"]) == {"north", "=south"}
    answer = weigh(service, margins="team,north,1\nteam,=south,1", queries="pay >= 8")
    found = estimate.calibrated({"team": {"north": 1, "=south": 1}}).ask("pay >= 8")
    (low,), (high,) = found.interval()
    assert f"{100 * found.value:.0f} % ({100 * low:.0f} to {100 * high:.0f} %)" in said(answer.text)
    assert "50.0 %" in answer.text
    for wrong, message in {
        "team,north": "is no line of question, category, share",
        "team,north,x": "is no line of question, category, share",
        "team,north,1\nteam,north,2": "have “north” twice",
        "team,north,1": "The share of “=south” of team is missing",
        "": "Please write the known shares",
        "zz,a,1": "Nobody was asked about “zz”",
    }.items():
        assert message in said(weigh(service, margins=wrong, queries="pay >= 8").text)
    assert "<b>" not in weigh(service, margins="<b>,1,1", queries="<b>").text


def test_the_pages_take_as_many_queries_as_the_routes(service):
    assert "at most 16 queries" in said(
        weigh(service, margins="team,north,1\nteam,=south,1", queries="pay = 8\n" * 17).text
    )
    many = urlencode({"queries": "pay = 8\n" * 65})
    headers = {"cookie": f"{COOKIE}={service.visit}"}
    answer = service.client.get(f"/campaigns/{service.names[1]}/report/page?{many}", headers=headers)
    assert (answer.status_code, "at most 64 queries" in answer.text) == (422, True)


def test_rounds_have_the_table_of_what_they_cost(service):
    page, found = asked(service, "rounds", query="pay >= 8", **{"with": [service.names[0]]})
    assert "checked" in page
    assert len(pictures(found)) == 1
    rows = re.findall(r'<th scope="row">(Pay [^<]*)</th><td class="number">500</td>(.*?)</tr>', page)
    assert [re.findall(r">([\d.]+)<", row) for _, row in rows] == [["8", "8"], ["8", "16"]]
    assert found.index("Pay &lt;2025&gt;") < found.index("Pay &lt;2026&gt;")  # in order of time
    draft = service.create(title="Pay 2027", attributes=ATTRIBUTES, epsilon="0.5")
    before = look(service, f"/campaigns/{draft}/rounds?{urlencode({'with': service.names}, doseq=True)}")
    assert ">16.5<" in before  # shown before it opens
    assert not parts(before)


def test_the_report_is_the_same_page(service):
    base = f"/campaigns/{service.names[1]}/report"
    assert "A page to send" in look(service, base)
    headers = {"cookie": f"{COOKIE}={service.visit}"}
    query = urlencode({"title": "<Pay>", "queries": "pay >= 8\npay in 1..3", "file": "html"})
    answer = service.client.get(f"{base}/page?{query}", headers=headers)
    expected = ahead_ldp.report_page(estimates(service)[1], "pay >= 8", "pay in 1..3", title="<Pay>", kind="strict")
    assert answer.text == expected
    assert "attachment" in answer.headers["content-disposition"]
    assert "script-src" not in answer.headers["content-security-policy"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_report_is_a_pdf_too(service, monkeypatch):
    base, headers = f"/campaigns/{service.names[1]}", {"cookie": f"{COOKIE}={service.visit}"}
    assert 'value="pdf"' in look(service, f"{base}/report")
    answer = service.client.get(f"{base}/report/page?title=Pay&file=pdf", headers=headers)
    assert answer.content == ahead_ldp.report_pdf(estimates(service)[1], title="Pay", kind="strict")
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.headers["content-disposition"] == 'attachment; filename="report.pdf"'
    monkeypatch.setitem(sys.modules, "fpdf", None)
    missing = look(service, f"{base}/report/page?file=pdf", 501)
    assert "pip install 'ahead-ldp[pdf]'" in unescape(missing)


def test_a_report_has_the_questions_as_people_read_them(service):
    words = [{"attribute": "pay", "question": "What do you earn, <before> tax?", "unit": "euro"}]
    name = service.opened(
        attributes=ATTRIBUTES, wording=words, method={"name": "hdg"}, epsilon="8", minimum=1, users=100
    )
    service.run(name, [{"pay": i % 8, "team": "north"} for i in range(60)])
    page = look(service, f"/campaigns/{name}/report/page")
    assert re.findall(r"<h2>(.*?)</h2>", page) == ["What do you earn, &lt;before&gt; tax? (euro)", "team"]
    assert "<h2>What do you earn, &lt;before&gt; tax? (euro)</h2>" in look(service, f"/campaigns/{name}/spread")


def test_before_the_first_wave_is_closed_pages_say_so_and_strangers_see_none(service):
    fresh = service.opened(title="Fresh")
    for page in PAGES:
        assert ("No round has been counted yet" in look(service, f"/campaigns/{fresh}/{page}")) == (page != "rounds")
        assert service.client.get(f"/campaigns/{service.names[1]}/{page}").status_code == 303
    for path in ("spread/of?kind=numbers&first=pay", "groups/of?by=team", "report/page"):
        look(service, f"/campaigns/{fresh}/{path}", 409)
        assert service.client.get(f"/campaigns/{service.names[1]}/{path}").status_code == 303
    look(service, f"/campaigns/{service.names[1]}/spread/of?kind=zz", 404)


def test_marks_are_round_and_inside():
    for low, high in ((0.013, 0.87), (-0.3, 0.2), (1234.0, 1290.0), (0.0, 1.0), (5.0, 5.0)):
        marks = _round_marks(low, high)
        assert 2 <= len(marks) <= 4
        assert np.all(np.diff(marks) > 0)
    assert _round_marks(-0.3, 0.2) == [-0.2, 0.0, 0.2]
    assert [points(x) for x in (0.0123, -0.0123, 0.0, -0.0001)] == ["+1.2", "−1.2", "0.0", "0.0"]


def test_no_page_and_no_answer_keeps_an_estimate_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(directory, "_MOST_CAMPAIGNS", 2)
    with bench(tmp_path) as service:
        service.app.pages, service.names = make_pages(service.service), []
        answered(service, "2025")
        answered(service, "2026", 8)
        service.visit = sign_in(service.service, service.analyst)
        first, second = service.names
        for page, fields in {
            "results": {},
            "spread": {"first": "pay", "second": "team"},
            "change": {"since": first, "query": "pay >= 8"},
            "groups": {"by": "team", "what": "mean", "of": "pay"},
            "rounds": {"with": first, "query": "pay >= 8"},
        }.items():
            assert "wrong" not in asked(service, page, **fields)[1]
        for name in service.names:
            found = service.call("GET", f"/campaigns/{name}/results", "analyst").json()
            assert found == service.call("GET", f"/campaigns/{name}/results", "analyst").json()
            assert len(found["attributes"]) == 2
        looked_at = [weakref.ref(estimate) for estimate in estimates(service)]
        for name in ("2027", "2028"):
            answered(service, name)
            service.call("GET", f"/campaigns/{service.names[-1]}/results", "analyst")
        gc.collect()
        assert [kept() for kept in looked_at] == [None, None]
        assert service.call("GET", f"/campaigns/{second}/results", "analyst").json() == found


def test_groups_of_numbers_are_named_as_people_say_them(service):
    name = service.opened(
        title="Cold", attributes=["cold=real,-8,8,16", "n=integer,0,7"], method={"name": "hdg"}, epsilon="8", minimum=1
    )
    service.run(name, [{"cold": -7.5 + i % 16, "n": i % 8} for i in range(400)])

    def asked_of(by, **more):
        query = urlencode({"by": by, "bins": "2", "what": "mean", "of": "n" if by == "cold" else "cold", **more})
        return said(look(service, f"/campaigns/{name}/groups/of?{query}"))

    found = asked_of("cold", first="-8 to below 0", second="0 to 8")
    assert "0 to 8 less -8 to below 0:" in found
    assert "[" not in found
    assert "[0, 8] less [-8, 0):" in asked_of("cold", first="[-8, 0)", second="[0, 8]")  # as the commands write them
    assert "4 to 7 less 0 to 3:" in asked_of("n", first="0 to 3", second="4 to 7")
    wrong = asked_of("n", first="0 to 3", second="9")
    assert "There is no group “9”. These are the choices: 0 to 3, 4 to 7." in wrong
    page = look(service, f"/campaigns/{name}/groups?by=cold")
    assert "datalist" not in page  # which groups there will be is not known yet
    assert '<option value="north">' in look(service, f"/campaigns/{service.names[1]}/groups")
    assert "datalist" not in look(service, f"/campaigns/{service.names[1]}/groups?by=pay")


def test_only_campaigns_with_the_same_question_are_offered_to_compare(service):
    lone = service.opened(
        title="Hours", attributes=["hours=integer,0,7"], method={"name": "hdg"}, epsilon="8", minimum=1
    )
    service.run(lone, [{"hours": i % 8} for i in range(60)])
    both, alone = service.names[1], f"/campaigns/{lone}"
    for page in ("change", "report"):
        assert "Hours, " not in look(service, f"/campaigns/{both}/{page}")
        assert "Pay &lt;2025&gt;, " in look(service, f"/campaigns/{both}/{page}")
    assert "No other campaign here has results of the same question." in look(service, f"{alone}/change")
    offered = look(service, f"/campaigns/{both}/rounds")  # what they cost together may still be asked
    assert (
        offered.index("Pay &lt;2025&gt;, ") < offered.index("Campaigns with other questions") < offered.index("Hours, ")
    )
    _, found = asked(service, "rounds", query="pay >= 8", **{"with": [service.names[0], lone]})
    assert "Not asked about “pay”: Hours." in said(found)
    assert "You can ask about" in said(asked(service, "rounds", query="zz > 1", **{"with": [service.names[0]]})[1])
