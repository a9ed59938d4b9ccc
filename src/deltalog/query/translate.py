"""Translate queries from Spark's dialect to DuckDB's, and find the tables that they read.

sqlglot translates the syntax. This module handles the ways to name a table: a path, a name, `@v3`,
`VERSION AS OF`, `TIMESTAMP AS OF`, and `table_changes(…)`. It also ensures that a query reads only
tables, and neither files nor settings of the machine.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from deltalog._util.escaping import name_key, path_key
from deltalog.errors import InvalidInputError
from deltalog.query.computed import Part, divided
from deltalog.query.joins import number_naturals
from deltalog.query.lexer import SyntaxProblem, error_at
from deltalog.query.names import VERSION_WORDS, QualifiedName, VersionExpression
from deltalog.query.native import EVERYTHING, TableRead, names_in, names_looked_into, read_of
from deltalog.query.parse import FAILURES, OPTIONS, TOO_DEEP, read_query, span_of, start_of
from deltalog.query.query_trees import WRITTEN
from deltalog.query.recursion import cte_of, limit_recursions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlglot.expressions import Expr

    from deltalog.query.parse import ReadQuery

CHANGES: Final = frozenset({"table_changes", "table_changes_by_path"})
"""The table functions for the change data feed of a table."""
_PREFIX: Final = "deltalog_table_"
_VERSION: Final = "versionasof"
_TIMESTAMP: Final = "timestampasof"
_TRAVELLING: Final = frozenset({_VERSION, _TIMESTAMP})


@dataclass(frozen=True, slots=True)
class TableChangesCall:
    """`table_changes(table, start [, end])`: the change data feed of a table.

    Args:
        table: the table that the string argument names.
        start: a version, or a timestamp as a string.
        end: a version, or a timestamp as a string; None means the latest version.
    """

    table: QualifiedName
    start: int | str | VersionExpression
    end: int | str | VersionExpression | None

    def __str__(self) -> str:
        """Return a description of the call, for messages."""
        return f"table_changes of {self.table}"


TableReference = QualifiedName | TableChangesCall


@dataclass(frozen=True, slots=True)
class TranslatedQuery:
    """A query in DuckDB's dialect.

    Args:
        sql: the query, in which a generated name replaces each table, and a mark replaces each
            part.
        tables: a generated name → its table.
        reads: a generated name → the rows and columns that the query needs.
        parameters: the names of the query's parameters.
        parts: the parts, which are replaced as soon as the types of their columns are known.
        makes_nested: whether the query may make structs, arrays or maps of other values.
        names: the names of the result columns as spelled in the query; None for an expression.
        counts: the parameters after LIMIT and OFFSET: the word of the clause, and the name.
        selection: the query as a scan of its only table; None if a scan cannot answer the query.
    """

    sql: str
    tables: dict[str, TableReference]
    reads: dict[str, TableRead]
    parameters: frozenset[str]
    parts: tuple[Part, ...] = ()
    makes_nested: bool = True
    names: tuple[str | None, ...] = ()
    counts: tuple[tuple[str, str], ...] = ()
    selection: Selection | None = None


@lru_cache(maxsize=256)
def check_query(text: str) -> frozenset[str]:
    """Return the names of a query's parameters; raise an error if the string is not a query.

    Results are cached by string.

    Raises:
        SyntaxProblem: the string is not a query.
    """
    tree = read_query(text).tree
    return frozenset(
        node.name for node in tree.find_all(exp.Placeholder) if isinstance(node.this, str)
    )


@lru_cache(maxsize=256)
def translated(text: str) -> TranslatedQuery:
    """Translate a query to DuckDB's dialect. Results are cached.

    Raises:
        InvalidInputError: the text is not a query, or DuckDB has no equivalent. The message
            contains the position.
    """
    try:
        names = check_query(text)
        found = read_query(text)
        tree = found.tree.copy()
        prefix = _PREFIX
        while prefix in text.lower():
            prefix += "_"  # because the query contains the prefix
        tables: dict[str, TableReference] = {}
        reads: dict[str, TableRead] = {}
        nodes = list(tree.walk())
        needed = {id(node): read_of(node) for node in nodes if isinstance(node, exp.Table)}
        looked_into, named = names_looked_into(tree, nodes), names_in(nodes)
        _check_aliases(nodes)
        tree = as_duckdb_does(tree)
        number_naturals(tree)
        aliases = _qualified(tree)
        for node in list(tree.find_all(exp.Table)):
            if not is_cte(node):
                name = f"{prefix}{len(tables)}"
                tables[name] = reference_of(node)
                _refuse_options(node)
                read = needed.get(id(node), EVERYTHING)
                reads[name] = replace(read, looked_into=looked_into, named=named)
                alias = aliases.get(id(node)) or _name_of(tables[name]).parts[-1]
                _rename(node, name, alias)
        limit_recursions(tree)
        try:
            whole = divided(tree, found.source)
        except SyntaxProblem as problem:
            raise SyntaxProblem(found.source.origin(problem.place), problem.problem) from problem
        except FAILURES as error:
            raise SyntaxProblem(0, f"this query is not supported: {error}") from error
    except RecursionError:
        raise error_at(text, 0, TOO_DEEP) from None
    except SyntaxProblem as problem:
        raise error_at(text, problem.place, problem.problem) from problem
    return TranslatedQuery(
        whole.text,
        tables,
        reads,
        names,
        whole.parts,
        whole.makes_nested,
        _spelled(found.tree),
        _counts_in(found.tree),
        selection_of(found),
    )


def bound(reference: TableReference, parameters: Mapping[str, object]) -> TableReference:
    """Return a table reference in which the current values replace version expressions.

    Raises:
        InvalidInputError: a value is neither a version nor a timestamp.
    """
    if isinstance(reference, QualifiedName):
        return replace(reference, version=_value(reference.version, parameters))
    start, end = (_value(one, parameters) for one in (reference.start, reference.end))
    return replace(reference, start=start, end=end)


def _value(version: Any, parameters: Mapping[str, object]) -> Any:
    return version.value(parameters) if isinstance(version, VersionExpression) else version


def _spelled(tree: Any) -> tuple[str | None, ...]:
    """Return the names of result columns as the query spells them, not as the table does."""
    selected = getattr(tree, "selects", [])
    if any(one.is_star for one in selected):
        return ()
    return tuple(one.name if isinstance(one, exp.Column) else None for one in selected)


def _check_aliases(nodes: Sequence[Expr]) -> None:
    """Refuse aliases with fewer or more names than columns; DuckDB renames the first columns.

    Columns of tables and of stars are not known yet.
    """
    for node in nodes:
        alias: Any = node.args.get("alias")
        names = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        if not names or not isinstance(node, exp.CTE | exp.Subquery | exp.Values):
            continue
        row: Any = node.expressions[0] if isinstance(node, exp.Values) else node.this
        if isinstance(row, exp.Tuple):
            columns = row.expressions
        else:
            columns = [row] if isinstance(node, exp.Values) else getattr(row, "selects", [])
        is_known = columns and not any(
            one.is_star or isinstance(one.unalias(), exp.UDTF | exp.Aliases) for one in columns
        )
        if is_known and len(columns) != len(names):
            raise SyntaxProblem(
                start_of(alias),
                f"the alias {alias.name!r} names {len(names)} column(s), but its rows have "
                f"{len(columns)}",
            )


def _counts_in(tree: Expr) -> tuple[tuple[str, str], ...]:
    """Return LIMIT or OFFSET, and the name, for each parameter that is a number of rows."""
    clauses: list[Any] = list(tree.find_all(exp.Limit, exp.Offset))
    return tuple(
        (one.key.upper(), one.expression.name)
        for one in clauses
        if isinstance(one.expression, exp.Placeholder)
    )


def is_cte(node: exp.Table) -> bool:
    """Return whether the name in a node is a common table expression that is visible there."""
    return cte_of(node) is not None


def reference_of(node: exp.Table) -> TableReference:
    """Return the reference to a table in a node of the tree.

    Raises:
        SyntaxProblem: the name or the version is invalid.
    """
    if isinstance(node.this, exp.Func):
        return _changes(node.this)
    # sqlglot splits a name into three parts at most. The last part contains all further parts, with
    # dots.
    if not all(isinstance(part, exp.Identifier) for part in node.parts):
        raise SyntaxProblem(start_of(node), "expected the name of a table")
    version = node.args.get("version")
    parts = tuple(part.name for part in node.parts)
    options = node.meta.get(OPTIONS, {})
    if options.keys() & _TRAVELLING and (version is not None or options.keys() >= _TRAVELLING):
        raise SyntaxProblem(start_of(node), "expected one version of the table")
    if version is None:
        return QualifiedName(parts, _version_of_options(node, options))
    value = version.expression
    if isinstance(value, exp.Literal):
        if version.this != "VERSION":
            return QualifiedName(parts, str(value.name))
        if not value.name.isdecimal():
            advice = VERSION_WORDS.get(value.name.lower(), "")
            problem = f"expected the number of a version, found {value.name}"
            raise SyntaxProblem(start_of(node), f"{problem}{advice and '; '}{advice}")
        return QualifiedName(parts, int(value.name))
    return QualifiedName(parts, VersionExpression(version.this == "VERSION", value.sql("spark")))


def options_of(node: exp.Table) -> dict[str, str]:
    """Return the options of a table, except its version."""
    found = node.meta.get(OPTIONS, {})
    return {name: value for name, value in found.items() if name not in _TRAVELLING}


def _refuse_options(node: exp.Table) -> None:
    for name in options_of(node):
        raise SyntaxProblem(
            start_of(node), f"expected versionAsOf or timestampAsOf in WITH (…), found {name!r}"
        )


def _version_of_options(node: exp.Table, options: Mapping[str, str]) -> int | str | None:
    number = options.get(_VERSION)
    if number is None:
        return options.get(_TIMESTAMP)
    if not number.isdecimal():
        raise SyntaxProblem(start_of(node), f"expected the number of a version, found {number}")
    return int(number)


def _name_of(reference: TableReference) -> QualifiedName:
    return reference.table if isinstance(reference, TableChangesCall) else reference


def name_of_call(call: Any) -> str:
    """Return the name of a function, in lower case."""
    name: str = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
    return name.lower()


_FILES: Final = "pass the rows as a table, such as sql(query, t=pyarrow.dataset.dataset(path))"
_OF_FUNCTIONS: Final = {
    **dict.fromkeys(("read_parquet", "parquet_scan", "scan_parquet", "read_files"), _FILES),
    **dict.fromkeys(("read_csv", "read_csv_auto", "read_json", "read_json_auto", "glob"), _FILES),
    "identifier": "write the table's name, or pass the table, as in sql(query, t=table)",
    **dict.fromkeys(("delta_scan", "scan_delta", "read_delta", "delta"), "write delta.`/path`"),
}
"""Table functions of other dialects → what to write instead."""


def _changes(call: Any) -> TableChangesCall:
    name = name_of_call(call)
    if name not in CHANGES:
        advice = f"; {_OF_FUNCTIONS[name]}" if name in _OF_FUNCTIONS else ""
        raise SyntaxProblem(
            start_of(call), f"expected a table or table_changes(…), found {name}(…){advice}"
        )
    values = call.expressions
    table = values[0] if values else None
    if not 2 <= len(values) <= 3 or not isinstance(table, exp.Literal) or not table.is_string:
        raise SyntaxProblem(
            start_of(call), f"expected {name}('table', start [, end]) with the table as a string"
        )
    found = QualifiedName(("delta", table.name))
    if name != "table_changes_by_path":
        try:
            found = QualifiedName.parse(table.name)
        except InvalidInputError as error:
            raise SyntaxProblem(start_of(call), str(error)) from None
    start, *rest = (
        int(one.name) if one.is_int
        else one.name if isinstance(one, exp.Literal)
        else VersionExpression(None, one.sql("spark"))
        for one in values[1:]
    )  # fmt: skip
    return TableChangesCall(found, start, rest[0] if rest else None)


def _qualified(tree: Expr) -> dict[int, str]:
    """Shorten the qualifiers of columns to one part; return the aliases that tables then need.

    `SELECT s.t.id FROM s.t` becomes `SELECT t.id FROM s.t AS t`. If several tables have the same
    last part, the alias of each contains all parts of its name.
    """
    aliases: dict[int, str] = {}
    known: dict[int, dict[tuple[str, ...], str]] = {}
    for node in tree.find_all(exp.Table):
        if node.args.get("alias") or not isinstance(node.this, exp.Identifier):
            continue
        names = known.setdefault(id(node.find_ancestor(exp.Select)), {})
        parts = tuple(part.name for part in node.parts)
        key, last = path_key(parts), parts[-1]
        is_taken = name_key(last) in {name_key(alias) for alias in names.values()}
        if key not in names:
            names[key] = ".".join(parts) if is_taken else last
        aliases[id(node)] = names[key]
    for column in list(tree.find_all(exp.Column)):
        if column.args.get("db"):
            _shorten(column, known)
    return aliases


def _shorten(column: exp.Column, known: Mapping[int, Mapping[tuple[str, ...], str]]) -> None:
    parts = column.parts
    at: Expr | None = column
    while at is not None:
        at = at.find_ancestor(exp.Select)
        for key, alias in known.get(id(at), {}).items():
            own = tuple(name_key(part.name) for part in parts[: len(key)])
            if len(key) > 1 and own == key and len(parts) > len(key):
                left = [exp.to_identifier(alias, quoted=True), *parts[len(key) :]]
                names = ("this", "table", "db", "catalog")
                for place, name in enumerate(names):
                    column.set(name, left[-1 - place] if place < len(left) else None)
                return


def _rename(node: exp.Table, name: str, alias: str) -> None:
    """Rename a table, and give it an alias that columns can use as their qualifier."""
    known = exp.to_identifier(name, quoted=True)
    known.meta.update(node.parts[0].meta)  # preserve the position, for errors
    for part in ("db", "catalog", "version"):
        node.set(part, None)
    node.set("this", known)
    if not node.args.get("alias"):
        node.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))


# --- corrections for constructs that sqlglot translates differently from their meaning in Spark


# The functions of DuckDB that return facts about the machine. Queries must not call them. Settings
# of DuckDB block the functions that access files.
_REFUSED: Final = frozenset({"current_setting", "getenv", "getvariable", "write_log"})
_LATERAL: Final = (
    exp.Subquery, exp.Values, exp.Explode, exp.Inline, exp.Posexplode, exp.Unnest,
)  # fmt: skip
_RANGE_ARGUMENTS: Final = 4
_IGNORE_NULL: Final = (
    exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count, exp.Stddev, exp.StddevPop, exp.StddevSamp,
    exp.Variance, exp.VariancePop,
)  # fmt: skip
# Sums and products may overflow, but then DuckDB's error is the same as without a filter.
_NEVER_FAILS: Final = (
    exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul,
)  # fmt: skip
_SMALLEST: Final = {str(2**31): exp.DType.INT, str(2**63): exp.DType.BIGINT}
"""Absolute value of the smallest number of a type → the type."""
_VIEW_COLUMNS: Final = {exp.Explode: ("col",), exp.Posexplode: ("pos", "col")}
"""Function of LATERAL VIEW → the names of its columns."""
_SERIES: Final = {"range": "id", "generate_series": "generate_series"}
"""By the name of a function that generates numbers, the name of its column."""


def as_duckdb_does(tree: Expr) -> Expr:
    """Change the tree of a Spark query so that it has the same meaning in DuckDB; return its root.

    Raises:
        SyntaxProblem: the query calls a function that is not allowed.
    """
    for node in reversed(list(tree.walk())):  # visit children before their parents
        change = _CHANGES_OF_NODES.get(type(node))
        if change is not None:
            change(node)
    if isinstance(tree, exp.Values):
        query = exp.select("*").from_(tree)
        for clause in ("order", "limit", "offset"):
            query.set(clause, tree.args.pop(clause, None))
        return query
    return tree


def _sample(node: exp.TableSample) -> None:
    """Sample each row by itself, as Spark does; DuckDB's default samples blocks of 2,048 rows."""
    if node.args.get("bucket_numerator") is not None:
        raise SyntaxProblem(start_of(node), "TABLESAMPLE (BUCKET …) is not supported: use PERCENT")
    if node.args.get("percent") is not None and node.args.get("method") is None:
        node.set("method", exp.Var(this="BERNOULLI"))


