"""How the documentation is built: Sphinx, MyST Markdown, Furo. Nothing is fetched."""

from __future__ import annotations

import importlib.metadata
import sys
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.ext.napoleon import GoogleDocstring

if TYPE_CHECKING:
    from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from docs.generated import filled
from docs.narrow_tables import LabellingTranslator, label_cells
from docs.public_names import join_costs, shorten_headings
from docs.reference_index import with_contents
from docs.search_terms import with_terms

DOCS = Path(__file__).parent

project = "deltalog"
copyright = "the deltalog founders"
release = importlib.metadata.version("deltalog")

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build", "conformance-board.md"]
html_theme = "furo"
html_title = f"deltalog {release}"
html_static_path = ["_static"]
html_css_files = ["deltalog.css"]
html_search_scorer = str(DOCS / "scorer.js")
myst_heading_anchors = 3
# What one copies is what one types: no prompts, and no outputs.
copybutton_selector = "div:not(.highlight-text) > div.highlight pre"
copybutton_exclude = ".linenos, .gp, .go"

napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Protocol", "notes_style"), ("Cost", "notes_style")]
default_role = "code"  # `name` in a docstring is code, as in Markdown
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"

nitpicky = True
# Other projects' objects are not linked: that would take their inventories from the network.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!deltalog\.).*"),
    # What public things are made of, and nobody has to name.
    (
        r"py:class",
        (
            r"deltalog\.(query\.duckdb\.HasDataset|statements\.local\.LocalSession|_util\.paths\.FileInfo"
            r"|_util\.clock\..*|log\.snapshot\.snapshot\.Snapshot|table\.inspect\.follow\.FollowOptions)"
        ),
    ),
    (
        r"py:class",
        r"deltalog\.(data\.scan\.prune|schema\.types|schema\.primitives|expressions\.nodes|transaction)\..*",
    ),
]

# Two classes are called DeltaTable, deltalake's and delta.tables'; a name finds its module's own.
suppress_warnings = ["ref.python"]


# Napoleon would take the first words of "The rows: …" for the type of an attribute. Types are
# annotations here, so docstrings of attributes are read like all others.
def _parse_like_others(docstring: GoogleDocstring) -> list[str]:
    docstring._what = "method"  # noqa: SLF001
    docstring._parse()  # noqa: SLF001
    return []


GoogleDocstring._parse_attribute_docstring = _parse_like_others  # noqa: SLF001


def _fill_in(app: Sphinx, docname: str, source: list[str]) -> None:
    del app
    source[0] = with_terms(docname, filled(docname, source[0]))
    if docname.startswith("reference/") and docname != "reference/index":
        source[0] = with_contents(DOCS / f"{docname}.md", source[0])


def _draw_in(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put our pictures into the page itself, to follow its light and dark, and label cells."""
    del docname
    if app.builder.format != "html":
        return
    label_cells(doctree)
    for image in list(doctree.findall(nodes.image)):
        picture = DOCS / image["uri"]
        if picture.suffix != ".svg":
            continue
        svg = picture.read_text("utf-8")
        label = escape(image.get("alt", ""), quote=True)
        drawn = f'<div class="picture" role="img" aria-label="{label}">{svg}</div>'
        narrow = picture.with_name(f"{picture.stem}-narrow.svg")
        if narrow.exists():  # the stylesheet chooses between the two
            other = narrow.read_text("utf-8")
            drawn = drawn.replace('"picture"', '"picture for-wide"') + (
                f'<div class="picture for-narrow" role="img" aria-label="{label}">{other}</div>'
            )
        image.replace_self(nodes.raw("", drawn, format="html"))


def _join_costs(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    del app, what, name, obj, options
    join_costs(lines)


def _shorten_headings(app: Sphinx, doctree: nodes.document) -> None:
    del app
    shorten_headings(doctree)


def setup(app: Sphinx) -> None:
    """Let pages read the registries when they are built, and hold their pictures."""
    app.set_translator("html", LabellingTranslator)
    app.connect("source-read", _fill_in)
    app.connect("autodoc-process-docstring", _join_costs, priority=400)  # before Napoleon
    app.connect("doctree-read", _shorten_headings)
    app.connect("doctree-resolved", _draw_in)
