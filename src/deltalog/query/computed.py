"""Find the expressions of a query that the package `expressions` computes with Spark's semantics.

DuckDB and Spark differ in details: how a cast rounds, which type a quotient has, where positions in
strings begin. DuckDB computes joins, groups, windows and sorting. DuckDB also computes an
expression over one row if, for the types of its columns, the expression has the same result in both
systems. All other expressions become Python functions, which DuckDB calls for each batch and which
`expressions` computes. This module finds these parts of a query.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError
from deltalog.expressions import parse_sql
from deltalog.expressions.aliases import WITHOUT_NAME
from deltalog.expressions.other_dialects import instead_of
from deltalog.expressions.render import quote_name, type_name
from deltalog.query.joins import Joined, Star, joined_by_names, with_naturals
from deltalog.query.lexer import NAMES, SyntaxProblem, TextOfParts, split
from deltalog.query.native import common_type_of_values
from deltalog.query.parse import FAILURES, span_of, start_of
from deltalog.query.query_trees import (
    AGGREGATES,
    ASKED,
    BY_NAME,
    OF_DOUBLES,
    ROWS_FROM_ONE,
    WRITTEN,
    ResultType,
    children_of,
    core_of,
    has_other,
    inputs_of,
    is_group,
    is_input,
    is_large,
    is_of_other_type,
    is_query,
    is_random,
    is_recursive,
    is_structure,
    is_tested,
    is_whole_constant,
    mark_named,
    may_fail,
    may_make_nested,
    name_of_function,
    note_groups,
    note_safe_constants,
    parts_around,
    replaced,
    simple_operands,
    state_groups,
    with_filter,
    with_function,
    with_positions,
)
from deltalog.query.regressions import PARTS_OF_REGRESSION
from deltalog.query.result_columns import name_results
from deltalog.query.windows import check_window
from deltalog.schema.types import STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlglot.expressions import Expr

    from deltalog.expressions import Expression

INPUT: Final = WITHOUT_NAME
_MARK: Final = mark_named("mark")
_ARGUMENT: Final = mark_named("argument")
MARKS: Final = re.compile(rf"{_MARK}(\d+)_")
ROW_OF_SIDE: Final = "deltalog_row"
ARGUMENTS: Final = re.compile(rf"{_ARGUMENT}\d+_(\d)_")
_CONDITIONS: Final = (exp.Where, exp.Having, exp.Qualify, exp.Join)
# Nodes that deltalog does not compute: DuckDB receives them unchanged, or they are not an
# expression over one row.
_PLAIN: Final = (
    exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Star, exp.Placeholder, exp.Parameter,
    exp.Identifier, exp.TableAlias, exp.Limit, exp.Offset, exp.Fetch, exp.WindowSpec, exp.DataType,
    exp.Hint, exp.Var, exp.Version, exp.TableSample, exp.Pivot,
)  # fmt: skip
# Matches dates and times in forms that Spark accepts, but DuckDB does not.
_OTHER_MOMENTS: Final = re.compile(
    r"""\b(?:date\s*'(?!\d{4}-\d\d-\d\d')|timestamp(?:_ntz|_ltz)?\s*'"""
    r"""(?!\d{4}-\d\d-\d\d(?:\ \d\d:\d\d:\d\d(?:\.\d{1,6})?)?'))""",
    re.IGNORECASE,
)
# An expression that contains one of these nodes is not a constant, or its value is not known yet.
_UNKNOWN: Final = (exp.Column, exp.Query, exp.Placeholder)
_BESIDE: Final[dict[ResultType, tuple[Callable[..., Expr], ...]]] = {
    ResultType.AVERAGE: (exp.Sum, exp.Count),
    ResultType.POPULATION: (exp.AnyValue,),
    ResultType.CORRELATION: (exp.RegrCount, exp.CovarPop),
    ResultType.REGRESSION: PARTS_OF_REGRESSION,
    ResultType.SKEWNESS: (exp.ArrayAgg,),
    ResultType.KURTOSIS: (exp.ArrayAgg,),
}
"""The kind of a function → the functions of the same arguments that its result needs."""
_IS_SPELLED: Final = re.compile(r"struct|zip|(?<!:):(?!:)", re.IGNORECASE)
_IS_NAME: Final = re.compile(r"""(?:\w+|"[^"]*")(?:\.(?:\w+|"[^"]*"))*""")
_NO_NUMBERS: Final = (exp.Column, exp.Query, exp.Null, exp.Boolean)
_STRING_KIND: Final = "text"
_OTHER: Final = "other"
_MOST_ROWS: Final = 2**63 - 1
_MYSQL_LIST: Final = "group_concat"
_MOST_SHOWN: Final = 60
"""The number of characters of an input in an error, such as of a subquery."""


