"""On phones, tables of prose are lists of rows; tables of short words and numbers stay tables."""

from __future__ import annotations

import pytest

pytest.importorskip("sphinx", reason="the group docs is not installed")
nodes = pytest.importorskip("docutils.nodes")

from docs.narrow_tables import is_prose, label_cells  # noqa: E402

PAGE = """
| name | meaning | use |
|---|---|---|
| a | a sentence about the first option | yes |
| b | another sentence about an option | |

| engine | reads | writes |
|---|---|---|
| x | yes | no |

| key | only two columns, with a long text |
|---|---|
| c | a sentence that is as long as the others |
"""


def test_cells_of_prose_have_the_names_of_their_columns() -> None:
    publish = pytest.importorskip("docutils.core").publish_doctree
    parser = pytest.importorskip("myst_parser.docutils_").Parser
    page = publish(PAGE, parser=parser())
    label_cells(page)
    tables = list(page.findall(nodes.table))
    assert [table["classes"][1:] for table in tables] == [["stacks"], [], ["short-names"]]
    labels = [[cell.get("label") for cell in one.findall(nodes.entry)] for one in tables]
    assert labels[0] == [None] * 3 + ["name", "meaning", "use"] * 2
    assert not any(label for table in labels[1:] for label in table)


def test_what_is_prose() -> None:
    long = "a sentence that needs a line"
    assert is_prose(["a", "b", "c"], [["x", long, "y"]])
    assert not is_prose(["a", "b", "c"], [[long, "x", "y"]])
    assert not is_prose(["a", "b"], [["x", long]])
    assert is_prose(["a", "b"], [["x", "y"], ["x", 10 * long]])
    assert not is_prose(["a", "b", "c"], [])