def _guard_filtered(node: exp.Filter) -> None:
    """Compute the argument of an aggregate with FILTER only for the rows that the filter keeps.

    DuckDB computes it for all rows, for which it may fail. NULL does not change these functions.
    """
    call = node.this
    if not isinstance(call, _IGNORE_NULL) or call.args.get("distinct"):
        return
    value = call.this
    if value is None or value.find(exp.Column) is None:
        return
    if all(isinstance(one, _NEVER_FAILS) for one in value.walk()):
        return
    if isinstance(value, exp.Star | exp.Distinct | exp.Order):
        return
    condition = node.expression.this
    if condition.find(exp.Query) or value.find(exp.Query) or call.args.get("expressions"):
        return
    guarded = exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])
    guarded.meta[WRITTEN] = True
    call.set("this", guarded)


def _type_smallest(node: exp.Neg) -> None:
    """Give the smallest integer its type, which DuckDB determines before the sign."""
    is_number = isinstance(node.this, exp.Literal) and not node.this.is_string
    kind = _SMALLEST.get(node.this.name) if is_number else None
    if kind is not None:
        number = exp.Literal.string(f"-{node.this.name}")
        cast = exp.Cast(this=number, to=exp.DataType(this=kind))
        cast.meta.update(node.meta)
        node.replace(cast)