@dataclass(frozen=True, slots=True)
class Computed:
    """An expression over one row, which may be computed by Python.

    Args:
        text: the expression in Spark's dialect, in which a name replaces each input.
        parameters: the names of the query parameters in the expression.
        inputs: the columns and aggregates that the expression uses. For each: its name in `text`,
            and its SQL in DuckDB's dialect, with marks.
        native: the expression in DuckDB's dialect, with marks; None if DuckDB has no equivalent.
        place: the position of the expression's first character in the query.
        chain: for a condition in a chain of AND and OR, or a value of SELECT, the number of this
            chain or SELECT, else None. Within it, equal inputs have equal types.
        shown: the user's text of each input.
    """

    text: str
    parameters: frozenset[str]
    inputs: tuple[tuple[str, str], ...]
    native: str | None
    place: int
    chain: int | None = None
    shown: tuple[str, ...] = ()

    def named(self, message: str) -> str:
        """Return a message in which the user's texts replace the names of inputs."""
        return _with_inputs(message, self.shown)


def _with_inputs(message: str, shown: Sequence[str]) -> str:
    return re.sub(rf"`?{INPUT}(\d+)`?", lambda mark: shown[int(mark[1])], message)


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate function whose result has another type in Spark than in DuckDB.

    Args:
        kind: the rule that determines the type of the result.
        texts: the call in DuckDB's dialect, in which marks replace the arguments; then the calls of
            other functions, such as the sum and the count for an average.
        arguments: the arguments whose types must be known, in DuckDB's dialect, with marks.
    """

    kind: ResultType
    texts: tuple[str, ...]
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """The columns of one side of UNION, EXCEPT, INTERSECT or IN. Both sides must have equal types.

    Args:
        first: the number of the part that is the first side. The next part is the second side.
        place: the position of the operation in the query.
        values: the values before IN, in DuckDB's dialect, with marks; empty if this side is a
            query.
    """

    first: int
    place: int
    values: tuple[str, ...] = ()


Part = Computed | Aggregated | Side | Joined | Star


@dataclass(frozen=True, slots=True)
class QueryOfParts:
    """A query in DuckDB's dialect, in which marks replace its parts.

    Args:
        text: the SQL of the query, with marks.
        parts: the parts. A mark contains the index of its part.
        makes_nested: whether the query may make structs, arrays or maps of other values.
    """

    text: str
    parts: tuple[Part, ...]
    makes_nested: bool


def divided(tree: Expr, source: TextOfParts) -> QueryOfParts:
    """Split a query into its expressions over one row, and the rest of the query.

    Args:
        tree: the tree of the query, which is modified.
        source: the text of the query, with the positions in the original text.

    Raises:
        SyntaxProblem: a function does not exist, or an expression is not valid in Spark.
    """
    parts = _Parts(source)
    note_safe_constants(tree, source.text)
    name_results(tree, source)
    for select in tree.find_all(exp.Select):
        state_groups(select)
        note_groups(select)
    for clause in tree.find_all(exp.Limit, exp.Offset):
        _check_number(clause)
    for node in tree.find_all(exp.Any, exp.All, exp.ExplodeOuter, exp.PosexplodeOuter):
        _check_supported(node)
    for window in tree.find_all(exp.Window):
        _check_order(window)
        check_window(window)
    for select in tree.find_all(exp.Select):
        _check_generators(select)
    makes_nested = any(map(may_make_nested, tree.walk()))
    found = parts.visit(tree)
    return QueryOfParts(_duckdb(found), tuple(parts.found), makes_nested)


def _check_number(clause: Expr) -> None:
    """Refuse a LIMIT or OFFSET that is no number of rows; DuckDB's error would not name it."""
    value: Any = clause.args["expression"]
    if isinstance(value, exp.Placeholder):
        return  # the value is checked when the query runs
    is_other = isinstance(value, exp.Literal) and not (
        value.is_int and int(value.name) <= _MOST_ROWS
    )
    if is_other or isinstance(value, exp.Neg) or value.find(*_NO_NUMBERS):
        raise SyntaxProblem(
            start_of(value),
            f"{clause.key.upper()} expects a number of rows, found {value.sql(dialect='spark')}",
        )


