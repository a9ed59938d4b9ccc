"""Tables on phones: a table of prose becomes a list of rows, each cell below its column's name.

The stylesheet shows the attribute `data-label` of a cell in a narrow window. Tables of numbers and
of short words stay tables, which scroll.
"""

from __future__ import annotations

from typing import Any

from docs.word_breaks import BreakingTranslator
from docutils import nodes

_PROSE = 18
"""The average number of characters in a cell from which a column is prose."""
_PARAGRAPH = 250
"""The number of characters of a cell from which it is a paragraph."""
_SHORT = 10
"""The number of characters of a first cell up to which its column is no wider than its words."""


def label_cells(doctree: nodes.document) -> None:
    """Give each cell of a table of prose the name of its column."""
    for table in doctree.findall(nodes.table):
        names, rows = _cells(table)
        if all(len(row) == 2 and len(row[0].astext()) <= _SHORT for row in rows):
            table["classes"].append("short-names")
        if not is_prose(names, [[cell.astext() for cell in row] for row in rows]):
            continue
        table["classes"].append("stacks")
        for row in rows:
            for name, cell in zip(names, row, strict=False):
                cell["label"] = name


def is_prose(names: list[str], rows: list[list[str]]) -> bool:
    """Whether a table has more than two columns, and prose in more than the first of them.

    Of two columns, the second has a whole paragraph.
    """
    if len(names) == 2:
        return any(len(cell) >= _PARAGRAPH for row in rows for cell in row[1:])
    if len(names) < 3 or not rows:
        return False
    columns = [[row[n] for row in rows if n < len(row)] for n in range(1, len(names))]
    return max(sum(map(len, column)) / len(rows) for column in columns) >= _PROSE


def _cells(table: nodes.table) -> tuple[list[str], list[list[nodes.entry]]]:
    """The names of a table's columns, and the cells of its rows."""
    heads = [cell.astext() for head in table.findall(nodes.thead) for cell in _entries(head)]
    rows = [list(row.findall(nodes.entry)) for body in table.findall(nodes.tbody) for row in body]
    return heads, rows


def _entries(node: nodes.Element) -> list[nodes.entry]:
    return list(node.findall(nodes.entry))


class LabellingTranslator(BreakingTranslator):
    """Sphinx's translator, which also writes the labels of cells."""

    def starttag(self, node: nodes.Element, tagname: str, *args: Any, **kwargs: Any) -> str:
        """Return the tag of a node; a cell has the name of its column."""
        if isinstance(node, nodes.entry) and node.get("label"):
            kwargs["data-label"] = node["label"]
        tag: str = super().starttag(node, tagname, *args, **kwargs)
        return tag
