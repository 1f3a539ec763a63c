"""Everyday questions, comparisons, reports and copies, without a browser."""

import re
import time
from urllib.parse import urlencode

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.queries import parse_query
from ahead_ldp.service.campaigns.campaign import draft
from ahead_ldp.service.dashboard import comparisons, drafts, make_pages
from ahead_ldp.service.dashboard.duplicates import form_of
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.dashboard.results import _everyday
from ahead_ldp.service.server.sessions import sign_in, visitor_of
from tests.service.server.harness import TEXTS, ages, bench


@pytest.fixture(scope="module")
def estimate():
    people = np.random.default_rng(1).binomial(99, 0.4, 20_000)
    return ahead_ldp.simulate(people, "age=integer,0,99", epsilon=3, seed=2)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("age < 30 vs age >= 60", ("age < 30", "age >= 60")),
        ("age between 30 and 40 versus age = 50", ("age between 30 and 40", "age = 50")),
        ("town = 'A vs B'", None),  # one query, about a town of that name
        ("age < 30", None),
        ("age < 30 vs age > 60 vs age = 1", None),
        ("  age < 30 \n vs.   age > 60 ", ("age < 30", "age > 60")),
        ("age < 30 vs ", None),
    ],
)
def test_what_is_a_comparison(text, found):
    assert comparisons.sides(text) == found


def test_a_comparison_is_looked_for_once_at_every_letter():
    """Spaces were looked at again from each of them: 60,000 in a form took 8 s, and nothing else ran meanwhile."""
    started = time.process_time()
    assert comparisons.sides("age" + 200_000 * " " + "age") is None
    assert time.process_time() - started < 5  # of the processor: it takes 0.1, and took 90


def test_a_difference_has_one_interval_from_the_reports(estimate):
    found = comparisons.compared(estimate, ("age < 40", "age >= 40"))
    one, other = estimate.ask("age < 40", "age >= 40").values
    assert found["share"] == pytest.approx(one - other, abs=1e-9)
    assert found["low"] <= found["share"] <= found["high"]
    low, high = estimate.ask("age < 40", "age >= 40").interval()
    assert found["high"] - found["low"] < (high - low).sum() + 1e-9
    assert re.fullmatch(r"[\d.]+ % against [\d.]+ %: [\d.]+ points (more|fewer)", found["text"])
    told = found["low"] > 0 or found["high"] < 0
    assert ("told apart" in found["notes"][0]) == told


@pytest.fixture
def site(tmp_path):
    with bench(tmp_path) as made:
        made.app.pages = make_pages(made.service)
        made.secret = sign_in(made.service, made.operator)
        made.cookie = {"cookie": f"{COOKIE}={made.secret}"}
        yield made


def test_no_share_is_said_to_be_surely_nothing(site):
    """One number of a range of reals had 0.00 % (0.00 to 0.00 %), which was said to hold whatever the data are like."""
    name = site.opened(attributes=["cold=real,-8,8,16"], method={"name": "hh"})
    site.run(name, [{"cold": -5.0} for _ in range(800)])
    headers = {**site.cookie, "content-type": "application/x-www-form-urlencoded"}
    word = visitor_of(site.service, site.secret).csrf

    def ask(query):
        body = urlencode({"csrf": word, "query": query}).encode()
        return site.client.post(f"/campaigns/{name}/ask", content=body, headers=headers).json()

    for query in ("cold = -5", "cold = 3 vs cold > 3", "cold > 3 vs cold = -5"):
        said = ask(query)["wrong"]
        assert "Ask about a range, as in cold between" in said
    assert ask("cold = −5")["wrong"] == "cold is counted in parts. Ask about a range, as in cold between -5 and -4."
    found = ask("cold between −5 and −4")
    assert found["low"] <= 1 <= found["high"]


def test_everyday_questions_comparisons_and_a_report_over_http(site):
    name = site.opened(attributes=["age=integer,0,15"], method={"name": "hh"})
    site.run(name, ages(800))
    headers = {**site.cookie, "content-type": "application/x-www-form-urlencoded"}
    word = visitor_of(site.service, site.secret).csrf

    def ask(query):
        body = f"csrf={word}&query={query}".replace(" ", "+").replace("<", "%3C").replace(">", "%3E").encode()
        return site.client.post(f"/campaigns/{name}/ask", content=body, headers=headers).json()

    both = ask("age between 3 and 5 or age > 10")
    assert both["low"] <= both["share"] <= both["high"]
    apart = ask("age < 4 vs age >= 4")
    assert "points" in apart["interval"]
    assert "could not be read" in ask("age vs age")["wrong"]
    page = site.client.get(f"/campaigns/{name}/results", headers=site.cookie).text
    assert "age &gt; 8" in page
    report = site.client.get(f"/campaigns/{name}/report/page?title=Pay&file=1", headers=site.cookie)
    assert report.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert "<h1>Pay</h1>" in report.text
    assert "<svg" in report.text
    assert "http://" not in re.sub(r'xmlns(:\w+)?="[^"]+"|"http://www.w3.org[^"]*"', "", report.text).split("<body>")[0]


