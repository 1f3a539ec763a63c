"""Links by which others read results: until a day, closed waves only; and files named after attributes."""

import csv
import io
import re
import sys
import threading
from html import unescape
from urllib.parse import urlencode

import pytest

from ahead_ldp.service.campaigns.turns import Turns
from ahead_ldp.service.dashboard import files, make_pages, results
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.server.sessions import sign_in, visitor_of
from ahead_ldp.service.store.rows import LINKS
from tests.reading import flesch
from tests.service.server.harness import bench
from tests.test_reading import JARGON

DAY_S = 86_400


@pytest.fixture
def service(tmp_path):
    with bench(tmp_path) as made:
        made.app.pages = make_pages(made.service)
        yield made


def counted(service):
    name = service.opened(
        attributes=["age=integer,0,15", "town=nominal,=A|B"], method={"name": "hdg"}, minimum=1, users=500
    )
    service.run(name, [{"age": i % 16, "town": "=A" if i % 3 else "B"} for i in range(300)])
    return name


def post(service, token, path, **form):
    visit = sign_in(service.service, token)
    headers = {"cookie": f"{COOKIE}={visit}", "content-type": "application/x-www-form-urlencoded"}
    body = urlencode({**form, "csrf": visitor_of(service.service, visit).csrf}).encode()
    return service.client.post(path, content=body, headers=headers)


def shared_path(service, name, days=2):
    answer = post(service, service.operator, f"/campaigns/{name}/share", days=days)
    assert answer.status_code == 200, answer.text
    return re.search(r"(/shared/[^<\s]+)", answer.text)[1]


def test_a_link_shows_results_and_nothing_else_until_its_day(service):
    name = counted(service)
    path = shared_path(service, name)
    page = service.client.get(path)
    assert page.status_code == 200
    assert "noisy answers" in page.text
    for word in ("csrf", "New campaign", "Sign out", f"/campaigns/{name}"):
        assert word not in page.text
    assert service.client.get(f"{path}/attribute?name=age&piece=summary").status_code == 200
    assert service.client.get(f"{path}/download?attribute=age&format=csv").status_code == 200
    secret = path.rsplit("/", 1)[1]
    assert secret not in (service.store.document(name, 0, LINKS) or b"").decode()
    for other in (f"{path}x", f"/shared/{name}/", f"/shared/{name}/{'A' * 32}", f"/shared/{'0' * 64}/{secret}"):
        assert service.client.get(other).status_code == 404, other
    other = service.opened(title="Another")
    assert service.client.get(f"/shared/{other}/{secret}").status_code == 404
    assert service.client.get(f"/campaigns/{name}/results").status_code == 303  # a link is no visit
    service.clock.pass_(2 * DAY_S - 1)
    assert service.client.get(path).status_code == 200
    service.clock.pass_(1)
    for ended in (path, f"{path}/attribute?name=age", f"{path}/download?attribute=age&format=csv"):
        assert service.client.get(ended).status_code == 404


def test_whoever_has_a_link_makes_the_server_work_once_and_in_turn(service, monkeypatch):
    """A picture is half a second of a processor, and a link may be followed by everybody at once.

    Files waited for their turn. Pieces of the page did not: forty at once were worked on.
    """
    path, turns = shared_path(service, counted(service)), Turns(1)
    monkeypatch.setattr(service.service, "turns", turns)
    asked = [f"{path}/download?attribute=age&format={form}" for form in ("csv", "png")] + [f"{path}/report"]
    pieces = ("piece=summary", "piece=distribution", "piece=fine", "piece=cumulative", "piece=quantiles", "with=town")
    asked += [f"{path}/attribute?name=age&{piece}" for piece in pieces]
    with turns.one():
        assert [service.client.get(one).status_code for one in asked] == [429] * 9
        assert service.client.get(path).status_code == 200
    files = [service.client.get(one) for one in asked]
    assert [file.status_code for file in files] == [200] * 9
    with turns.one():  # kept, not made again
        assert [service.client.get(one).content for one in asked] == [file.content for file in files]


