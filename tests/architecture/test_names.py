"""Names that differ in case only are found by `deltalog._util.escaping`, and by nothing else."""

from __future__ import annotations

import ast
import re

from tests.support.source import Source

LOWERING = "_util/escaping.py"
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


def test_no_case_is_folded(source: Source) -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, node in source.find(ast.Attribute)
        if node.attr == "casefold" and name != LOWERING
    ]
    assert found == []


def test_names_are_lowered_by_one_function(source: Source) -> None:
    found = {
        (name, f"{name}:{node.lineno}: {ast.unparse(node)}")
        for name, node in source.find(ast.Attribute)
        if node.attr == "lower" and name != LOWERING and NAME.fullmatch(ast.unparse(node.value))
    }
    assert sorted(line for name, line in found if name not in OTHER_WORDS) == []
    assert {name for name, _ in found} >= OTHER_WORDS, "exceptions that are needed no more"
