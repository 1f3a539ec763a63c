"""The site: every page has its place, every public name its entry, and what is made from the program is current."""

import re
import shutil
import subprocess
from fnmatch import fnmatchcase
from xml.etree import ElementTree

import pytest

import ahead_ldp
from ahead_ldp.device.refusals import Reason
from tests.needs import needed
from tools import docs, figures, reference, site

DOCS = docs.ROOT / "docs"
API = (DOCS / "reference" / "api.md").read_text("utf-8")


def names(page):
    return page.relative_to(DOCS).with_suffix("").as_posix()


def children(page):
    """The pages that the toctrees of a page name, as they stand there."""
    named = docs.toctree(page.read_text("utf-8"))
    return [names((page.parent / name).resolve().with_name(name.rpartition("/")[2] + ".md")) for name in named]


def test_pages_of_a_toctree_with_and_without_titles():
    text = "```{toctree}\n:hidden:\n\nfirst\nCount files <../batch>\nsub/*\n```\n"
    assert docs.toctree(text) == ["first", "../batch", "sub/*"]


def test_every_page_stands_once_in_the_navigation():
    pages = {names(page) for page in DOCS.rglob("*.md")}
    named = []
    for page in sorted(DOCS.rglob("*.md")):
        for child in children(page):
            matching = [name for name in pages if fnmatchcase(name, child) and name != names(page)]
            assert matching, f"{names(page)}: the toctree names {child}, which does not exist"
            named += matching if "*" in child else [child]
    assert sorted(named) == sorted(pages - {"index"})


FOR_USERS = ("tutorials", "guides", "reference", "explanation")


def below(page):
    """The page, and all pages that its toctrees lead to."""
    found = [page]
    for child in children(page):
        found += [p for there in sorted(DOCS.glob(f"{child}.md")) if there != page for p in below(there)]
    return found


@pytest.mark.parametrize("section", FOR_USERS)
def test_pages_for_users_name_no_test_file(section):
    """They read what holds, not where we keep it; a link to the vectors, which other programs need, is none."""
    pages = below(DOCS / section / "index.md")
    assert len(pages) >= 4
    prose = [(names(page), line) for page in pages for _, line in docs.prose(page.read_text("utf-8"))]
    assert [pair for pair in prose if re.search(r"`[^`]*\btests?/[^`]*`|`test_\w+", pair[1])] == []


@pytest.mark.parametrize("name", [name for name in ahead_ldp.__all__ if name != "__version__"])
def test_every_public_name_is_in_the_reference_with_an_example(name):
    assert re.search(rf"^\.\. auto(function|class|data):: ahead_ldp\.{name}$", API, re.MULTILINE)
    examples = "".join(block.text for block in docs.blocks(API) if block.info == "python")
    assert re.search(rf"\bahead_ldp\.{name}\b", examples)


def test_every_module_that_a_page_imports_from_is_in_the_reference():
    page = (DOCS / "reference" / "modules.md").read_text("utf-8")
    listed = re.findall(r"^\.\. automodule:: (\S+)$", page, re.MULTILINE)
    assert listed == reference.documented_modules(docs.ROOT), "run make docs"


@pytest.mark.parametrize("page", [p for p in docs.pages() if reference.MADE.search(p.read_text("utf-8"))], ids=names)
def test_made_parts_are_current(page):
    text = page.read_text("utf-8")
    assert reference.filled(text) == text, "run make docs"


def test_a_stale_part_is_filled_anew():
    filled = reference.filled("<!-- made: problems -->\nold\n<!-- end: problems -->\n")
    assert "old" not in filled
    assert "`busy` | 429" in filled
    assert reference.filled(filled) == filled


def test_every_reason_of_a_refusal_is_explained():
    page = (DOCS / "reference" / "errors.md").read_text("utf-8")
    assert {f"| `{reason.value}` |" for reason in Reason} <= set(re.findall(r"^\| `\w+` \|", page, re.MULTILINE))


@pytest.mark.parametrize("section", ["guides", "project"])
def test_the_search_knows_which_pages_teach_and_which_are_about_the_project(section):
    scorer = (DOCS / "_static" / "scorer.js").read_text("utf-8")
    listed = re.search(rf"  {section}: \[(.*?)\]", scorer, re.DOTALL)[1]
    alone = {page for page in children(DOCS / section / "index.md") if "/" not in page}
    assert set(re.findall(r'"([^"]+)"', listed)) == alone


# Links out of docs/, and docstrings, on their way to Sphinx.


def repository(tmp_path, text):
    for name in ("docs/project/contributing.md", "docs/page.md", "docs/sub/README.md", "SECURITY.md", "deploy/x.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# A page\n")
    (tmp_path / "CONTRIBUTING.md").write_text(text)
    return tmp_path / "docs" / "project" / "contributing.md"


@pytest.mark.parametrize(
    ("link", "moved"),
    [
        ("docs/page.md#a-page", "../page.md#a-page"),
        ("docs/sub", "../sub/README.md"),
        ("SECURITY.md", "security.md"),
        ("examples/notebooks/README.md", "../tutorials/notebooks.md"),
        ("deploy/x.toml", "path:../../deploy/x.toml"),
        ("https://example.org/docs/page.md", "https://example.org/docs/page.md"),
        ("#here", "#here"),
    ],
)
def test_a_page_at_the_top_is_shown_with_links_that_fit(tmp_path, link, moved):
    page = repository(tmp_path, f"# Contributing\n\nSee [this]({link}), not `[this]({link})`.\n")
    assert site.site_text(page, tmp_path) == f"# Contributing\n\nSee [this]({moved}), not `[this]({link})`.\n"