def test_what_a_link_makes_the_server_keep_is_bounded(service, monkeypatch):
    """Every pair of attributes has files and a table of its own: a walk through them all filled the memory."""
    monkeypatch.setattr(results, "_MOST_KEPT", 3)
    path, made = shared_path(service, counted(service)), []
    monkeypatch.setattr(files, "made", lambda *given: made.append(given[2]) or (b"x", "text/csv"))
    forms = ("csv", "parquet", "svg", "png")
    for form in (*forms, *forms[1:], "csv", "png"):
        assert service.client.get(f"{path}/download?attribute=age&format={form}").status_code == 200
    assert made == [*forms, "csv"]  # the last three were there, the first was not
    page = service.client.get(f"{path}/attribute?name=age&piece=cumulative")
    assert "<svg" in page.text


def test_a_link_gives_the_report_as_a_page_and_as_a_pdf(service):
    path = shared_path(service, counted(service))
    hrefs = re.findall(r'href="([^"]*/report[^"]*)"', service.client.get(path).text)
    assert hrefs == [f"{path}/report", f"{path}/report?format=pdf"]
    page, file = (service.client.get(unescape(href)) for href in hrefs)
    assert (page.headers["content-type"], file.headers["content-type"]) == (
        "text/html; charset=utf-8",
        "application/pdf",
    )
    assert "<svg " in page.text
    assert file.content.startswith(b"%PDF-")
    assert file.headers["content-disposition"] == 'attachment; filename="Pay.pdf"'


def test_a_server_without_a_package_says_which_to_install(service, monkeypatch):
    path = shared_path(service, counted(service))
    for package, asked, extra in (
        ("fpdf", "report?format=pdf", "pdf"),
        ("matplotlib.figure", "download?attribute=age&format=png", "plot"),
        ("pyarrow", "download?attribute=age&format=parquet", "batch"),
    ):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            answer = service.client.get(f"{path}/{asked}")
        assert answer.status_code == 501, asked
        assert f"pip install 'ahead-ldp[{extra}]'" in unescape(answer.text)


def test_links_are_made_and_ended_by_operators(service):
    name = counted(service)
    path = shared_path(service, name)
    assert post(service, service.analyst, f"/campaigns/{name}/share", days=2).status_code == 403
    for days in ("0", "367", "x", ""):
        assert post(service, service.operator, f"/campaigns/{name}/share", days=days).status_code in (400, 422)
    assert post(service, service.operator, f"/campaigns/{name}/share", end="1").status_code == 303
    assert service.client.get(path).status_code == 404


def test_links_that_are_ended_while_another_is_made_stay_ended(service, monkeypatch):
    """The list was read, another server ended the links, and the old list was written: all of them worked again."""
    name = counted(service)
    old, read, ends = shared_path(service, name), service.store.document, []

    def between(*given):
        found = read(*given)
        if not ends and given[2] == LINKS:  # the links have been read, to write them down with one more
            service.app.pages = make_pages(service.service)  # those of another server on the same store
            given = {"args": (service, service.operator, f"/campaigns/{name}/share"), "kwargs": {"end": 1}}
            ends.append(threading.Thread(target=post, **given))
            ends[0].start()
            ends[0].join()
        return found

    monkeypatch.setattr(service.store, "document", between)
    new = shared_path(service, name)
    assert service.client.get(old).status_code == 404
    assert service.client.get(new).status_code == 200


def test_before_a_round_is_counted_a_link_shows_nothing(service):
    name = service.opened()
    service.answer(name, 1, [{"age": 3}] * 30)
    page = service.client.get(shared_path(service, name)).text
    assert "No round has been counted yet" in page
    assert "%" not in re.sub(r"<[^>]+>", "", page)


