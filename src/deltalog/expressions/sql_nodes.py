"""Converting sqlglot's tree to expressions.

Interprets sqlglot's node types and their arguments. sqlglot accepts much syntax that Spark does
not. So an unknown node type or argument is an error with its position; it is never ignored.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from deltalog._util.escaping import name_key
from deltalog._util.readable import counted
from deltalog._util.similar_names import similar_to
from deltalog.errors import InvalidInputError
from deltalog.expressions import nodes, sql_constants
from deltalog.expressions.aliases import names_of_fields
from deltalog.expressions.literals import values_of
from deltalog.expressions.mistakes import advice_on_options
from deltalog.expressions.nodes import Call, Column, Expression, Literal, lit
from deltalog.expressions.spark_dialect import node_of, tokens_of
from deltalog.expressions.spark_tokens import check_double_quotes, error_at, retag_for_deltalake
from deltalog.schema.collations import with_collations
from deltalog.schema.primitives import PRIMITIVES, primitive_in_sql, primitive_named
from deltalog.schema.primitives.table import unknown_type
from deltalog.schema.types import (
    BY_BYTES,
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
    collation_named,
    named_type,
)

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_COMPARISONS: Final[dict[type[Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: Final[dict[type[Expr], str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_CALLS: Final[dict[type[Expr], str]] = {
    exp.IntDiv: "div",
    exp.DPipe: "concat",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.RegexpLike: "rlike",
}
_CHAINS: Final[dict[type[Expr], type[nodes.And | nodes.Or]]] = {
    exp.And: nodes.And,
    exp.Or: nodes.Or,
}
_EQUALITIES: Final = frozenset({exp.EQ, exp.NEQ, exp.NullSafeEQ})
_BINARY: Final = frozenset({*_COMPARISONS, *_ARITHMETIC, *_CALLS, *_CHAINS})
_TIME_ZONE: Final = (
    "Spark has no AT TIME ZONE: write from_utc_timestamp(moment, 'Europe/Paris') or "
    "to_utc_timestamp(moment, 'Europe/Paris')"
)
_CONSTRUCTORS: Final = {
    "array": "array(1, 2)",
    "map": "map('key', 1)",
    "struct": "struct(1 AS a)",
    "row": "struct(1 AS a)",
}
"""Names before square brackets in other dialects → what to write instead."""
_BARE_CALLS: Final = frozenset({"current_date", "current_timestamp", "localtimestamp"})
_UNIT_FIRST: Final = frozenset(
    {"timestampadd", "timestampdiff", "dateadd", "datediff", "date_diff"}
)
# Functions in the expression tree that are operators or literals in SQL.
_OPERATORS: Final = frozenset({"interval", "[]", "&", "|", "^", "~"})
# Arguments of sqlglot's nodes that affect only the SQL that sqlglot generates.
_WRITING: Final = frozenset({"typed", "safe", "quoted", "requires_string", "coalesce"})


def read(
    sql: str,
    parameters: Sequence[object] | Mapping[str, object] | None,
    columns: Collection[str],
    *,
    quotes_names: bool = False,
) -> Expression:
    """Parse an expression; see `sql.parse_sql`."""
    tokens = tokens_of(sql)
    known = {name_key(name): name for name in columns}
    if quotes_names:
        retag_for_deltalake(sql, tokens, known)
    else:
        check_double_quotes(sql, tokens, known)
    try:
        converter = _NodeConverter(sql, tokens, parameters, known)
        return converter.whole(node_of(sql, tokens, exp.Condition))
    except RecursionError:
        raise error_at(sql, 0, "", "the expression is nested too deep") from None


def num_positional(sql: str) -> int:
    """Return the number of parameters `?`; see `sql.num_positional`."""
    return sum(token.token_type is TokenType.PLACEHOLDER for token in tokens_of(sql))


def parameter_names(sql: str) -> set[str]:
    """Return the names after colons; see `sql.parameter_names`."""
    tokens = tokens_of(sql)
    return {
        token.text for before, token in pairwise(tokens) if before.token_type is TokenType.COLON
    }


def with_backticks(sql: str, columns: Collection[str]) -> str:
    """Put names in backticks; see `sql.with_backticks`."""
    tokens = tokens_of(sql)
    retag_for_deltalake(sql, tokens, {name_key(name) for name in columns})
    for token in reversed(tokens):
        if token.token_type is TokenType.IDENTIFIER and sql[token.start] == '"':
            name = token.text.replace("`", "``")
            sql = f"{sql[: token.start]}`{name}`{sql[token.end + 1 :]}"
    return sql


def read_type(
    sql: str,
) -> tuple[DataType, dict[tuple[str, ...], str], frozenset[tuple[str, ...]]]:
    """Parse a type with its collations; see `sql.parse_collated_type`."""
    node = _type_node(sql)
    try:
        by_bytes = frozenset(texts_by_bytes(node))
        return to_type(node), dict(collations(node)), by_bytes
    except InvalidInputError as error:
        raise error_at(sql, 0, "", str(error)) from error


def read_limits(sql: str) -> list[tuple[tuple[str, ...], str, int]]:
    """Return the length limits in an SQL type; see `sql.length_limits`."""
    return list(limits(_type_node(sql)))


def _type_node(sql: str) -> exp.DataType:
    node = node_of(sql, tokens_of(sql), exp.DataType)
    if not isinstance(node, exp.DataType):
        raise error_at(sql, 0, "", "expected a type")
    return node


class _NodeConverter:
    def __init__(
        self,
        sql: str,
        tokens: list[Token],
        parameters: Sequence[object] | Mapping[str, object] | None,
        known: Collection[str],
    ) -> None:
        self._sql = sql
        self._known = known
        self._positional = list(parameters) if isinstance(parameters, list | tuple) else None
        self._named = parameters if isinstance(parameters, Mapping) else None
        # The parameters of the lambdas around the current node, in lower case.
        self._variables: frozenset[str] = frozenset()
        self._places = [
            token.start for token in tokens if token.token_type is TokenType.PLACEHOLDER
        ]

    def whole(self, node: Expr) -> Expression:
        """Convert the root of the parsed string."""
        found = self.read(node)
        if self._positional and len(self._places) < len(self._positional):
            raise InvalidInputError(
                f"found {counted(len(self._positional), 'value')} for parameters, but "
                f"{self._sql!r} has {counted(len(self._places), 'parameter')}"
                f"{advice_on_options(self._sql, len(self._places))}"
            )
        return found

    def read(self, node: Expr) -> Expression:
        kind = type(node)
        if kind in _BINARY:
            return self.binary(node)
        converter = _CONVERTERS.get(kind)
        if converter is None:
            if kind is exp.AtTimeZone:
                self._refuse(node, _TIME_ZONE)
            self._refuse(node, f"{kind.__name__.upper()} cannot be used here{_instead_of(node)}")
        method, arguments = converter
        self.check(node, arguments)
        return method(self, node)

    def check(self, node: Expr, arguments: frozenset[str]) -> None:
        for name, value in node.args.items():
            if name not in arguments and name not in _WRITING and value:
                self._refuse(
                    node, f"{type(node).__name__.upper()} with {name.upper()} cannot be used here"
                )

    def _refuse(self, node: Expr, problem: str, cause: Exception | None = None) -> NoReturn:
        """Raise an error at the first position in the SQL that belongs to a node."""
        places = [part.meta for part in node.walk() if "start" in part.meta]
        first = min(places, key=lambda meta: meta["start"], default=None)
        start, end = (first["start"], first["end"] + 1) if first else (0, 0)
        raise error_at(self._sql, start, self._sql[start:end], problem) from cause

    def _attempt(self, node: Expr, make: Callable[..., Any], *args: Any) -> Any:
        try:
            return make(*args)
        except InvalidInputError as error:
            self._refuse(node, str(error), error)

    def binary(self, node: Expr) -> Expression:
        # sqlglot nests `a AND b AND c …` to the left. Use a loop, because long chains exceed
        # Python's stack.
        spine: list[Expr] = []
        while type(node) in _BINARY:
            self.check(node, _THIS_AND_OTHER)
            spine.append(node)
            node = node.this
        found = self.read(node)
        while spine:
            node = spine.pop()
            kind = _CHAINS.get(type(node))
            if kind is None:
                found = _joined(node, found, self.read(node.expression))
                continue
            operands = [found, self.read(node.expression)]
            while spine and type(spine[-1]) is type(node):
                operands.append(self.read(spine.pop().expression))
            found = kind(tuple(operands))
        return found

    def literal(self, node: Expr) -> Expression:
        if node.is_string:
            return Literal(node.name)
        found: Literal = self._attempt(node, sql_constants.number, node.name)
        return found

    def texts(self, node: Expr) -> Expression:
        return Literal("".join(self.text(part) for part in node.expressions))

    def text(self, node: Expr) -> str:
        if not isinstance(node, exp.Literal) or not node.is_string:
            self._refuse(node, "expected a string in single quotes")
        return node.name

    def datetime(self, node: Expr) -> Expression:
        text = self.text(node.expression)
        found: Literal = self._attempt(
            node.expression, sql_constants.datetime_literal, node.this.upper(), text
        )
        return found

    def interval(self, node: Expr) -> Expression:
        parts: list[Expression] = []
        for part in node.this.expressions:
            inner = part.this if isinstance(part, exp.Neg) else part
            unit = inner.args.get("unit")
            text, sign = inner.this.name, 1 if inner is part else -1
            first, _, last = (unit.name if unit else "").partition(" TO ")
            read: Callable[[], tuple[Literal, ...]] = (
                partial(sql_constants.fields_of, text, first, last, sign)
                if last
                else partial(sql_constants.interval, text, first or None, sign)
            )
            parts += self._attempt(inner.this, read)
        return Call("interval", tuple(parts))

    def parameter(self, node: Expr) -> Expression:
        return lit(self.value_of(node))

    def value_of(self, node: Expr) -> object:
        """Return the value of a parameter."""
        if node.this:
            if self._named is None or node.this not in self._named:
                similar = similar_to(node.this, self._named or ()).replace(":", ";", 1)
                self._refuse(
                    node,
                    f"no value was given for the parameter :{node.this}; pass a dictionary, such "
                    f"as parameters={{{node.this!r}: value}}{similar}",
                )
            return self._named[node.this]
        if self._positional is None:
            self._refuse(
                node, "a parameter ? needs a list of values as `parameters`, and :name a dictionary"
            )
        index = bisect_left(self._places, node.meta["start"])
        if index >= len(self._positional):
            self._refuse(
                node, f"found only {counted(len(self._positional), 'value')} for parameters"
            )
        return self._positional[index]

    def column(self, node: Expr) -> Expression:
        assert isinstance(node, exp.Column)  # noqa: S101  # called only for columns
        path = tuple(map(self.name, node.parts))
        # CURRENT_DATE without brackets is a function call, but in backticks it is a column. As in
        # Spark, a column of this name has precedence over the function.
        key = name_key(path[0])
        is_bare = len(path) == 1 and not node.this.args["quoted"]
        if is_bare and key in _BARE_CALLS and key not in self._known:
            return Call(key)
        if key not in self._variables:
            return Column(path)
        found: Expression = nodes.Variable(key)
        for name in path[1:]:
            found = Call("[]", (found, Literal(name)))
        return found

    def lambda_(self, node: Expr) -> Expression:
        parameters = tuple(name_key(name.name) for name in node.expressions)
        if len(set(parameters)) < len(parameters):
            self._refuse(node, "the parameters of a lambda must have different names")
        outer = self._variables
        self._variables = outer | set(parameters)
        body = self.read(node.this)
        self._variables = outer
        return nodes.Lambda(parameters, body)

    def name(self, node: Expr) -> str:
        if not isinstance(node, exp.Identifier):
            self._refuse(node, "expected a name")
        return node.name

    def field(self, node: Expr) -> Expression:
        source, name = self.read(node.this), self.name(node.expression)
        if isinstance(source, Column):
            return Column((*source.path, name))
        return Call("[]", (source, Literal(name)))

    def item(self, node: Expr) -> Expression:
        is_name = isinstance(node.this, exp.Column) and len(node.this.parts) == 1
        instead = _CONSTRUCTORS.get(name_key(node.this.name)) if is_name else None
        if instead and name_key(node.this.name) not in self._known and len(node.expressions) != 1:
            self._refuse(node, f"in Spark's SQL, write {instead}")
        if len(node.expressions) != 1:
            self._refuse(node, "expected one value in the brackets")
        return Call("[]", (self.read(node.this), self.read(node.expressions[0])))

    def call(self, node: Expr) -> Expression:
        name = node.name.lower()
        if name in _OPERATORS:
            self._refuse(node, f"there is no function {name!r}")
        if name == "struct":
            return self.row(node)
        arguments = [self.read(argument) for argument in node.expressions]
        # The unit in DATEADD(DAY, …) has no quotes, so sqlglot parses it as a column. With two
        # arguments, DATEDIFF(day, other) has no unit.
        if name in _UNIT_FIRST and len(arguments) > 2:
            first = node.expressions[0]
            is_word = isinstance(first, exp.Column) and not first.this.args["quoted"]
            unit = sql_constants.unit_of(first.name) if is_word else None
            arguments[0] = Literal(unit) if unit else arguments[0]
        return Call(name, tuple(arguments))

    def row(self, node: Expr) -> Expression:
        """Convert `struct(a, b AS c)` or the row `(a, b AS c)`."""
        parts = node.expressions
        names = [part.alias if isinstance(part, exp.Alias) else None for part in parts]
        values = [part.this if isinstance(part, exp.Alias) else part for part in parts]
        return row_of(tuple(map(self.read, values)), names)

    def cast(self, node: Expr) -> Expression:
        to = node.args["to"]
        data_type: DataType = self._attempt(to, to_type, to)
        if has_collation(to):
            self._refuse(to, "the type of a cast cannot have COLLATE: write COLLATE after the cast")
        if is_narrower(to):
            self._refuse(
                to, f"a cast to {to.this.upper()} is not supported: write an INTERVAL literal"
            )
        return nodes.Cast(self.read(node.this), data_type, isinstance(node, exp.TryCast))

    def collate(self, node: Expr) -> Expression:
        identifier: str = self._attempt(node, collation_named, node.expression.name)
        return nodes.Collate(self.read(node.this), identifier)

    def case(self, node: Expr) -> Expression:
        subject = self.read(node.this) if node.this else None
        branches: list[tuple[Expression, Expression]] = []
        for branch in node.args["ifs"]:
            condition = self.read(branch.this)
            if subject is not None:
                condition = nodes.Comparison("=", subject, condition)
            branches.append((condition, self.read(branch.args["true"])))
        default = node.args.get("default")
        return nodes.Case(tuple(branches), None if default is None else self.read(default))

    def negation(self, node: Expr) -> Expression:
        return nodes.Not(self.read(node.this))

    def negative(self, node: Expr) -> Expression:
        inner = node.this
        if isinstance(inner, exp.Neg):
            return self.read(inner.this)
        if isinstance(inner, exp.Literal) and inner.name.startswith("-") and not inner.is_string:
            inner.set("this", inner.name[1:])
            return self.read(inner)
        return Call("negative", (self.read(inner),))

    def test(self, node: Expr) -> Expression:
        operand = self.read(node.this)
        if isinstance(node.expression, exp.Null):
            return nodes.IsNull(operand)
        return nodes.Comparison("<=>", operand, self.read(node.expression))

    def membership(self, node: Expr) -> Expression:
        # As in other clients, a list as the only option means its values.
        is_parameter = [type(one) for one in node.expressions] == [exp.Placeholder]
        items = values_of(self.value_of(node.expressions[0])) if is_parameter else None
        options = tuple(map(self.read, node.expressions) if items is None else map(lit, items))
        operand = self.read(node.this)
        if all(isinstance(one, exp.Tuple) for one in (node.this, *node.expressions)):
            return is_one_of_rows(operand, options)
        return nodes.In(operand, options)

    def between(self, node: Expr) -> Expression:
        operand = self.read(node.this)
        low, high = self.read(node.args["low"]), self.read(node.args["high"])
        return nodes.And(
            (nodes.Comparison(">=", operand, low), nodes.Comparison("<=", operand, high))
        )

    def escape(self, node: Expr) -> Expression:
        return self.like(node.this, self.text(node.expression))

    def like(self, node: Expr, escape: str = "\\") -> Expression:
        operand, patterns = self.read(node.this), node.expression
        is_negated, ignore_case = bool(node.args.get("negate")), isinstance(node, exp.ILike)
        if not isinstance(patterns, exp.Any | exp.All):
            like = nodes.Like(operand, self.read(patterns), escape, ignore_case)
            return nodes.Not(like) if is_negated else like
        # NOT LIKE ANY is true if at least one pattern does not match. So NOT applies to each LIKE.
        likes: list[Expression] = []
        for pattern in patterns.this.expressions:
            like = nodes.Like(operand, self.read(pattern), ignore_case=ignore_case)
            likes.append(nodes.Not(like) if is_negated else like)
        if len(likes) == 1:
            return likes[0]
        return (nodes.And if isinstance(patterns, exp.All) else nodes.Or)(tuple(likes))


def _instead_of(node: Expr) -> str:
    """Return what to write instead of a node that has no conversion; empty if that is not known."""
    if type(node).__name__ != "Array":
        return ""
    if all(isinstance(one, exp.Column) for one in node.expressions):
        return "; a name has backticks: `name`"
    return "; an array is written array(1, 2)"


def _joined(node: Expr, left: Expression, right: Expression) -> Expression:
    kind = type(node)
    if kind in _EQUALITIES and isinstance(node.this, exp.Tuple):
        equal = equal_rows(left, right) if isinstance(node.expression, exp.Tuple) else None
        if equal is not None:
            return nodes.Not(equal) if kind is exp.NEQ else equal
    if kind in _COMPARISONS:
        return nodes.Comparison(_COMPARISONS[kind], left, right)
    if kind in _ARITHMETIC:
        return nodes.Arithmetic(_ARITHMETIC[kind], left, right)
    return Call(_CALLS[kind], (left, right))


def _arguments(*names: str) -> frozenset[str]:
    return frozenset(names)


_THIS: Final = _arguments("this")
_THIS_AND_OTHER: Final = _arguments("this", "expression")
_LISTED: Final = _arguments("this", "expressions")
_CONVERTERS: Final[
    dict[type[Expr], tuple[Callable[[_NodeConverter, Expr], Expression], frozenset[str]]]
] = {
    exp.Literal: (_NodeConverter.literal, _arguments("this", "is_string")),
    exp.HexString: (lambda _, node: sql_constants.hexadecimal(node.name), _THIS),
    exp.Null: (lambda _, __: Literal(None), frozenset()),
    exp.Boolean: (lambda _, node: Literal(node.this), _THIS),
    exp.Concat: (_NodeConverter.texts, _arguments("expressions")),
    exp.Introducer: (_NodeConverter.datetime, _THIS_AND_OTHER),
    exp.Interval: (_NodeConverter.interval, _THIS),
    exp.Placeholder: (_NodeConverter.parameter, _THIS),
    exp.Column: (_NodeConverter.column, _arguments("this", "table", "db", "catalog")),
    exp.Dot: (_NodeConverter.field, _THIS_AND_OTHER),
    exp.Bracket: (_NodeConverter.item, _LISTED),
    exp.Anonymous: (_NodeConverter.call, _LISTED),
    exp.Tuple: (_NodeConverter.row, _arguments("expressions")),
    exp.Lambda: (_NodeConverter.lambda_, _LISTED),
    exp.Cast: (_NodeConverter.cast, _arguments("this", "to")),
    exp.TryCast: (_NodeConverter.cast, _arguments("this", "to")),
    exp.Collate: (_NodeConverter.collate, _THIS_AND_OTHER),
    exp.Case: (_NodeConverter.case, _arguments("this", "ifs", "default")),
    exp.Paren: (lambda self, node: self.read(node.this), _THIS),
    exp.Not: (_NodeConverter.negation, _THIS),
    exp.Neg: (_NodeConverter.negative, _THIS),
    exp.BitwiseNot: (lambda self, node: Call("~", (self.read(node.this),)), _THIS),
    exp.Is: (_NodeConverter.test, _THIS_AND_OTHER),
    exp.In: (_NodeConverter.membership, _LISTED),
    exp.Between: (_NodeConverter.between, _arguments("this", "low", "high")),
    exp.Like: (_NodeConverter.like, _arguments("this", "expression", "negate")),
    exp.ILike: (_NodeConverter.like, _arguments("this", "expression", "negate")),
    exp.Escape: (_NodeConverter.escape, _THIS_AND_OTHER),
}


# --- SQL types: `decimal(10, 2)`, `array<struct<a: int>>`


Limit = tuple[tuple[str, ...], str, int]
_LIMITED: Final = frozenset({"char", "character", "varchar"})
# Nested type → the path elements of its parts.
_PARTS: Final = {"array": ("element",), "map": ("key", "value")}


def to_type(node: Expr) -> DataType:
    """Return the type of a node.

    Raises:
        InvalidInputError: the type does not exist.
    """
    name, parts = _read(node)
    if name == "struct":
        return StructType([_field(part) for part in parts])
    if name in _PARTS:
        first, last = to_type(parts[0]), to_type(parts[-1])
        return ArrayType(first) if name == "array" else MapType(first, last)
    if name in _LIMITED:
        raise InvalidInputError("char and varchar cannot be used in an expression; use STRING")
    row = PRIMITIVES.get(name)
    if row is None or not parts:
        return named_type(name)
    parameters = [*(part.name for part in parts), *row.defaults[len(parts) :]]
    return named_type(f"{name}({','.join(parameters)})")


def is_narrower(node: Expr) -> bool:
    """Whether a type is an interval with fewer fields than the column types for intervals.

    A number that is cast to such a type is an amount of the type's last field.
    """
    found = primitive_named(node.this)
    return found is not None and found.is_ordered and node.this != found.name


def limits(node: Expr, path: tuple[str, ...] = ()) -> Iterator[Limit]:
    """Yield the path, name and length of each `char(n)` and `varchar(n)` in a type.

    Raises:
        InvalidInputError: the type does not exist.
    """
    name, parts = _read(node)
    if name == "struct":
        for part in parts:
            yield from limits(part.args["kind"], (*path, part.name))
    elif name in _PARTS:
        for step, part in zip(_PARTS[name], parts, strict=True):
            yield from limits(part, (*path, step))
    elif name in _LIMITED:
        yield path, "varchar" if name == "varchar" else "char", int(parts[0].name)


def collations(node: Expr, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield path and collation of each string with COLLATE in a type, without fields of structs.

    Raises:
        InvalidInputError: the type or collation does not exist.
    """
    name, parts = _read(node)
    for step, part in zip(_PARTS.get(name, ()), parts, strict=False):
        yield from collations(part, (*path, step))
    given = node.args.get("collate")
    if given is not None:
        yield path, collation_named(given.name)


