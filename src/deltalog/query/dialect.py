"""What Spark's words mean, in DuckDB's, where sqlglot's translation means something else.

Owns the differences that would change an answer, and which functions a query must not call. It
changes trees of sqlglot in place.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from deltalog.query.lexer import SyntaxProblem
from deltalog.query.parse import start_of

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

# DuckDB's functions that tell about the machine; its files are out of reach by its settings.
_REFUSED: Final = frozenset({"current_setting", "getenv", "getvariable", "write_log"})
_LATERAL: Final = (
    exp.Subquery, exp.Values, exp.Explode, exp.Inline, exp.Posexplode, exp.Unnest,
)  # fmt: skip
_RANGE_ARGUMENTS: Final = 4


def as_duckdb_does(tree: Expr) -> Expr:
    """Let a query of Spark's mean the same in DuckDB; return its root.

    Raises:
        SyntaxProblem: it calls what a query must not.
    """
    for node in reversed(list(tree.walk())):  # what is inside a node comes before it
        match node:
            case exp.Select():
                node.set("hint", None)
            case exp.Values():
                _name_columns(node)
            case exp.Lateral():
                _check_lateral(node)
            case exp.Anonymous() if node.name.lower() in _REFUSED:
                raise SyntaxProblem(start_of(node), f"a query cannot call {node.name.lower()}(…)")
            case exp.Table() if isinstance(node.this, exp.Func):
                _generate(node)
            case _:
                pass
    if isinstance(tree, exp.Values):
        return exp.select("*").from_(tree)
    return tree


def _name_columns(node: exp.Values) -> None:
    """Name the columns of VALUES as Spark does: col1, col2, …."""
    if node.parent is not None and not isinstance(node.parent, exp.From | exp.Join):
        return
    last = node.expressions[-1]
    if isinstance(last, exp.Tuple) and len(last.expressions) == 1:
        # In `VALUES 1, 2 AS t`, sqlglot takes t for the name of the last value.
        (value,) = last.expressions
        if isinstance(value, exp.Alias) and not node.args.get("alias"):
            node.set("alias", exp.TableAlias(this=value.args["alias"]))
            last.set("expressions", [value.this])
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier("deltalog_values"))
    if not alias.args.get("columns"):
        row = node.expressions[0]
        count = len(row.expressions) if isinstance(row, exp.Tuple) else 1
        alias.set("columns", [exp.to_identifier(f"col{place + 1}") for place in range(count)])
    node.set("alias", alias)


def _check_lateral(node: exp.Lateral) -> None:
    if not isinstance(node.this, _LATERAL):
        raise SyntaxProblem(
            start_of(node), "after LATERAL, expected a query in brackets, or explode(…)"
        )


def _generate(node: exp.Table) -> None:
    """Put a query in place of Spark's table functions `range` and `explode`."""
    call: Any = node.this
    name = call.name.lower() if isinstance(call, exp.Anonymous) else call.sql_name().lower()
    values = call.expressions or [one for one in call.args.values() if isinstance(one, exp.Expr)]
    columns: list[Expr]
    if name in {"range", "generate_series"} and 1 <= len(values) <= _RANGE_ARGUMENTS:
        found = exp.Anonymous(this="range", expressions=values[:3])
        columns = [exp.alias_(exp.Anonymous(this="unnest", expressions=[found]), "id")]
    elif isinstance(call, exp.Explode):
        columns = [exp.alias_(exp.Anonymous(this="unnest", expressions=[call.this]), "col")]
    else:
        return
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
    node.replace(exp.Subquery(this=exp.select(*columns), alias=alias, joins=node.args.get("joins")))