def _change_select(node: exp.Select) -> None:
    node.set("hint", None)
    _join_views(node)


def _change_values(node: exp.Values) -> None:
    _name_columns(node)
    _group_pivots(node)


def _change_lateral(node: exp.Lateral) -> None:
    _check_lateral(node)
    _name_view(node)


def _change_table(node: exp.Table) -> None:
    if isinstance(node.this, exp.Func):
        _generate(node)
    else:
        _group_pivots(node)


def _change_join(node: exp.Join) -> None:
    """Make a CROSS JOIN with a condition an inner join, as Spark does."""
    if node.kind == "CROSS" and node.args.get("on") is not None:
        node.set("kind", None)


def _change_group(node: exp.Group) -> None:
    """Write `GROUP BY a, b WITH ROLLUP` as `GROUP BY ROLLUP (a, b)`, which DuckDB has."""
    for kind in ("rollup", "cube"):
        for one in node.args.get(kind) or ():
            if not one.expressions and node.expressions:
                one.set("expressions", node.expressions)
                node.set("expressions", [])


def _check_names(node: exp.Aliases) -> None:
    is_pair = type(node.this) is exp.Posexplode and len(node.expressions) == len(("pos", "col"))
    if isinstance(node.this, exp.Explode | exp.Inline) and not is_pair:
        raise SyntaxProblem(start_of(node), "several names: use LATERAL VIEW explode(m) e AS k, v")


