"""Names that differ in case only are found by `deltalog._util.escaping`, and by nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "deltalog"
# What holds a name of a column, a table, a schema or a catalog.
NAME = re.compile(
    r"(\w+\.)*(name|column|alias|table|alias_or_name|new_name|col|field)"
    r"|(\w+\.)*(path|parts|column|namespace|wanted)\[[^\]]*\](\.name)?"
)
# Where a `name` is another word: of a setting, a header, a function, a file or a keyword.
OTHER_WORDS = {
    "protocol/actions/properties.py", "catalogs/unity/client.py", "table/inspect/display.py",
    "expressions/render.py", "expressions/sql_nodes.py",
    "protocol/features/registry.py", "storage/http/client.py",
    "iceberg/source.py", "query/computed.py", "query/translate.py", "query/names.py",
    "query/native.py", "query/query_trees.py",
    "schema/types.py", "schema/primitives/places.py", "sharing/client/pages.py",
    "sharing/server/middleware.py", "spark/reading/by_options.py", "spark/reading/options.py",
    "spark/session/opening.py", "spark/sharing/options.py", "spark/spellings/frames.py",
    "spark/writing/options.py", "storage/stores/filesystems.py", "_util/store_kinds.py",
    "operations/convert_files.py",
}  # fmt: skip


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name != "_util/escaping.py":
            yield name, ast.parse(path.read_text("utf-8"))


def test_no_case_is_folded() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "casefold"
    ]
    assert found == []


def test_names_are_lowered_by_one_function() -> None:
    found = [
        f"{name}:{node.lineno}: {ast.unparse(node)}"
        for name, tree in _modules()
        if name not in OTHER_WORDS
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "lower"
        and NAME.fullmatch(ast.unparse(node.value))
    ]
    assert found == []


def test_the_files_with_other_words_have_some() -> None:
    lowering = {
        name
        for name, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "lower"
        and NAME.fullmatch(ast.unparse(node.value))
    }
    assert lowering >= OTHER_WORDS