def test_tables_have_numeric_edges_and_no_formula(service):
    name = counted(service)
    headers = {"cookie": f"{COOKIE}={sign_in(service.service, service.analyst)}"}

    def table(query):
        answer = service.client.get(f"/campaigns/{name}/download?{query}", headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.headers["content-disposition"], list(csv.DictReader(io.StringIO(answer.content.decode())))

    named, rows = table("attribute=age")
    assert 'filename="age.csv"' in named
    assert [(int(r["from"]), int(r["below"])) for r in rows] == [(i, i + 1) for i in range(16)]
    for r in rows:
        assert float(r["low"]) <= float(r["share"]) + 1e-9
        assert float(r["simultaneous_low"]) <= float(r["low"]) <= float(r["high"]) <= float(r["simultaneous_high"])
    assert sum(float(r["share"]) for r in rows) == pytest.approx(1, abs=1e-6)
    named, rows = table("attribute=town")
    assert [r["value"] for r in rows] == ["'=A", "B"]
    named, rows = table("attribute=age&with=town")
    assert 'filename="age-town.csv"' in named
    assert sum(float(r["share"]) for r in rows) == pytest.approx(1, abs=1e-6)
    for wrong in ("attribute=zz", "attribute=age&with=age", "attribute=age&with=zz", "with=age&format=zz"):
        answer = service.client.get(f"/campaigns/{name}/download?{wrong}", headers=headers)
        assert answer.status_code in (400, 404)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1+1", "＋1", "－1", "＠SUM", "\t=1", "\r=1"])
def test_no_text_of_a_table_is_a_formula(text):
    assert files._harmless(text) == f"'{text}"
    assert files._harmless(f"a{text}") == f"a{text}"


def test_words_cannot_inject_into_results(service):
    words = [{"attribute": "x", "question": "<script>alert(1)</script>", "unit": "<i>y</i>"}]
    name = service.opened(attributes=["x=integer,0,15"], method={"name": "hh"}, minimum=1, wording=words)
    service.run(name, [{"x": i % 16} for i in range(100)])
    headers = {"cookie": f"{COOKIE}={sign_in(service.service, service.operator)}"}
    pieces = [f"/attribute?name=x&piece={p}" for p in ("summary", "distribution", "fine", "cumulative")]
    paths = ["", "/results", "/checks", *pieces]
    for path in paths:
        page = service.client.get(f"/campaigns/{name}{path}", headers=headers)
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<i>y" not in page.text
    assert "&lt;script&gt;" in service.client.get(f"/campaigns/{name}/results", headers=headers).text


def words_of(page):
    """What people read of a page: its paragraphs and captions, without what programs and pictures hold."""
    body = re.sub(r"<(script|svg|code|template)\b.*?</\1>", " ", page.split("<main", 1)[1], flags=re.DOTALL)
    parts = re.findall(r"<(p|figcaption|summary|h\d|span|label)\b[^>]*>(.*?)</\1>", body, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]+>", " ", part)).split()) for _, part in parts]


def test_first_screens_are_plain_and_without_jargon(service):
    name = counted(service)
    visit = {"cookie": f"{COOKIE}={sign_in(service.service, service.operator)}"}
    for piece in ("summary", "distribution", "cumulative", "quantiles"):
        service.client.get(f"/campaigns/{name}/attribute?name=age&piece={piece}", headers=visit)
    draft = service.create(title="A draft")
    for path in (f"/campaigns/{name}/results", f"/campaigns/{name}", f"/campaigns/{draft}", "/new", "/"):
        said = words_of(service.client.get(path, headers=visit).text)
        assert [(word, text) for word in JARGON for text in said if re.search(word, text, re.I)] == [], path
    said = words_of(service.client.get(f"/campaigns/{name}/results", headers=visit).text)
    sentences = [text for text in said if text.count(" ") >= 6]
    assert any(text.startswith("For about ") for text in sentences)
    assert flesch(" ".join(sentences)) >= 60