def _check_function(node: exp.Anonymous) -> None:
    if node.name.lower() in _REFUSED:
        raise SyntaxProblem(start_of(node), f"a query cannot call {node.name.lower()}(…)")


def _name_columns(node: exp.Values) -> None:
    """Name the columns of VALUES as Spark does: `col1`, `col2` and so on."""
    if node.parent is not None and not isinstance(node.parent, exp.From | exp.Join):
        return
    last = node.expressions[-1]
    if isinstance(last, exp.Tuple) and len(last.expressions) == 1:
        # In `VALUES 1, 2 AS t`, sqlglot reads `t` as the name of the last value.
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
    if not node.args.get("view") and isinstance(node.this, exp.Explode):
        node.set("this", exp.Subquery(this=exp.select(node.this)))


def _name_view(node: exp.Lateral) -> None:
    """Name the columns of LATERAL VIEW as Spark does; `explode` with two names reads a map."""
    alias = node.args.get("alias")
    if not node.args.get("view") or alias is None:
        return
    call, names = node.this, alias.args.get("columns") or []
    if type(call) is exp.Explode and len(names) == len(("key", "value")):
        entries = exp.Anonymous(this="map_entries", expressions=[call.this])
        node.set("this", exp.Inline(this=entries))
    elif not names and type(call) in _VIEW_COLUMNS:
        columns = [exp.to_identifier(name) for name in _VIEW_COLUMNS[type(call)]]
        alias.set("columns", columns)


