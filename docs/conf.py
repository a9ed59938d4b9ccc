"""How the documentation is built: Sphinx, MyST Markdown, Furo. Nothing is fetched."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
from feature_table import (  # the folder of this file is no package
    feature_table,
    function_list,
    property_table,
    refusal_table,
)
from settings_table import settings_tables

project = "deltalog"
copyright = "the deltalog founders"
release = importlib.metadata.version("deltalog")

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"deltalog {release}"
myst_heading_anchors = 3

napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Protocol", "notes_style"), ("Cost", "notes_style")]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"

nitpicky = True
# Other projects' objects are not linked: that would take their inventories from the network.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!deltalog\.).*"),
    # What public things are made of, and nobody has to name.
    (r"py:class", r"deltalog\.(query\.builder\.HasDataset|statements\.local\.LocalSession)"),
    (
        r"py:class",
        r"deltalog\.(scan\.prune|schema\.types|schema\.primitives|expressions\.nodes|transaction)\..*",
    ),
]


def _fill_in(app: Sphinx, docname: str, source: list[str]) -> None:
    del app
    if docname == "features":
        source[0] = source[0].replace("{{ feature_table }}", feature_table())
        source[0] = source[0].replace("{{ function_list }}", function_list())
        source[0] = source[0].replace("{{ refusal_table }}", refusal_table())
    if docname == "how-to/spark-settings":
        source[0] = source[0].replace("{{ settings_tables }}", settings_tables())
    if docname == "reference":
        source[0] = source[0].replace("{{ property_table }}", property_table())


def setup(app: Sphinx) -> None:
    """Let pages read the registries when they are built."""
    app.connect("source-read", _fill_in)
