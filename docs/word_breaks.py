"""Long names in code, titles and heads of tables may break at dots, underscores and capitals.

Otherwise, a browser breaks a name that does not fit at any letter. The stylesheet moves
a name to the next line if it fits there.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.writers.html5 import HTML5Translator

_LONG = 12
"""The fewest characters of a name that may break."""
_LEAST = 3
"""The fewest characters before and after a break."""
_PLACE = re.compile(r"(?<=[._/(=:,-])(?=[\w'&])|(?<=[a-z0-9])(?=[A-Z])", re.ASCII)
_TOKEN = re.compile(r'(<span class="pre">)(.*)(</span>)', re.DOTALL)
_WORD = re.compile(rf"\S{{{_LONG},}}")


def with_breaks(name: str) -> str:
    """The HTML of a name with `<wbr>` at each place where it may break.

    >>> print(with_breaks("to_pyarrow_dataset()"), with_breaks("TableNotFoundError"))
    to_<wbr>pyarrow_<wbr>dataset() Table<wbr>Not<wbr>Found<wbr>Error
    """
    if len(name) < _LONG:
        return name
    pieces, begin = [], 0
    for found in _PLACE.finditer(name):
        place = found.start()
        if place - begin >= _LEAST and len(name) - place >= _LEAST:
            pieces.append(name[begin:place])
            begin = place
    return "<wbr>".join([*pieces, name[begin:]])


def _is_in_head(node: nodes.Text) -> bool:
    """Whether a text is in the head of a table."""
    cell = node.parent.parent
    return isinstance(cell, nodes.entry) and isinstance(cell.parent.parent, nodes.thead)


class BreakingTranslator(HTML5Translator):
    """Sphinx's translator, which marks the places where names may break."""

    def visit_Text(self, node: nodes.Text) -> None:  # noqa: N802  # of docutils
        """Write a text; names in code, titles and heads have marks."""
        begin = len(self.body)
        super().visit_Text(node)
        if self.protect_literal_text:
            self.body[begin:] = [
                _TOKEN.sub(lambda found: f"{found[1]}{with_breaks(found[2])}{found[3]}", piece)
                for piece in self.body[begin:]
            ]
        elif isinstance(node.parent, nodes.title) or _is_in_head(node):
            self.body[begin:] = [
                _WORD.sub(
                    lambda found: f'<span class="long-name">{with_breaks(found[0])}</span>', piece
                )
                for piece in self.body[begin:]
            ]