def _duckdb(tree: Expr) -> str:
    try:
        return with_positions(with_naturals(tree)).sql(
            dialect="duckdb", unsupported_level=ErrorLevel.RAISE
        )
    except FAILURES as error:
        raise SyntaxProblem(start_of(tree), f"DuckDB has no equivalent: {error}") from error


def _same_for_equals(text: str, columns: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return the words of an expression and its columns, without differences that mean nothing.

    So `GROUP BY b % 2` groups by `B%2`, too. Names of fields and parameters mean their spelling.
    """
    is_spelled = _IS_SPELLED.search(text) is not None
    words = (
        word.text if is_spelled or word.kind not in NAMES else name_key(word.text)
        for word in split(text)
    )
    return tuple(words), tuple(
        name_key(one) if _IS_NAME.fullmatch(one) and not is_spelled else one for one in columns
    )


class _Parts:
    """Collects the parts of a query, from its root to its leaves."""

    def __init__(self, source: TextOfParts) -> None:
        self._source = source
        self.found: list[Part] = []
        self._known: dict[tuple[Any, ...], int] = {}
        self._shown: dict[str, str] = {}
        self._scopes = count(1)
        self._scope = 0
        self._chain: int | None = None

    def visit(self, node: Expr) -> Expr:
        """Replace the parts inside a node by marks; return the new node."""
        if isinstance(node, exp.Anonymous) and node.name.lower() in BY_NAME:
            node = replaced(node, BY_NAME[node.name.lower()](this=node.expressions[0]))
        core = core_of(node)
        if isinstance(core, exp.AggFunc | exp.RowNumber):
            return self._aggregate(node, core)
        if isinstance(node, exp.Uuid) and is_random(node):  # DuckDB's is no string
            return replaced(node, exp.cast(node.copy(), exp.DType.TEXT))
        if (isinstance(node, _PLAIN) and not is_of_other_type(node)) or is_input(node):
            return node
        if isinstance(node, exp.Values):
            self._unify(node)
        _check_condition(node)
        if isinstance(node, exp.And | exp.Or) and may_fail(node):
            return self._guard(node)
        if isinstance(node, exp.Ordered):
            return self._key(node)
        if is_structure(node):
            return self._structure(node)
        return self._compute(node)

    def _key(self, node: exp.Ordered) -> Expr:
        """Replace a sort key by a mark, because its type decides how it is written."""
        self._structure(node)
        query = node.parent.parent if node.parent is not None else None
        # Without a mark: the keys of such queries must be columns of the result; a number is the
        # position of a column.
        is_result = isinstance(query, exp.SetOperation) or (
            isinstance(query, exp.Select) and query.args.get("distinct") is not None
        )
        if is_result or isinstance(node.this, exp.Literal | exp.Null | exp.Placeholder):
            return node
        # Inside an expression, DuckDB prefers a column of the tables to one of the result.
        meant = _named_result(query, node.this) or node.this
        if any(map(is_random, meant.walk())):
            return node
        number = len(self.found)
        texts = (_duckdb(_argument(number)), _duckdb(node.this))
        self.found.append(Aggregated(ResultType.KEY, texts, (_duckdb(meant),)))
        self._marked(node.this, number)
        return node

    def _compute(self, node: Expr) -> Expr:
        """Replace an expression over one row by a mark."""
        columns = dict[str, str]()
        start = start_of(node)
        if not node.meta.get(WRITTEN):
            start, text = self._text(node, columns)
        elif isinstance(node, exp.Case):
            (branch,) = node.args["ifs"]
            condition, value = (
                self._part(one, columns) for one in (branch.this, branch.args["true"])
            )
            text = f"CASE WHEN {condition} THEN {value} END"
        else:
            text = self._written(node, columns)
        return self._found(node, text, columns, start)

    def _text(self, node: Expr, columns: dict[str, str]) -> tuple[int, str]:
        """Return where the user's text of an expression begins, and the text.

        Its inputs are visited, and get the names in `columns`.
        """
        span = span_of(node)
        if span is None:
            raise SyntaxProblem(start_of(node), "this expression is not supported here")
        inputs = sorted(inputs_of(node), key=lambda one: span_of(one) or (0, 0))
        start, end = span
        text, copied = "", start
        has_names = node.find(exp.Lambda) is None
        for one in inputs:
            place = span_of(one)
            if place is None or place[0] < copied:
                raise SyntaxProblem(start, "this expression is not supported here")
            name = self._input(one, columns, has_names=has_names)
            text += self._source.text[copied : place[0]] + quote_name(name)
            copied = place[1]
        return start, text + self._source.text[copied:end]

    def _part(self, node: Expr, columns: dict[str, str]) -> str:
        """Return the text of a part of an expression that deltalog has added."""
        if is_input(node) or is_query(node) or isinstance(core_of(node), exp.AggFunc):
            return quote_name(self._input(node, columns, has_names=True))
        if node.meta.get(WRITTEN):
            return self._written(node, columns)
        return self._text(node, columns)[1]

    def _written(self, node: Expr, columns: dict[str, str]) -> str:
        """Return the text of an expression that deltalog has added, of columns and constants."""
        written = node.copy()
        for one, place in zip([*inputs_of(node)], [*inputs_of(written)], strict=True):
            name = self._input(one, columns, has_names=True)
            replaced(place, exp.column(name, quoted=True))
        return written.sql(dialect="spark")

    def _input(self, node: Expr, columns: dict[str, str], *, has_names: bool) -> str:
        """Visit an input of an expression; return its name, which equal inputs share."""
        span = span_of(node)
        text = node.sql(dialect="spark") if span is None else self._source.text[slice(*span)]
        kept = self.visit(node.copy())
        shown = _duckdb(kept)
        if shown not in columns:
            own = kept.name if has_names and isinstance(kept, exp.Column) else ""
            is_free = (
                own
                and not MARKS.match(own)
                and name_key(own) not in map(name_key, columns.values())
            )
            columns[shown] = own if is_free else f"{INPUT}{len(columns)}"
            self._shown[shown] = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
        # DuckDB compares no results of comparisons without brackets, as in a > 3 = true.
        is_chained = is_group(node) and isinstance(node, exp.Predicate)
        replaced(node, exp.paren(kept, copy=False) if is_chained else kept)
        return columns[shown]

    def _found(self, node: Expr, text: str, columns: dict[str, str], start: int) -> Expr:
        """Note an expression over the columns in a text, and replace it by a mark."""
        names = frozenset(
            one.name for one in node.find_all(exp.Placeholder) if isinstance(one.this, str)
        )
        shown = tuple(self._shown[one] for one in columns)
        _checked(text, names, start, shown)
        native: str | None = None
        if not _OTHER_MOMENTS.search(text):
            with contextlib.suppress(SyntaxProblem):
                native = _duckdb(node)
        key = (*_same_for_equals(text, columns), self._scope)
        if key not in self._known:
            self._known[key] = len(self.found)
            origin = self._source.origin(start)
            columns_of = tuple(zip(columns.values(), columns, strict=True))
            part = Computed(text, names, columns_of, native, origin, self._chain, shown)
            self.found.append(part)
        return self._marked(node, self._known[key])

    def _structure(self, node: Expr) -> Expr:
        """Visit the children of a node that is not an expression over one row."""
        common = node.args.get("with_")
        # Visit a long chain without recursion, because recursion would exceed Python's stack.
        if operands := simple_operands(node):
            self._visit_chain(operands)
            return node
        children = [one for one in children_of(node) if one is not common]
        scope, chain = self._scope, self._chain
        shown: set[int] = set()
        if isinstance(node, exp.Select | exp.SetOperation):
            # In a subquery, the same names mean other columns.
            self._scope = next(self._scopes)
            shown = set(map(id, node.expressions)) if isinstance(node, exp.Select) else set()
        for child in [common, *children] if common is not None else children:
            if isinstance(node, exp.Query):
                # Other clauses may mean a result column with the name of a column.
                self._chain = -self._scope if id(child) in shown else None
            self._condition(child) if is_tested(child) else self.visit(child)
        self._scope, self._chain = scope, chain
        is_written = bool(node.meta.get(WRITTEN))
        if isinstance(node, exp.SetOperation) and not is_recursive(node) and not is_written:
            self._note_sides(node)
        elif isinstance(node, exp.In):
            self._note_values(node)
        elif isinstance(node, exp.Select):
            self._note_join(node)
        return node

    def _visit_chain(self, operands: Iterable[Expr]) -> None:
        """Visit simple conditions, over columns and constants, that AND and OR join."""
        before = self._chain
        self._chain = len(self.found) if before is None else before
        for one in operands:
            self._condition(one) if is_tested(one) else self.visit(one)
        self._chain = before

    def _condition(self, node: Expr) -> Expr:
        """Replace a condition by a mark, because DuckDB accepts values of any type as conditions.

        NOT demands a boolean. It is omitted from the SQL if DuckDB computes the same.
        """
        columns = dict[str, str]()
        held = exp.Paren(this=node.copy())
        replaced(node, held)
        text = self._part(held.this, columns)
        return self._found(held, f"NOT (NOT ({text}))", columns, start_of(held))

    def _note_join(self, node: exp.Select) -> None:
        """Replace the stars of a query that joins by column names by marks."""
        joined = joined_by_names(node, _duckdb)
        if joined is None:
            return
        number = len(self.found)
        self.found.append(joined)
        for one in list(node.expressions):
            star = one.this if isinstance(one, exp.Column) else one
            if not isinstance(star, exp.Star):
                continue
            if star.args.get("replace") or star.args.get("rename"):
                problem = "a star in a query with a join by names supports only EXCEPT"
                raise SyntaxProblem(start_of(one), problem)
            table = one.table if isinstance(one, exp.Column) else None
            excluded = tuple(column.name for column in star.args.get("except_") or ())
            self.found.append(Star(number, table, excluded, start_of(one)))
            self._marked(one, len(self.found) - 1)

    def _note_sides(self, node: exp.SetOperation) -> None:
        """Replace the columns of both sides of an operation by marks if Spark may cast them."""
        first = len(self.found)
        for name in ("this", "expression"):
            node.set(name, self._side(node.args[name], first, start_of(node)))

    def _note_values(self, node: exp.In) -> None:
        """Replace the values before IN, and the columns of the query after IN, by marks."""
        values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        first, place = len(self.found), start_of(node)
        self.found.append(Side(first, place, tuple(map(_duckdb, values))))
        replaced(node.this, exp.column(f"{_MARK}{first}_"))
        query = node.args["query"]
        query.set("this", self._side(query.this, first, place))

    def _side(self, query: Expr, first: int, place: int) -> Expr:
        mark = exp.column(f"{_MARK}{len(self.found)}_")
        self.found.append(Side(first, place))
        rows = exp.Subquery(this=query, alias=exp.TableAlias(this=ROW_OF_SIDE))
        return exp.Select(expressions=[mark], from_=exp.From(this=rows))

    def _guard(self, node: Expr) -> Expr:
        """Replace conditions by a mark if one may fail for rows that an earlier one excludes.

        DuckDB reorders conditions, but Spark does not. Conditions that cannot fail also remain next
        to the mark, because they prune files.
        """
        simple = [
            one.copy() for one in node.flatten(unnest=False)
            if isinstance(node, exp.And) and not has_other(one)
        ]  # fmt: skip
        self._visit_chain(simple)
        parent_of = exp.Paren(this=node.copy())
        mark = self._compute(parent_of.this)
        found = exp.and_(*simple, mark, copy=False) if simple else mark
        return replaced(node, exp.paren(found, copy=False))

    def _unify(self, node: exp.Values) -> None:
        """Cast the constants in each column of VALUES to their common type."""
        rows = [
            row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions
        ]
        if len({len(row) for row in rows}) > 1:
            raise SyntaxProblem(start_of(node), "the rows of VALUES have different lengths")
        for column in zip(*rows, strict=True):
            items = [one for one in column if not isinstance(one, exp.Null)]
            kinds = {_kind_of_constant(one) for one in items}
            if len(items) < 2 or (len(kinds) < 2 and kinds != {_OTHER}):
                continue
            spans = [span_of(one) for one in items]
            if None in spans or any(one.find(*_UNKNOWN) for one in items):
                continue
            texts = [self._source.text[span[0] : span[1]] for span in spans if span is not None]
            try:
                common = common_type_of_values(texts)
            except InvalidInputError as error:
                raise SyntaxProblem(start_of(items[0]), str(error)) from error
            if _STRING_KIND in kinds and (len(kinds) > 1) and common != STRING:
                raise SyntaxProblem(
                    start_of(items[0]), "the values of a column of VALUES have no common type"
                )
            for one, text in zip(items, texts, strict=True):
                place = self._source.origin((span_of(one) or (0, 0))[0])
                cast = f"CAST({text} AS {type_name(common)})"
                self.found.append(Computed(cast, frozenset(), (), None, place))
                self._marked(one, len(self.found) - 1)

    def _aggregate(self, node: Expr, core: Expr) -> Expr:
        """Cast the result of an aggregate function to Spark's type; visit its arguments."""
        row = next((AGGREGATES[kind] for kind in type(core).__mro__ if kind in AGGREGATES), None)
        start = core.meta.get("start") or 0
        is_foreign = self._source.text[start:].lower().startswith(_MYSQL_LIST)
        if row is None or is_foreign or type(core) is exp.ApproxQuantile:
            span = span_of(core) or (0, 0)
            spelled = self._source.text[slice(*span)].partition("(")[0].strip().lower()
            name = spelled or name_of_function(core)
            problem = f"deltalog has no SQL function {name!r} in queries{instead_of(name)}"
            raise SyntaxProblem(start_of(node), problem)
        kind, write = row
        values = list(children_of(core)) if isinstance(core, exp.Count) else []
        if values and all(map(is_whole_constant, values)):
            # If the argument is never NULL, Spark counts all rows, and does not compute the
            # argument.
            core.set("this", exp.Literal.number(1))
            core.set("expressions", None)
        for part in [*parts_around(node, core), *children_of(core)]:
            self.visit(part)
        written = write(core)
        replaced(core, written)
        node = written if node is core else node
        if node is not written:
            node = replaced(node, with_filter(node))
        return node if kind is ResultType.SAME else self._typed(node, kind)

    def _typed(self, node: Expr, kind: ResultType) -> Expr:
        """Replace a function by a mark if the type of its result depends on its argument's type."""
        number = len(self.found)
        arguments = list[str]()
        for place, value in enumerate(_asked_arguments(core_of(node), kind)):
            arguments.append(_duckdb(value))
            replaced(value, _argument(number, place))
        texts = [_duckdb(node)]
        texts += [_duckdb(with_function(node, other)) for other in _BESIDE.get(kind, ())]
        self.found.append(Aggregated(kind, tuple(texts), tuple(arguments)))
        return self._marked(node, number)

    @staticmethod
    def _marked(node: Expr, number: int) -> Expr:
        return replaced(node, exp.column(f"{_MARK}{number}_"))


def _check_condition(node: Expr) -> None:
    """Refuse a constant as a condition, which DuckDB would convert."""
    for one in (node.args.get("on"), node.this) if isinstance(node, _CONDITIONS) else ():
        if isinstance(one, exp.Null | exp.Literal):
            raise SyntaxProblem(start_of(node), "expected a condition, found a constant")


def _argument(number: int, place: int = 0) -> Expr:
    """Return the mark of an argument of an aggregate function."""
    return exp.column(f"{_ARGUMENT}{number}_{place}_")


def _asked_arguments(core: Expr, kind: ResultType) -> Iterator[Expr]:
    """Yield the arguments of a function whose types must be known."""
    if kind not in ASKED:
        return
    called = isinstance(core, exp.Anonymous)
    value = core.expressions[kind is ResultType.BY] if called else core.this
    while isinstance(value, exp.Distinct | exp.Order):
        inner = value.this or next(iter(value.expressions), None)
        if inner is None:
            raise SyntaxProblem(start_of(core), "expected a value after DISTINCT")
        value = inner
    yield value
    second = core.args.get("expression")
    if kind in OF_DOUBLES and second is not None:
        yield second


def _check_supported(node: Expr) -> None:
    """Refuse what neither Spark nor DuckDB's SQL has, with its counterpart in Spark."""
    if isinstance(node, exp.Any | exp.All) and isinstance(node.this, exp.Query):
        raise SyntaxProblem(
            start_of(node),
            "Spark has no ANY, SOME or ALL with a query: write x IN (SELECT …), or compare with "
            "one value, as in x > (SELECT min(…) …)",
        )
    if isinstance(node, exp.ExplodeOuter | exp.PosexplodeOuter):
        name = name_of_function(node)
        raise SyntaxProblem(
            start_of(node),
            f"deltalog has {name} only as LATERAL VIEW OUTER {name.removesuffix('_outer')}(…) e AS "
            f"{'col' if name.startswith('explode') else 'pos, col'}",
        )


def _has_order(window: exp.Window) -> bool:
    """Whether a window, or the named window that it extends, has ORDER BY."""
    select = window.find_ancestor(exp.Select)
    windows = select.args.get("windows") if select is not None else None
    named = {name_key(one.name): one for one in windows or ()}
    while not window.args.get("order"):
        base = window.args.get("alias")
        if base is None or name_key(base.name) not in named:
            return base is not None  # DuckDB refuses an unknown name
        window = named.pop(name_key(base.name))
    return True


_ORDERED: Final = (
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag,
    exp.Lead, exp.NthValue,
)  # fmt: skip
"""Functions whose result depends on the order of the rows."""


def _check_order(window: exp.Window) -> None:
    """Refuse a ranking function over rows in no order: its results would be different each time."""
    core = core_of(window)
    if isinstance(core, _ORDERED) and not _has_order(window):
        name = name_of_function(core)
        raise SyntaxProblem(
            start_of(core),
            f"{name} needs an order of the rows: write {name}(…) OVER (… ORDER BY …)",
        )


def _check_generators(select: exp.Select) -> None:
    """Refuse several functions that return rows: Spark combines all rows, DuckDB pairs them."""
    values = [one.this if isinstance(one, exp.Aliases) else one.unalias() for one in select.selects]
    found = [one for one in values if isinstance(one, ROWS_FROM_ONE)]
    named = map(name_of_function, found)
    if len(found) > 1 and set(named) != {"unnest"}:
        raise SyntaxProblem(
            start_of(found[1]),
            "SELECT can have only one function that returns rows; for all combinations, write "
            "LATERAL VIEW explode(a) x AS a LATERAL VIEW explode(b) y AS b",
        )


def _named_result(query: Expr | None, key: Expr) -> Expr | None:
    """Return the expression of a query's result whose alias is a sort key; None without one."""
    if not isinstance(query, exp.Select) or not isinstance(key, exp.Column) or key.table:
        return None
    named = [one for one in query.expressions if isinstance(one, exp.Alias)]
    return next((one.this for one in named if name_key(one.alias) == name_key(key.name)), None)


def _kind_of_constant(node: Expr) -> str:
    """Return the kind of a constant. DuckDB's common type of constants of one kind is Spark's."""
    if isinstance(node, exp.Literal):
        if node.is_string:
            return _STRING_KIND
        return "whole" if node.name.isdecimal() and not is_large(node) else "number"
    return "truth" if isinstance(node, exp.Boolean) else _OTHER


def _checked(
    text: str, parameters: frozenset[str], place: int, shown: Sequence[str] = ()
) -> Expression:
    try:
        return parse_sql(text, parameters=dict.fromkeys(parameters))
    except InvalidInputError as error:
        raise SyntaxProblem(place, _with_inputs(str(error), shown)) from error