SURVEY = {
    "title": "Pay", "purpose": "To plan.", "controller": "Town", "contact": "t@x.example", "epsilon": "1",
    "people": "5000", "minimum": "100", "close": "both", "enough": "", "days": "7", "retention_days": "30",
    "consent": "Please.", "enrolment": "panel",
    "q1_name": "salary", "q1_question": "What do you earn?", "q1_kind": "whole", "q1_from": "0", "q1_to": "200000",
    "q1_step": "5000", "q1_unit": "euro a year", "q1_example": "52000", "q1_outside": "nearest",
    "q1_help": "Count all.",
    "q2_name": "share", "q2_question": "Which part?", "q2_kind": "number", "q2_from": "0", "q2_to": "1",
    "q2_step": "0.05", "q2_optional": "1",
    "q3_name": "born", "q3_question": "When?", "q3_kind": "day", "q3_from": "1950-01-01", "q3_to": "2009-12-31",
    "q3_step": "365",
    "q4_name": "town", "q4_question": "Where?", "q4_kind": "choice", "q4_choices": "A\nB\nC",
    "q5_name": "age", "q5_question": "How old?", "q5_kind": "whole", "q5_from": "18", "q5_to": "99", "q5_step": "1",
}  # fmt: skip


def test_a_copy_of_a_campaign_is_the_same_form_again():
    terms = drafts.terms_of(SURVEY)
    given, questions = form_of(terms.campaign.record)
    assert given["title"] == "Copy of Pay"
    again = {**given, "title": "Pay"} | {f"q{i}_{k}": v for i, q in enumerate(questions, 1) for k, v in q.items()}
    assert drafts.terms_of(again).digest == terms.digest


UNEQUAL = [
    ("a=integer,0|1000|5000|40000", "whole", "0, 1000, 5000, 40000"),
    ("a=real,0|0.5|2.25|10", "number", "0, 0.5, 2.25, 10"),
    ("a=real,-1|0|3|3", "number", "-1, 0, 3, 3"),  # the largest value alone in the last part
    ("a=date,1950-01-01|1980-01-01|2010-12-31", "day", "1950-01-01, 1980-01-01, 2010-12-31"),
    ("a=integer,0,63,10,missing=cell", "whole", "0, 6, 12, 19, 25, 32, 38, 44, 51, 57, 63"),  # as equal as they can be
]


@pytest.mark.parametrize("attribute, kind, borders", UNEQUAL)
def test_steps_that_are_not_all_alike_are_copied(site, attribute, kind, borders):
    plain = {**TEXTS, "schema": [attribute], "epsilon": "1", "minimum": 20, "users": 1000, "created": "2026-11-16"}
    record = draft(plain).campaign.record
    given, (question,) = form_of(record)
    assert (question["kind"], question["borders"], question["step"]) == (kind, borders, "")
    again = {**given, "title": "Pay"} | {f"q1_{key}": text for key, text in question.items()}
    again["q1_borders"] = question["borders"].replace(", ", "\r\n")  # one a line is as good
    assert drafts.terms_of(again).campaign.record["schema"] == record["schema"]
    assert borders in site.client.get(f"/new?like={site.create(attributes=[attribute])}", headers=site.cookie).text


def test_what_does_not_fit_into_the_form_says_so(site):
    odd = {**TEXTS, "schema": ["a=time,00:00,23:59:59,24"], "epsilon": "1", "minimum": 20, "users": 1000}
    with pytest.raises(ValueError, match="does not fit into the form"):
        form_of(draft({**odd, "created": "2026-11-16"}).campaign.record)
    name = site.create(attributes=["a=time,00:00,23:59:59,24"])
    page = site.client.get(f"/new?like={name}", headers=site.cookie)
    assert page.status_code == 422
    assert "does not fit into the form" in page.text


def test_a_copy_is_one_click_away(site):
    name = site.create(title="Buses", attributes=["age=integer,18,99"])
    assert f'href="/new?like={name}"' in site.client.get(f"/campaigns/{name}", headers=site.cookie).text
    page = site.client.get(f"/new?like={name}", headers=site.cookie)
    assert page.status_code == 200
    assert 'value="Copy of Buses"' in page.text
    assert 'value="99"' in page.text
    assert site.client.get(f"/new?like={'0' * 64}", headers=site.cookie).status_code == 404


def test_a_link_has_half_of_the_digest_and_leads_to_the_page(site):
    name = site.opened()
    page = site.client.get(f"/campaigns/{name}", headers=site.cookie).text
    link = re.search(r'id="link">[^<]*(/c/[0-9a-f]+)<', page)[1]
    assert link == f"/c/{name[:32]}"
    assert f'campaign="{name}"' in site.client.get(link).text
    assert f'campaign="{name}"' in site.client.get(f"/c/{name}").text
    for wrong in (name[:31], name[:20], "0" * 32, f"{name}0", name[:32].upper()):
        assert site.client.get(f"/c/{wrong}").status_code == 404


def test_the_page_shows_questions_in_everyday_words_that_it_can_read():
    """A choice is written without quotes where that is read as this choice, and else there is no such example."""
    texts = [
        "joined=date,1990-01-01,2026-12-31,90",
        "net pay=integer,0,160000,32",
        "way=nominal,by bus or train|by car",
        "music=nominal,rock and roll|jazz",
    ]
    odd = ["a<b=real,0,10,8", "x=nominal,<b>|c and d"]
    said = [_everyday(a) for a in as_schema([*texts, *odd]).attributes]
    assert said == ["joined > 2008-07-02", "net pay > 80k", "way = by bus or train", "music = jazz", '"a<b" > 5', ""]
    assert str(parse_query(said[2])) == 'way = "by bus or train"'
