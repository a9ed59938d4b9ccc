"""The table of all statements: the first words of a statement → the parser of the rest.

Protocol: none; follows Spark's and Delta Lake's SQL references
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from deltalog.query.lexer import check_named, error_at
from deltalog.statements.alter import read_alter, read_comment
from deltalog.statements.catalog_names import read_use
from deltalog.statements.changes import (
    read_delete,
    read_insert,
    read_inserts,
    read_merge,
    read_truncate,
    read_update,
)
from deltalog.statements.create import (
    read_convert,
    read_create,
    read_drop,
    read_replace,
)
from deltalog.statements.maintenance import (
    read_generate,
    read_optimize,
    read_publish,
    read_reorg,
    read_repair,
    read_restore,
    read_vacuum,
)
from deltalog.statements.reader import Parameters, StatementReader
from deltalog.statements.shows import (
    ExplainStatement,
    SelectStatement,
    read_describe,
    read_show,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.statements.statement import SqlStatement


def _read_explain(reader: StatementReader) -> SqlStatement:
    # Ignore these words, because there is only one kind of plan.
    reader.take_one("EXTENDED", "FORMATTED", "CODEGEN", "COST")
    return ExplainStatement(_read(reader))


_STATEMENTS: Final[Mapping[str, Callable[[StatementReader], SqlStatement]]] = {
    "ALTER": read_alter,
    "COMMENT": read_comment,
    "CONVERT": read_convert,
    "CREATE": read_create,
    "DELETE": read_delete,
    "DESC": read_describe,
    "DESCRIBE": read_describe,
    "DROP": read_drop,
    "EXPLAIN": _read_explain,
    "FSCK": read_repair,
    "GENERATE": read_generate,
    "INSERT": read_insert,
    "MERGE": read_merge,
    "OPTIMIZE": read_optimize,
    "PUBLISH": read_publish,
    "REORG": read_reorg,
    "REPLACE": read_replace,
    "RESTORE": read_restore,
    "SHOW": read_show,
    "TRUNCATE": read_truncate,
    "UPDATE": read_update,
    "USE": read_use,
    "VACUUM": read_vacuum,
}


def parse_statement(
    sql: str, parameters: Parameters = None, *, takes_foreign: bool = False
) -> SqlStatement:
    """Parse a string as a statement.

    Args:
        sql: one statement, optionally followed by a semicolon.
        parameters: values for `?` (a sequence) or `:name` (a mapping).
        takes_foreign: whether the session's engine evaluates conditions. Conditions may then
            contain expressions that deltalog lacks.

    Raises:
        InvalidInputError: the string is not a valid statement. The message contains the position.
    """
    reader = StatementReader(sql, parameters, takes_foreign=takes_foreign)
    try:
        found = _read(reader)
    except RecursionError:
        raise error_at(sql, reader.word.start, "it is nested too deeply") from None
    reader.expect_end()
    # Spark ignores values of parameters that a statement lacks.
    if isinstance(parameters, Mapping) and not takes_foreign:
        check_named(sql, parameters)
    return found


def _read(reader: StatementReader) -> SqlStatement:
    if reader.take_clauses(_STATEMENTS):
        return read_inserts(reader)
    if reader.is_at_query:
        return SelectStatement(reader.query())
    for keyword, read in _STATEMENTS.items():
        if reader.take(keyword):
            return read(reader)
    if reader.take("SELECT"):
        reader.fail("expected the columns or values to select")
    return reader.fail(f"expected SELECT, {', '.join(_STATEMENTS)}")
