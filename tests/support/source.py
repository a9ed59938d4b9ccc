"""The modules of deltalog as syntax trees, with the nodes of all by their types."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "deltalog"
Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True, slots=True)
class Source:
    """What the modules say, by their paths below `src/deltalog`."""

    texts: Mapping[str, str]
    trees: Mapping[str, ast.Module]
    nodes: Mapping[type[ast.AST], Sequence[tuple[str, ast.AST]]]

    def find(self, kind: type[Node]) -> Iterator[tuple[str, Node]]:
        """The nodes of one type, each with its module's path."""
        for name, node in self.nodes[kind]:
            assert isinstance(node, kind)
            yield name, node

    def strings(self) -> Iterator[tuple[str, str]]:
        """String constants that stand for something: docstrings do not."""
        bare = {id(node.value) for _, node in self.find(ast.Expr)}
        for name, node in self.find(ast.Constant):
            if isinstance(node.value, str) and id(node) not in bare:
                yield name, node.value


@functools.cache
def read_source() -> Source:
    """Parse every module, once."""
    texts = {
        path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    trees = {name: ast.parse(text) for name, text in texts.items()}
    nodes = defaultdict[type[ast.AST], list[tuple[str, ast.AST]]](list)
    for name, tree in trees.items():
        for node in ast.walk(tree):
            nodes[type(node)].append((name, node))
    return Source(texts, trees, nodes)
