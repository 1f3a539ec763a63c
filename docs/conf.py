"""How Sphinx makes the site (`make docs`). What is more than a setting is in tools/site.py, where it is tested."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tools.site import accessible, docstring_lines, site_text  # noqa: E402

project = "ahead-ldp"
author = "The ahead-ldp authors"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
copyright = author

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
root_doc = "index"

myst_heading_anchors = 6
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
toc_object_entries = False
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"ahead-ldp {release}"
html_favicon = "_static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "_static" / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}


def _read(app, docname, source):
    source[0] = site_text(ROOT / "docs" / f"{docname}.md")


def _docstring(app, what, name, obj, options, lines):
    lines[:] = docstring_lines(list(lines))


def _page(app, pagename, templatename, context, doctree):
    if "body" in context:
        context["body"] = accessible(context["body"])


def setup(app):
    """Connect what Sphinx does not know: links out of docs/, docstrings as plain text, accessible HTML."""
    app.connect("html-page-context", _page)
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