def test_docstrings_are_text_for_sphinx():
    given = ["A *star*, a `name`, a ``literal *``, x_ and a|b.", "", "Guarantees:", "    mean   as it is"]
    text = r"A \*star\*, a `name`, a ``literal *``, x\_ and a\|b."
    assert site.docstring_lines(given) == [text, "", "Guarantees:", "", "::", "", "       mean   as it is"]
    assert site.docstring_lines(["One:", "- a", "  more"]) == ["One:", "", "- a", "  more"]


def test_long_signatures_and_code_are_accessible():
    body = '<dl class="py"><dt class="sig sig-object">f(<dl>\n<dd>x</dd>\n</dl>)</dt>\n<dd><pre>y</pre></dd></dl>'
    assert site.accessible(body) == (
        '<dl class="py"><dt class="sig sig-object">f(<span class="lines">\n<span class="line">x</span>\n</span>)</dt>\n'
        '<dd><pre tabindex="0">y</pre></dd></dl>'
    )


def test_a_table_that_scrolls_can_be_reached():
    body = '<div class="table-wrapper docutils container"><table></table></div>'
    assert site.accessible(body).startswith('<div tabindex="0" class="table-wrapper')


def test_a_drawing_can_be_opened_alone():
    body = '<p><img alt="A tree" src="../_images/tree.svg" /></p><p><img alt="" src="x.png"/> and text</p>'
    picture = '<a class="picture" href="../_images/tree.svg"><img alt="A tree" src="../_images/tree.svg" /></a>'
    assert site.accessible(body) == f'<p>{picture}</p><p><img alt="" src="x.png"/> and text</p>'


# What was built is checked too; each check is shown to fail.


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ('<a href="none.html">x</a>', "no such file"),
        ('<a href="#none">x</a>', "no such anchor"),
        ('<a href="other.html#none">x</a>', "no such anchor"),
        ('<img src="none.png">', "no such file"),
        ('<script src="https://example.org/x.js"></script>', "another host"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "another host"),
    ],
)
def test_faults_of_the_site_are_found(tmp_path, html, fault):
    (tmp_path / "index.html").write_text(html)
    (tmp_path / "other.html").write_text('<p id="there">x</p>')
    assert [fault in message for message in site.faults(tmp_path)] == [True]


def test_a_foreign_font_and_a_large_site_are_found(tmp_path, monkeypatch):
    (tmp_path / "x.css").write_text('@import url("https://example.org/font.css");')
    monkeypatch.setattr(site, "MOST_BYTES", 10)
    assert len(list(site.faults(tmp_path))) == 2


def test_old_addresses_lead_to_pages_that_exist(tmp_path):
    assert all((DOCS / new).with_suffix(".md").is_file() for new in site.MOVED.values())
    (tmp_path / "new").mkdir()
    (tmp_path / "new/there.html").write_text("<p>here</p>")
    site.write_moved(tmp_path, {"old/page.html": "new/there.html"})
    site.write_moved(tmp_path, {"old/page.html": "new/there.html"})  # once more: its own page is no page in the way
    assert list(site.faults(tmp_path)) == []
    assert 'content="0; url=../new/there.html"' in (tmp_path / "old/page.html").read_text()
    site.write_moved(tmp_path, {"old/page.html": "new/gone.html"})
    assert [fault.partition(":")[0] for fault in site.faults(tmp_path)] == ["old/page.html"] * 2
    with pytest.raises(ValueError, match=r"expected no page at new/there\.html"):
        site.write_moved(tmp_path, {"new/there.html": "old/page.html"})


def test_a_good_site_has_no_fault(tmp_path):
    good = '<a href="other.html#there">x</a><a href="https://example.org">y</a><a href="#top">z</a><b id="top"></b>'
    (tmp_path / "index.html").write_text(good)
    (tmp_path / "other.html").write_text('<p id="there">x</p>')
    assert list(site.faults(tmp_path)) == []


# Pictures.


@pytest.mark.parametrize("name", figures.FIGURES)
def test_pictures_are_those_that_the_code_draws(name):
    drawn = (figures.FOLDER / name).read_text("utf-8")
    assert figures.FIGURES[name]() == drawn, "run python -m tools.figures"
    ElementTree.fromstring(drawn)
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")


def test_the_tree_of_the_picture_grows_and_tiles_the_domain():
    estimate, truth = figures.grown_tree()
    sizes = [nodes.size for nodes in figures.steps(estimate)]
    assert sizes == sorted(sizes)
    for nodes in figures.steps(estimate):
        lo, hi = estimate.tree.lo.ravel()[nodes], estimate.tree.hi.ravel()[nodes]
        assert [*sorted(lo.tolist())[1:], truth.size] == sorted(hi.tolist())


def test_the_script_about_epsilon_computes_what_the_oracle_does():
    node = needed(shutil.which("node"), "Node", "make system")
    cases = [(0.1, 100, 0.0), (1.0, 10_000, 0.1), (5.0, 1_000_000, 0.5)]
    code = f"const f = require({str(DOCS / '_static' / 'epsilon.js')!r});" + "".join(
        f"console.log(f.halfWidth({e}, {n}, {s}));" for e, n, s in cases
    )
    done = subprocess.run([node, "-e", code], capture_output=True, text=True, check=True)
    expected = [figures.half_width(*case) for case in cases]
    assert [float(line) for line in done.stdout.split()] == pytest.approx(expected, rel=1e-6)