def _join_views(node: exp.Select) -> None:
    """Replace LATERAL VIEW by joins, if one of them is OUTER, which DuckDB's form does not have.

    sqlglot's form for `posexplode` has no alias.
    """
    views = node.args.get("laterals") or []
    if not any(view.args.get("outer") or isinstance(view.this, exp.Posexplode) for view in views):
        return
    for view in views:
        rows = _rows_of_view(view) if isinstance(view.this, exp.Inline) else exp.select(view.this)
        lateral = exp.Lateral(this=exp.Subquery(this=rows), alias=view.args["alias"])
        is_outer = bool(view.args.get("outer"))
        kind = {"side": "LEFT", "on": exp.true()} if is_outer else {"kind": "CROSS"}
        node.append("joins", exp.Join(this=lateral, **kind))
    node.set("laterals", None)


def _rows_of_view(view: exp.Lateral) -> exp.Select:
    """Return the rows of `inline` as a query; a select list cannot contain `inline`.

    Raises:
        SyntaxProblem: the columns have no names.
    """
    names = [one.name for one in view.args["alias"].args.get("columns") or []]
    if not names:
        raise SyntaxProblem(start_of(view), "LATERAL VIEW OUTER inline(…) needs names: e AS a, b")
    alias = exp.TableAlias(
        this=exp.to_identifier("deltalog_view"),
        columns=[exp.to_identifier(name, quoted=True) for name in names],
    )
    row = exp.select(exp.alias_(exp.Literal.number(1), "deltalog_row")).subquery("deltalog_rows")
    columns = [exp.column(name, "deltalog_view", quoted=True) for name in names]
    query = exp.select(*columns).from_(row)
    query.set("laterals", [exp.Lateral(this=view.this.copy(), view=True, alias=alias)])
    return query