def texts_by_bytes(node: Expr, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each string that has COLLATE with the default collation, also in structs.

    Raises:
        InvalidInputError: the type or collation does not exist.
    """
    name, parts = _read(node)
    if name == "struct":
        for part in parts:
            yield from texts_by_bytes(part.args["kind"], (*path, part.name))
    for step, part in zip(_PARTS.get(name, ()), parts, strict=False):
        yield from texts_by_bytes(part, (*path, step))
    given = node.args.get("collate")
    if given is not None and collation_named(given.name) == BY_BYTES:
        yield path


def has_collation(node: Expr) -> bool:
    """Whether a type contains COLLATE at any depth."""
    return any(part.args.get("collate") is not None for part in node.walk())


_OF_PARTS: Final = {
    "list": "; write array<type>",
    "array": "; write array<type>",
    "map": "; write map<key type, value type>",
    "struct": "; write struct<name: type>",
}
"""The name of a nested type → how it is written."""


def _read(node: Expr) -> tuple[str, list[Expr]]:
    """Return the name and arguments of a type; check the number of arguments."""
    row, parts = primitive_in_sql(node.this), node.expressions
    name = row.name if row else node.this
    is_nested = bool(node.args.get("nested"))
    if name == "struct":
        is_right = is_nested
    elif name in _PARTS:
        is_right = is_nested and len(parts) == len(_PARTS[name])
    elif row and row.defaults:
        is_right = not is_nested and len(parts) <= len(row.defaults)
    else:
        is_right = not is_nested and len(parts) == (name in _LIMITED)
    if not is_right:
        advice = _OF_PARTS.get(name, "")
        if name in _LIMITED:
            advice = f"; write STRING, or {name.upper()}(n)"
        if row is None and not is_nested and name not in _PARTS and name not in _LIMITED:
            shown = f"{name}({', '.join(part.sql() for part in parts)})" if parts else name
            raise unknown_type(shown)
        raise InvalidInputError(
            f"expected a type, found {name} with the wrong number of parts{advice}"
        )
    if not is_nested and not all(part.is_int for part in parts):
        raise InvalidInputError(f"the brackets of {name} must contain whole numbers")
    return name, parts


def _field(node: Expr) -> Field:
    said = {type(one): one for one in node.args.get("constraints") or ()}
    comment = said.get(exp.CommentColumnConstraint)
    field = Field(
        node.this,
        to_type(node.args["kind"]),
        nullable=exp.NotNullColumnConstraint not in said,
        metadata=None if comment is None else {"comment": comment.name},
    )
    return with_collations(field, dict(collations(node.args["kind"])))


# --- Rows of values, `(a, b)` and `struct(a, b AS c)`, and their equality


def row_of(values: tuple[Expression, ...], names: Sequence[str | None]) -> Call:
    """Return a struct of values; values without a name get a default name."""
    if not any(name is not None for name in names):
        return Call("struct", values)
    found: list[Expression] = []
    for value, own, name in zip(values, names_of_fields(values), names, strict=True):
        found += [Literal(own if name is None else name), value]
    return Call("named_struct", tuple(found))


def values_of_row(row: Expression) -> tuple[Expression, ...] | None:
    """Return the values of a row; None for an expression that is not a row."""
    match row:
        case Call("struct", values):
            return values
        case Call("named_struct", arguments):
            return arguments[1::2]
    return None


def equal_rows(left: Expression, right: Expression) -> Expression | None:
    """Return the condition that two rows are equal, or None unless both are rows of one length.

    NULL equals NULL. The condition compares the rows field by field, so that each comparison can
    skip files.
    """
    mine, theirs = values_of_row(left), values_of_row(right)
    if mine is None or theirs is None or len(mine) != len(theirs):
        return None
    pairs = zip(mine, theirs, strict=True)
    return nodes.And(tuple(nodes.Comparison("<=>", one, other) for one, other in pairs))


def is_one_of_rows(row: Expression, options: tuple[Expression, ...]) -> Expression:
    """Return the condition that a row is in a list."""
    found = [equal_rows(row, option) for option in options]
    known = tuple(one for one in found if one is not None)
    if len(known) < len(found):  # `resolve` raises an error for this IN
        return nodes.In(row, options)
    return known[0] if len(known) == 1 else nodes.Or(known)
