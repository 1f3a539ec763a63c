"""Words of a campaign are words on every page, in every file and on every link: nothing that they say runs or loads."""

import re
from html.parser import HTMLParser
from urllib.parse import quote, urlencode

import pytest

from ahead_ldp.service.dashboard import make_pages
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.server.sessions import sign_in
from tests.service.dashboard.test_shares import shared_path
from tests.service.server.harness import bench

MARK = "zqx"
HOSTILE = (
    f"""'"><img src={MARK} onerror={MARK}()><script>{MARK}</script>{{{{7*7}}}}</title></textarea></style>--><!--"""
)
NAME = HOSTILE.replace("=", "/")  # what a name of the text form can have
AGE, TOWN = f"age {NAME}", f"town {NAME}"
LABELS = (f"A {NAME}", "=B")


class Reader(HTMLParser):
    """What a browser would take for an element or an attribute of one."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found = []

    def handle_starttag(self, tag, attrs):
        named = [name for name, _ in attrs]
        loads = [value for name, value in attrs if name in ("src", "href", "action") and value]
        if MARK in "".join([tag, *named]) or any(name.startswith("on") for name in named):
            self.found.append((tag, attrs))
        if any(value.startswith((MARK, "javascript:", "data:text")) for value in loads):
            self.found.append((tag, attrs))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    words = [
        {"attribute": AGE, "question": HOSTILE, "unit": "<b>y</b>", "help": HOSTILE, "example": "<i>3</i>"},
        {"attribute": TOWN, "question": HOSTILE, "choices": [HOSTILE, "B"]},
    ]
    quoted = "|".join(LABELS)
    with bench(tmp_path_factory.mktemp("words")) as made:
        made.app.pages = make_pages(made.service)
        made.names = []
        for number in (1, 2):
            name = made.opened(
                title=f"{number} {HOSTILE}", purpose=HOSTILE, controller=HOSTILE, contact=HOSTILE,
                texts={"consent": HOSTILE}, attributes=[f"{AGE}=integer,0,15", f"{TOWN}=nominal,{quoted}"],
                method={"name": "hdg"}, minimum=1, users=500, wording=words,
            )  # fmt: skip
            if number == 1:
                made.run(name, [{AGE: i % 16, TOWN: LABELS[i % 2]} for i in range(300)])
            made.names.append(name)
        yield made


def places(service):
    """Every page with what can be asked of it, of a campaign that has ended and of one that is open."""
    done, opened = service.names
    for name in service.names:
        yield from (f"/campaigns/{name}{path}" for path in ("", "/live", "/checks", "/results", "/report"))
        yield f"/new?like={name}"
        yield f"/c/{name[:32]}"
    yield from ("/", "/new", f"/campaigns/{opened}/qr.svg")
    for page in ("spread", "change", "groups", "rounds", "weights"):
        yield f"/campaigns/{done}/{page}?" + urlencode({"since": done, "with": opened, "by": TOWN, "query": HOSTILE})
    at, shared = f"/campaigns/{done}", shared_path(service, done)
    for base in (at, shared):
        yield f"{base}/report"
        for piece in ("summary", "distribution", "cumulative", "quantiles", "fine"):
            yield f"{base}/attribute?" + urlencode({"name": AGE, "piece": piece})
        yield f"{base}/attribute?" + urlencode({"name": TOWN, "piece": "distribution"})
        yield f"{base}/attribute?" + urlencode({"name": AGE, "with": TOWN})
        for form in ("csv", "svg"):
            for asked in ({"attribute": AGE}, {"attribute": AGE, "with": TOWN}, {"attribute": TOWN}):
                yield f"{base}/download?" + urlencode({**asked, "format": form})
    yield shared
    yield f"{at}/spread/of?" + urlencode({"kind": "numbers", "first": AGE})
    yield f"{at}/spread/of?" + urlencode({"kind": "pair", "first": AGE, "second": TOWN})
    yield f"{at}/change/of?" + urlencode({"since": done, "name": AGE})
    yield f"{at}/change/of?" + urlencode({"since": done, "query": HOSTILE})
    yield f"{at}/groups/of?" + urlencode({"by": TOWN, "what": "mean", "of": AGE})
    yield f"{at}/groups/of?" + urlencode({"by": HOSTILE, "what": "mean", "of": HOSTILE})
    yield f"{at}/rounds/of?" + urlencode({"query": f'"{AGE}" = 3', "with": done})
    yield f"{at}/report/page?" + urlencode({"title": HOSTILE, "by": TOWN, "since": done})
    yield f"{at}/attribute?" + urlencode({"name": HOSTILE})
    yield "/campaigns/" + quote(HOSTILE, safe="")
    yield "/rehearsals/" + quote(HOSTILE, safe="")


@pytest.mark.filterwarnings("ignore:constrained_layout not applied")  # labels as long as these have no room
def test_nothing_that_somebody_wrote_is_an_element_of_a_page(service):
    lines = {"cookie": f"{COOKIE}={sign_in(service.service, service.operator)}"}
    said = 0
    for path in places(service):
        answer = service.client.get(path, headers=lines)
        kind = answer.headers.get("content-type", "")
        assert answer.status_code in (200, 404, 409, 422), (path, answer.status_code, answer.text[-300:])
        assert "49" not in re.findall(r"\{\{|(?<=zqx&lt;/script&gt;)49", answer.text), path
        disposition = answer.headers.get("content-disposition", "")
        assert MARK not in re.sub(r'filename="[A-Za-z0-9-]+\.[a-z]+"', "", disposition), path
        if "html" in kind or "svg" in kind:
            said += MARK in answer.text
            reader = Reader()
            reader.feed(answer.text)
            assert reader.found == [], path
            assert f"<script>{MARK}" not in answer.text
        else:
            assert kind.startswith(("text/csv", "application/json")), (path, kind)
    assert said > 30  # the words were there


def test_the_reader_finds_what_it_looks_for():
    reader = Reader()
    reader.feed(f"<p title={HOSTILE}>")
    reader.feed(HOSTILE)
    assert len(reader.found) >= 2