def _group_pivots(node: Expr) -> None:
    """Replace PIVOT by aggregates with conditions. DuckDB's PIVOT compares values as strings."""
    pivots = node.args.get("pivots") or []
    if len(pivots) == 1 and pivots[0].args.get("unpivot"):
        _keep_partial_rows(node, pivots[0])
    if not pivots or any(one.args.get("unpivot") or len(one.args["fields"]) != 1 for one in pivots):
        return
    node.set("pivots", None)
    joins = node.args.get("joins")
    node.set("joins", None)
    rows: Expr = node.copy()
    for pivot in pivots:
        (listed,) = pivot.args["fields"]
        by = listed.this.expressions if isinstance(listed.this, exp.Tuple) else [listed.this]
        values = [_pivot_value(one) for one in listed.expressions]
        calls = [one.this if isinstance(one, exp.Alias) else one for one in pivot.expressions]
        names = [
            # sqlglot gives no name to a row of values without an alias.
            f"{_row_name(one)}{name.name}"
            for (one, _), name in zip(
                product(listed.expressions, calls), pivot.args["columns"], strict=True
            )
        ]
        used = [one.name for part in (*by, *calls) for one in part.find_all(exp.Column)]
        star = exp.Star(
            except_=[exp.to_identifier(name, quoted=True) for name in dict.fromkeys(used)]
        )
        columns = [
            exp.alias_(_pivoted(call, by, value), name, quoted=True)
            for (value, call), name in zip(product(values, calls), names, strict=True)
        ]
        query = exp.Select(expressions=[star, *columns]).from_(rows)
        query.set("group", exp.Group(all=True))
        alias = pivot.args.get("alias") or exp.TableAlias(this=exp.to_identifier("deltalog_pivot"))
        rows = exp.Subquery(this=query, alias=alias)
    rows.set("joins", joins)
    node.replace(rows)


