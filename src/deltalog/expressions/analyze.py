"""Resolving expressions against a schema, before they are evaluated, pruned or translated.

Contains the resolution rules of each kind of node, and applies `TextRules` to string comparisons.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.clock import MICROS_PER_DAY
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import coercion, implicit, mistakes, nodes
from deltalog.expressions.aliases import ALIASES, MACROS, add_interval, expand, interval_value
from deltalog.expressions.functions import FUNCTIONS, OF_PARTS, find_function
from deltalog.expressions.literals import from_scalar, plain_value, to_scalar
from deltalog.expressions.nodes import Call, Cast, Column, Expression, Literal
from deltalog.expressions.render import shown_sql
from deltalog.expressions.sql_session import RULES_OF_TABLES, SqlSession, TextRules
from deltalog.expressions.trees import (
    LOGIC,
    NON_DETERMINISTIC,
    VARIABLE,
    children,
    flattened,
    fold_up,
    walk,
    with_children,
)
from deltalog.schema.collations import collation_below
from deltalog.schema.columns import find_field, walk_types
from deltalog.schema.types import (
    BOOLEAN,
    DATE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deltalog.expressions.signatures import Function, Parameters


def resolve(
    expression: Expression,
    schema: StructType,
    session: SqlSession = RULES_OF_TABLES,
    *,
    text_rules: TextRules = TextRules.COLLATIONS,
) -> Expression:
    """Return the expression with canonical names, typed constants and explicit casts.

    Args:
        expression: any expression; a resolved expression is returned unchanged.
        schema: the schema of the rows.
        session: the current time and the time zone.
        text_rules: how strings are compared.

    Raises:
        InvalidInputError: a column or function does not exist, types do not match, or deltalog does
            not support a collation.
    """
    with _depth_limited(expression):
        found = resolved(expression, schema, session)
        return _by_rules(found, schema, text_rules)


def resolve_predicate(
    expression: Expression,
    schema: StructType,
    session: SqlSession = RULES_OF_TABLES,
    *,
    text_rules: TextRules = TextRules.COLLATIONS,
) -> Expression:
    """Resolve a condition; see `resolve`.

    Raises:
        InvalidInputError: see `resolve`; also if the expression is not a condition.
    """
    with _depth_limited(expression):
        found = resolved_condition(expression, schema, session)
        return _by_rules(found, schema, text_rules)


def _by_rules(found: Expression, schema: StructType, rules: TextRules) -> Expression:
    """Apply the text rules to the string comparisons in the tree."""
    if not compares_texts_apart(found, schema):
        return found
    from deltalog.expressions import collate  # noqa: PLC0415  # seldom needed: few tables have collations

    if rules is TextRules.NONE:
        collate.check_uncollated(found, schema)
        return found

    def of_part(part: Expression) -> DataType:
        return type_of(part, schema)

    if rules is TextRules.VALUES:
        return collate.collated_value(found, schema, of_part)
    by_bytes = rules is TextRules.BYTES
    return collate.collated(found, schema, of_part, by_bytes=by_bytes)


def type_of(resolved: Expression, schema: StructType) -> DataType:
    """Return the type of a resolved expression."""
    return type_of_resolved(resolved, schema)


@contextlib.contextmanager
def _depth_limited(expression: Expression) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise InvalidInputError(
            f"the {type(expression).__name__} is nested too deep to be resolved; write long "
            "lists of options with IN, or with fewer brackets"
        ) from None


# --- The resolution rules of each kind of node


Typed = tuple[Expression, DataType]
_LONG_END: Final = 1 << 63


def resolved(expression: Expression, schema: StructType, session: SqlSession) -> Expression:
    """Return the expression with canonical names, typed constants and explicit casts.

    Raises:
        InvalidInputError: a column or function does not exist, or types do not match.
    """
    resolver = _Resolver(schema, session, is_alone=isinstance(expression, Column))
    return resolver.typed(expression)[0]


def resolved_condition(
    expression: Expression, schema: StructType, session: SqlSession
) -> Expression:
    """Resolve a condition; see `resolved`.

    Raises:
        InvalidInputError: see `resolved`; also if the expression is not a condition.
    """
    return _Resolver(schema, session).condition(expression)


def type_of_resolved(expression: Expression, schema: StructType) -> DataType:
    """Return the type of an expression that `resolved` returned."""
    return _Typer(schema, RULES_OF_TABLES).typed(expression)[1]


def compares_texts_apart(resolved: Expression, schema: StructType) -> bool:
    """Whether a tree contains COLLATE or a column of strings with a non-default collation."""
    return any(
        isinstance(part, nodes.Collate)
        or (
            isinstance(part, Column)
            and bool(schema.fields_named(part.path[0]))
            and collation_below(schema, part.path) is not None
        )
        for part in walk(resolved)
    )


def _as_interval(node: Expression) -> Call | None:
    """Return an interval constant, also of a timedelta, as a call; None for other expressions."""
    if isinstance(node, Call) and node.function == "interval":
        return node
    if not isinstance(node, Literal) or not isinstance(node.value, dt.timedelta):
        return None
    amount, unit = node.value // dt.timedelta(microseconds=1), "MICROSECOND"
    if amount % MICROS_PER_DAY == 0:
        amount, unit = amount // MICROS_PER_DAY, "DAY"
    return Call("interval", (Literal(amount), Literal(unit)))


_OF_VOID: Final = (
    "; a column is void if it had only NULLs when the table was made: an append with "
    "schema_mode='merge' gives it the type of the new rows"
)


class _Resolver:
    def __init__(self, schema: StructType, session: SqlSession, *, is_alone: bool = False) -> None:
        self._schema = schema
        self._session = session
        self._first: Column | None = None
        self._is_alone = is_alone  # whether the whole expression is a column
        self._brackets = ""  # the advice on a comparison around the current node
        self._casts = implicit.Casts(session.time_zone)

    def typed(self, node: Expression) -> Typed:
        return _RULES[type(node)](self, node)

    def condition(self, node: Expression) -> Expression:
        if isinstance(node, LOGIC):
            return fold_up(node, self._combined, inside=LOGIC)
        resolved, data_type = self.typed(node)
        # A string alone is probably a column in double quotes, of which `"y"` would be true.
        if data_type == STRING:
            raise InvalidInputError(
                f"{shown_sql(node)} is of type string, but a condition is expected here; names of "
                "columns have no quotes, or backticks"
            )
        return self._tested(node, resolved, data_type)

    def _combined(self, node: Expression, operands: list[Expression]) -> Expression:
        if isinstance(node, LOGIC):
            return flattened(with_children(node, operands))
        return self._tested(node, *self.typed(node))

    def _tested(self, node: Expression, resolved: Expression, data_type: DataType) -> Expression:
        # A string is a valid operand: ANSI mode casts it to boolean, which fails for 'abc'.
        if data_type in {BOOLEAN, VOID, STRING} and not mistakes.is_no_truth(node):
            return self._casts.coerce(resolved, data_type, BOOLEAN)
        raise InvalidInputError(
            f"{shown_sql(node)} is of type {data_type}, but a condition is expected here"
            f"{mistakes.advice_on_operand(node) or self._brackets}"
        )

    @contextlib.contextmanager
    def _advising(self, brackets: str) -> Iterator[None]:
        before, self._brackets = self._brackets, brackets
        yield
        self._brackets = before

    def column(self, node: Column) -> Typed:
        if self._first is None:
            self._first = node
        current: DataType = self._schema
        path: list[str] = []
        for index, name in enumerate(node.path):
            # `m.key` of a map looks up the key, as in Spark.
            if isinstance(current, MapType):
                return self._map_key(node, index)
            if not isinstance(current, StructType):
                raise InvalidInputError(
                    f"there is no column {node.name!r}: {'.'.join(path)!r} is of type {current} "
                    f"and has no field {name!r}"
                )
            self._refuse_dotted(node, index)
            field = self._found(node, (*path, name))
            path.append(field.name)
            current = field.type
        return Column(tuple(path)), current

    def _found(self, node: Column, path: tuple[str, ...]) -> Field:
        try:
            return find_field(self._schema, path)
        except InvalidInputError as error:
            bare = node.path[1:]
            if len(path) == 1 and bare and self._schema.fields_named(bare[0]):
                raise InvalidInputError(
                    f"there is no column {path[0]!r}; if it is an alias, leave it out, because the "
                    f"expression is about one table: {shown_sql(Column(bare))}"
                ) from None
            if len(node.path) == 1 and (hint := mistakes.hint_for_missing(path[0])):
                raise InvalidInputError(f"{error}; {hint}") from None
            # The first name in `nme = 'a'` is no string; `name = a` and a value alone may be one.
            if bare or (node is self._first and not self._is_alone and str(error)[-1] == "?"):
                raise
            raise InvalidInputError(
                f"{error}; a string has quotes: {shown_sql(Literal(node.path[0]))}"
            ) from None

    def _refuse_dotted(self, node: Column, index: int) -> None:
        """Suggest backticks if `a.b` can only mean the column whose name has a dot."""
        if index or len(node.path) == 1 or self._schema.fields_named(node.path[0]):
            return
        if meant := self._schema.fields_named(node.name):
            raise InvalidInputError(
                f"there is no column {node.path[0]!r}; for the column {meant[-1].name!r}, whose "
                "name has a dot, put the name in backticks"
            )

    def _map_key(self, node: Column, index: int) -> Typed:
        found: Expression = Column(node.path[:index])
        for name in node.path[index:]:
            found = Call("[]", (found, Literal(name)))
        return self.typed(found)

    def literal(self, node: Literal) -> Typed:
        if node.type == LONG and type(node.value) is int and -_LONG_END <= node.value < _LONG_END:
            return node, LONG  # lists of keys may be long
        value, natural = plain_value(node.value)
        if node.type is None or node.type == natural:
            return Literal(value, natural, node.nanos), natural
        return Literal(from_scalar(to_scalar(value, node.type)), node.type), node.type

    def comparison(self, node: nodes.Comparison) -> Typed:
        if node.operator not in {"=", "<>", "<", "<=", ">", ">=", "<=>"}:
            raise InvalidInputError(f"there is no comparison operator {node.operator!r}")
        brackets = mistakes.advice_on_brackets(node)
        with self._advising(brackets):
            left, right = self.typed(node.left), self.typed(node.right)
        try:
            met = self._casts.unify_comparison([left, right])
        except InvalidInputError as error:  # a constant cannot be cast
            types = brackets or mistakes.types_of_columns(left, right)
            raise InvalidInputError(f"{error}, in {shown_sql(node)}{types}") from None
        if met is None:
            advice = brackets.removeprefix("; ")
            advice = advice or mistakes.advice_on_comparison(node, left[1], right[1])
            raise InvalidInputError(
                f"cannot compare {left[1]} with {right[1]} in {shown_sql(node)}: {advice}"
            )
        (new_left, new_right), common = met
        _refuse_opaque(common, node)
        # Spark cannot compare maps, not even for equality.
        if isinstance(common, MapType):
            raise InvalidInputError(f"cannot compare maps in {shown_sql(node)}")
        return nodes.Comparison(node.operator, new_left, new_right), BOOLEAN

    def logic(self, node: nodes.And | nodes.Or | nodes.Not) -> Typed:
        return self.condition(node), BOOLEAN

    def is_null(self, node: nodes.IsNull) -> Typed:
        return nodes.IsNull(self.typed(node.operand)[0]), BOOLEAN

    def membership(self, node: nodes.In) -> Typed:
        typed = [self.typed(node.operand), *map(self.typed, node.options)]
        try:
            met = self._casts.unify_comparison(typed)
        except InvalidInputError as error:  # a constant cannot be cast
            types = mistakes.types_of_columns(*typed)
            raise InvalidInputError(f"{error}, in {shown_sql(node)}{types}") from None
        if met is None:
            arrays = any(isinstance(self.typed(one)[1], ArrayType) for one in node.options)
            advice = "; array_contains(array, value) looks into an array" if arrays else ""
            raise InvalidInputError(f"the values of {shown_sql(node)} have no common type{advice}")
        (operand, *options), common = met
        _refuse_opaque(common, node)
        if common not in coercion.FINE_MOMENTS:
            return nodes.In(operand, tuple(options)), BOOLEAN
        return self._one_of(operand, options), BOOLEAN

    def _one_of(self, operand: Expression, options: Sequence[Expression]) -> Expression:
        """Resolve `IN` over timestamps; options of another type are compared by `=` instead."""
        kind = self.typed(operand)[1]
        alike = [one for one in options if not isinstance(one, Literal) or one.type == kind]
        others = [one for one in options if isinstance(one, Literal) and one.type != kind]
        tests: list[Expression] = [nodes.In(operand, tuple(alike))] if alike else []
        tests += [nodes.Comparison("=", operand, one) for one in others]
        return tests[0] if len(tests) == 1 else nodes.Or(tuple(tests))

    def like(self, node: nodes.Like) -> Typed:
        operand = self._argument(node.operand, STRING)
        pattern = self._argument(node.pattern, STRING)
        return nodes.Like(operand, pattern, node.escape, node.ignore_case), BOOLEAN

    def _argument(self, node: Expression, to: DataType) -> Expression:
        return self._casts.coerce(*self.typed(node), to)

    def arithmetic(self, node: nodes.Arithmetic) -> Typed:
        # Add an interval constant unit by unit, because a month is not a fixed number of days.
        for moment, side in ((node.left, node.right), (node.right, node.left)):
            interval = _as_interval(side)
            if interval is not None:
                return self._moved(node, moment, interval, is_right=side is node.right)
        left, right = self.typed(node.left), self.typed(node.right)
        is_constant = isinstance(node.left, Literal), isinstance(node.right, Literal)
        return implicit.arithmetic_of(node.operator, left, right, is_constant)

    def _moved(
        self, node: nodes.Arithmetic, moment: Expression, interval: Call, *, is_right: bool
    ) -> Typed:
        _, data_type = self.typed(moment)
        is_order = node.operator == "+" or (node.operator == "-" and is_right)
        if data_type not in coercion.DATETIMES or not is_order:
            raise InvalidInputError(
                f"cannot compute {shown_sql(node)}: an INTERVAL must be added to or subtracted "
                f"from a date or timestamp, found {data_type}"
            )
        sign = 1 if node.operator == "+" else -1
        return self.typed(add_interval(moment, interval, sign, is_date=data_type == DATE))

    def cast(self, node: nodes.Cast) -> Typed:
        operand, source = self.typed(node.operand)
        if not coercion.can_cast(source, node.to):
            raise InvalidInputError(
                f"cannot cast {source} to {node.to} in {shown_sql(node)}: SQL has no such cast"
                f"{_OF_VOID if node.to == VOID else ''}"
            )
        # A cast from string to string replaces the string's collation by the default collation.
        is_collated = source == node.to == STRING and compares_texts_apart(operand, self._schema)
        if node.time_zone is not None or is_collated:  # a cast with a time zone is already resolved
            return nodes.Cast(operand, node.to, node.is_try, node.time_zone), node.to
        return self._casts.cast(operand, source, node.to, is_try=node.is_try), node.to

    def collate(self, node: nodes.Collate) -> Typed:
        operand, source = self.typed(node.operand)
        if source not in {STRING, VOID}:
            raise InvalidInputError(
                f"cannot compute {shown_sql(node)}: expected a string before COLLATE, found "
                f"{source}"
            )
        return nodes.Collate(self._casts.coerce(operand, source, STRING), node.collation), STRING

    def case(self, node: nodes.Case) -> Typed:
        conditions = [self.condition(condition) for condition, _ in node.branches]
        # The common type depends on all branches, even on branches that are never evaluated.
        values = [self.typed(value) for _, value in node.branches]
        if node.otherwise is not None:
            values.append(self.typed(node.otherwise))
        found, common = self._casts.unify(values, shown_sql(node))
        otherwise = found.pop() if node.otherwise is not None else None
        return nodes.Case(tuple(zip(conditions, found, strict=True)), otherwise), common

    def call(self, node: Call) -> Typed:
        name = node.function.lower()
        if name in NON_DETERMINISTIC and not node.arguments:
            return self._present(name)
        if name == "interval":
            return self.literal(interval_value(node))
        # Expand macros before the function is looked up, because they may change the arguments.
        expanded = expand(name, node.arguments)
        if expanded is not None:
            return self.typed(expanded)
        counts = sorted(number for macro, number in MACROS if macro == name)
        if counts and name not in FUNCTIONS:
            wanted = " or ".join(map(str, counts))
            count = len(node.arguments)
            is_other = (name, count) == ("isnull", 2)
            hint = "; coalesce(value, other) replaces NULL" if is_other else ""
            raise InvalidInputError(f"{name} expects {wanted} argument(s), found {count}{hint}")
        others = [*ALIASES, *(macro for macro, _ in MACROS)]
        function = find_function(name, len(node.arguments), others)
        try:
            arguments = self._arguments(function, node.arguments)
            _check_opaque(name, arguments)
            _check_constants(function, arguments)
            targets, result = function.types(arguments)
            found = tuple(
                self._coerced(argument, source, to)
                for (argument, source), to in zip(arguments, targets, strict=True)
            )
        except InvalidInputError as error:
            advice = mistakes.advice_on_call(name)
            raise InvalidInputError(f"cannot compute {shown_sql(node)}: {error}{advice}") from error
        return _simplified(Call(name, found), arguments[0][1] if arguments else VOID), result

    def _arguments(self, function: Function, arguments: Sequence[Expression]) -> list[Typed]:
        plain = [
            None if isinstance(argument, nodes.Lambda) else self.typed(argument)
            for argument in arguments
        ]
        types = [found and found[1] for found in plain]
        expected = function.lambdas(types) if function.lambdas else {}
        found: list[Typed] = []
        for place, argument in enumerate(arguments):
            if isinstance(argument, nodes.Lambda) != (place in expected):
                wanted = "a lambda" if place in expected else "a value, not a lambda"
                raise InvalidInputError(f"argument {place + 1} must be {wanted}")
            if isinstance(argument, nodes.Lambda):
                found.append(self._lambda(argument, expected[place]))
            else:
                found.append(plain[place] or self.typed(argument))
        return found

    def _lambda(self, node: nodes.Lambda, expected: Parameters) -> Typed:
        count = len(node.parameters)
        if not expected.least <= count <= len(expected.types):
            raise InvalidInputError(
                f"the lambda takes {expected.least} to {len(expected.types)} parameters, "
                f"found {count}"
            )
        names = [VARIABLE + name for name in node.parameters]
        fields = [field for field in self._schema if field.name not in names]
        fields += map(Field, names, expected.types)
        body, data_type = type(self)(StructType(fields), self._session).typed(node.body)
        return nodes.Lambda(node.parameters, body), data_type

    def variable(self, node: nodes.Variable) -> Typed:
        for field in self._schema:
            if field.name == VARIABLE + node.name:
                return node, field.type
        raise InvalidInputError(f"the lambda parameter {node.name!r} is used outside of a lambda")

    def stray_lambda(self, node: nodes.Lambda) -> Typed:
        raise InvalidInputError(f"{shown_sql(node)} can only be an argument of a function")

    def _present(self, name: str) -> Typed:
        if self._session.now is None:
            raise InvalidInputError(
                f"cannot use {name}() here: its value changes with time, so a constraint or a "
                "generated column would not always have the same result"
            )
        # All rows get the same time, because Spark reads the clock once per query.
        now = self._session.now.astimezone(dt.UTC)
        if name in {"current_date", "curdate"}:
            return Literal(now.date(), DATE), DATE
        if name == "localtimestamp":
            return Literal(now.replace(tzinfo=None), TIMESTAMP_NTZ), TIMESTAMP_NTZ
        return Literal(now, TIMESTAMP), TIMESTAMP

    def _coerced(self, node: Expression, source: DataType, to: DataType) -> Expression:
        if isinstance(node, nodes.Lambda):
            return nodes.Lambda(node.parameters, self._casts.coerce(node.body, source, to))
        return self._casts.coerce(node, source, to)


class _Typer(_Resolver):
    """Returns the types of resolved expressions without checking them again.

    The type of a column may be derived from its Arrow array, and several Delta types share one
    Arrow type.
    """

    def typed(self, node: Expression) -> Typed:
        return _TYPED[type(node)](self, node)

    def test(self, node: Expression) -> Typed:
        return node, BOOLEAN

    def case(self, node: nodes.Case) -> Typed:
        return node, self.typed(node.branches[0][1])[1]


def _refuse_opaque(data_type: DataType, node: Expression) -> None:
    if coercion.is_unordered(data_type):
        raise InvalidInputError(
            f"cannot compare values of type {data_type} in {shown_sql(node)}: deltalog only stores "
            "and returns them; IS NULL is the only test on them"
        )


def _check_opaque(name: str, arguments: Sequence[Typed]) -> None:
    for _, data_type in () if name in OF_PARTS else arguments:
        if coercion.is_opaque(data_type):
            raise InvalidInputError(f"{name} does not support values of type {data_type}")


def _check_constants(function: Function, arguments: Sequence[Typed]) -> None:
    for place in function.constants:
        if place < len(arguments) and not isinstance(arguments[place][0], Literal):
            raise InvalidInputError(f"argument {place + 1} must be a constant")


def _simplified(call: Call, first: DataType) -> Expression:
    """Return the column `s.a` for `s['a']` of a struct column, so that its statistics are used."""
    if call.function != "[]" or not isinstance(first, StructType):
        return call
    holder, name = call.arguments
    if not isinstance(holder, Column) or not isinstance(name, Literal):
        return call
    return Column((*holder.path, find_field(first, (name.value,)).name))


_RULES: Final[dict[type[Expression], Callable[[Any, Any], Typed]]] = {
    Column: _Resolver.column,
    Literal: _Resolver.literal,
    nodes.Comparison: _Resolver.comparison,
    nodes.And: _Resolver.logic,
    nodes.Or: _Resolver.logic,
    nodes.Not: _Resolver.logic,
    nodes.IsNull: _Resolver.is_null,
    nodes.In: _Resolver.membership,
    nodes.Like: _Resolver.like,
    nodes.Arithmetic: _Resolver.arithmetic,
    nodes.Cast: _Resolver.cast,
    nodes.Collate: _Resolver.collate,
    nodes.Case: _Resolver.case,
    Call: _Resolver.call,
    nodes.Lambda: _Resolver.stray_lambda,
    nodes.Variable: _Resolver.variable,
}
_TYPED: Final[dict[type[Expression], Callable[[Any, Any], Typed]]] = {
    **_RULES,
    **dict.fromkeys((*LOGIC, nodes.Comparison, nodes.In, nodes.IsNull), _Typer.test),
    nodes.Case: _Typer.case,
}


# --- Whether the value of an expression depends on the time zone


# Matches an SQL string that is a date, possibly with a time of day, but without a time zone.
WITHOUT_ZONE: Final = re.compile(r"['\"]\s*\d+-\d+(?:-[\d]+(?:[T ][\d:.]*)?)?\s*['\"]")
_OF_TODAY: Final = re.compile(r"(?i)current_date|curdate|localtimestamp")
# For TIMESTAMP arguments, the results of these functions do not depend on the time zone.
_OF_INSTANTS: Final = frozenset(
    {
        *("coalesce", "nvl", "nvl2", "ifnull", "nullif", "greatest", "least", "if"),
        *("array", "map", "struct", "named_struct"),
        *("unix_seconds", "unix_millis", "unix_micros"),
        *("timestamp_seconds", "timestamp_millis", "timestamp_micros"),
    }
)
# A cast between TIMESTAMP and one of these types depends on the session's time zone.
_WALL_TIMES: Final = frozenset({DATE, STRING, TIMESTAMP_NTZ})
_ALWAYS: Final = frozenset({"from_unixtime", "unix_timestamp", "to_unix_timestamp"})


def depends_on_zone(text: str, resolved: Expression, schema: StructType) -> bool:
    """Whether the value may differ between time zones; True if in doubt.

    Args:
        text: the expression as written. The literals in `resolved` no longer show whether they were
            written with a zone.
        resolved: the same expression, resolved against `schema`.
        schema: the schema of the rows.
    """
    if _OF_TODAY.search(text):
        return True
    nodes = list(walk(resolved))
    names_none = WITHOUT_ZONE.search(text) is not None
    if names_none and any(_type(node, schema) == TIMESTAMP for node in nodes):
        return True
    has_moments = any(
        TIMESTAMP in (kind for _, kind in walk_types(found))
        for node in nodes
        if isinstance(node, Column) and (found := _type(node, schema)) is not None
    )
    # The type of a lambda variable is unknown here. Assume TIMESTAMP if any column contains one.
    unknown = TIMESTAMP if has_moments else None
    return any(_computes(node, schema, unknown) for node in nodes)


def _computes(node: Expression, schema: StructType, unknown: DataType | None) -> bool:
    """Whether the node itself, without its operands, converts between an instant and local time."""
    if isinstance(node, Call) and node.function in _ALWAYS:
        return True
    if not isinstance(node, Call | Cast) or (
        isinstance(node, Call) and node.function in _OF_INSTANTS
    ):
        return False
    types = [_type(part, schema) or unknown for part in (node, *children(node))]
    if isinstance(node, Cast):
        return TIMESTAMP in types and not _WALL_TIMES.isdisjoint(types)
    return TIMESTAMP in types


def _type(node: Expression, schema: StructType) -> DataType | None:
    try:
        return type_of(node, schema)
    except DeltaError:
        return None