def _keep_partial_rows(node: Expr, pivot: Expr) -> None:
    """Drop a row of UNPIVOT only if all its values are NULL; DuckDB drops it if one is NULL."""
    values = pivot.expressions[0] if pivot.expressions else None
    if not isinstance(values, exp.Tuple) or pivot.args.get("include_nulls"):
        return
    pivot.args["include_nulls"] = True
    joins = node.args.get("joins")
    node.set("joins", None)
    kept = exp.or_(
        *(
            exp.Not(this=exp.Is(this=exp.column(one.name, quoted=True), expression=exp.Null()))
            for one in values.expressions
        ),
        wrap=False,
    )
    for one in kept.walk():
        one.meta[WRITTEN] = True
    query = exp.select("*").from_(node.copy()).where(kept, copy=False)
    alias = pivot.args.get("alias") or exp.TableAlias(this=exp.to_identifier("deltalog_unpivot"))
    node.replace(exp.Subquery(this=query, alias=alias.copy(), joins=joins))


def _row_name(node: Expr) -> str:
    """Return Spark's name for a row of values, which is a struct; empty for other values."""
    if not isinstance(node, exp.Tuple):
        return ""
    return f"{{{', '.join(one.name or one.sql('spark') for one in node.expressions)}}}"


def _pivot_value(node: Expr) -> list[Expr]:
    value = node.this if isinstance(node, exp.PivotAlias | exp.Alias) else node
    return value.expressions if isinstance(value, exp.Tuple) else [value]


def _pivoted(call: Expr, by: Sequence[Expr], value: Sequence[Expr]) -> Expr:
    """Return an aggregate over the rows with a value; NULL if there are no such rows."""
    pairs = [
        exp.NullSafeEQ(this=column.copy(), expression=one.copy())
        for column, one in zip(by, value, strict=True)
    ]
    condition = exp.and_(*pairs, wrap=False)
    for one in condition.walk():
        one.meta[WRITTEN] = True
    where = exp.Where(this=condition)
    found = call.copy()
    for one in [*found.find_all(exp.AggFunc)]:
        filtered = exp.Filter(this=one.copy(), expression=where.copy())
        found = filtered if one is found else (one.replace(filtered), found)[1]
    count = exp.Filter(this=exp.Count(this=exp.Star()), expression=where)
    has_rows = exp.GT(this=count, expression=exp.Literal.number(0))
    has_rows.meta[WRITTEN] = True
    case = exp.Case(ifs=[exp.If(this=has_rows, true=found)])
    case.meta[WRITTEN] = True
    return case


def _generate(node: exp.Table) -> None:
    """Replace the table functions `range`, `explode` and others by a query.

    Spark has no `generate_series`; it includes the end, as in PostgreSQL and DuckDB.
    """
    call: Any = node.this
    name = call.name.lower() if isinstance(call, exp.Anonymous) else call.sql_name().lower()
    values = call.expressions or [one for one in call.args.values() if isinstance(one, exp.Expr)]
    columns: list[Expr]
    if name in _SERIES and 1 <= len(values) <= _RANGE_ARGUMENTS:
        found = exp.Anonymous(this=name, expressions=values[:3])
        columns = [exp.alias_(exp.Anonymous(this="unnest", expressions=[found]), _SERIES[name])]
    elif type(call) is exp.Posexplode:
        columns = [exp.Posexplode(this=call.this)]
    elif type(call) is exp.Explode:
        columns = [exp.alias_(exp.Anonymous(this="unnest", expressions=[call.this]), "col")]
    else:
        return
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
    rows = exp.Subquery(this=exp.select(*columns), alias=alias)
    for part in ("joins", "sample", "pivots"):
        rows.set(part, node.args.get(part))
    node.replace(rows)
    _group_pivots(rows)


_CHANGES_OF_NODES: Final[Mapping[type[Expr], Callable[[Any], None]]] = {
    exp.Select: _change_select,
    exp.Values: _change_values,
    exp.Table: _change_table,
    exp.Subquery: _group_pivots,
    exp.TableSample: _sample,
    exp.Filter: _guard_filtered,
    exp.Neg: _type_smallest,
    exp.Lateral: _change_lateral,
    exp.Join: _change_join,
    exp.Group: _change_group,
    exp.Aliases: _check_names,
    exp.Anonymous: _check_function,
}
"""Node of a Spark query → what changes it to the form with the same meaning in DuckDB."""


# --- queries that one scan can answer: columns of one table, a condition, a limit


_CLAUSES: Final = frozenset({"expressions", "from_", "where", "limit"})
_OF_TABLE: Final = frozenset({"this", "db", "catalog", "alias", "version"})
# Nodes that the package `expressions` does not support, or interprets differently from DuckDB.
_BEYOND: Final = (exp.Query, exp.AggFunc, exp.Window, exp.Star)


@dataclass(frozen=True, slots=True)
class Selection:
    """A query of the form `SELECT columns FROM one table [WHERE condition] [LIMIT n]`.

    Args:
        columns: the columns: the name as spelled in the query, and the name of the result column.
            None means all columns of the table.
        where: the condition, in Spark's dialect; None means all rows.
        place: the position of the condition's first character in the query.
        limit: the maximum number of rows; None means no limit.
    """

    columns: tuple[tuple[str, str], ...] | None
    where: str | None
    place: int
    limit: int | None


def selection_of(found: ReadQuery) -> Selection | None:
    """Return the query as a scan of its only table; None if a scan cannot answer the query."""
    tree = found.tree
    if not isinstance(tree, exp.Select) or not _said(tree) <= _CLAUSES:
        return None
    source: Any = tree.args.get("from_")
    if source is None or not _is_one_table(source.this):
        return None
    is_whole = len(tree.expressions) == 1 and _is_star(tree.expressions[0])
    columns = None if is_whole else [_column(one) for one in tree.expressions]
    if columns is not None and None in columns:
        return None
    limit: Any = tree.args.get("limit")
    count = None if limit is None else limit.expression
    # FETCH FIRST is another clause, and LIMIT may be an expression.
    if limit is not None and not (
        isinstance(limit, exp.Limit) and isinstance(count, exp.Literal) and count.is_int
    ):
        return None
    where: Any = tree.args.get("where")
    text, place = None, 0
    if where is not None:
        span = span_of(where.this)
        names = where.find_all(exp.Column)
        if span is None or where.find(*_BEYOND) or any(len(one.parts) != 1 for one in names):
            return None
        text, place = found.source.text[slice(*span)], found.source.origin(span[0])
    return Selection(
        None if columns is None else tuple(one for one in columns if one is not None),
        text,
        place,
        None if count is None else int(count.name),
    )


def _said(node: Expr) -> set[str]:
    """Return the names of those arguments of a node that are set."""
    return {name for name, value in node.args.items() if value}


def _is_one_table(node: Any) -> bool:
    alias: Any = node.args.get("alias")
    return (
        isinstance(node, exp.Table)
        and isinstance(node.this, exp.Identifier)
        and _said(node) <= _OF_TABLE
        and (alias is None or not alias.args.get("columns"))
    )


def _is_star(node: Expr) -> bool:
    return isinstance(node, exp.Star) and not _said(node)


def _column(node: Expr) -> tuple[str, str] | None:
    """Return the names of a column and of its result column; None for other expressions."""
    column = node.this if isinstance(node, exp.Alias) else node
    if not isinstance(column, exp.Column) or len(column.parts) != 1:
        return None
    return (column.name, node.alias_or_name) if isinstance(column.this, exp.Identifier) else None
