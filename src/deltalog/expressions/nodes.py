"""The expression tree of predicates, constraints and computed values.

Contains the nodes and the operators that build them (`col("a") > 5`). Does not depend on SQL or
Arrow. All nodes are immutable values. `==` builds a comparison; `same_as` compares trees.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar
from uuid import UUID

from deltalog._util.argument_types import kind_of, shortened, wrong_argument
from deltalog._util.call_errors import UnknownNameError, WrongCallError
from deltalog._util.lazy_names import higher
from deltalog._util.similar_names import SimilarNames, suggests_arguments, suggests_options
from deltalog.errors import InvalidInputError
from deltalog.schema.primitives.moments import is_missing
from deltalog.schema.types import DataType, PrimitiveType, as_type, collation_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


# --- The base of all nodes: equality, string form and pickling of whole trees


_Fact = TypeVar("_Fact")


class Node:
    """A frozen dataclass whose fields are nodes, tuples of them, or constants."""

    __slots__ = ("_facts",)
    _facts: dict[str, Any]

    def __repr__(self) -> str:
        """Show the node as SQL, such as `<Expression id > 5>`."""
        return f"<Expression {higher('shown_sql')(self)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all nodes as a flat list, so that deep trees need no recursion."""
        return _from_steps, (_steps(self),)

    def same_as(self, other: object) -> bool:
        """Whether both trees are equal."""
        waiting: list[tuple[Any, Any]] = [(self, other)]
        while waiting:
            left, right = waiting.pop()
            if type(left) is not type(right):
                return False
            if isinstance(left, Node):
                waiting += [(getattr(left, name), getattr(right, name)) for name in parts_of(left)]
            elif isinstance(left, tuple):
                if len(left) != len(right):
                    return False
                waiting += zip(left, right, strict=True)
            elif left != right:
                return False
        return True

    def fact(self, name: str, find: Callable[[], _Fact]) -> _Fact:
        """Return a fact about the tree, which is cached because nodes never change.

        Args:
            name: the name of the fact.
            find: computes the fact.
        """
        try:  # without `__getattr__`, which would make a message for each node
            facts: dict[str, Any] = object.__getattribute__(self, "_facts")
        except AttributeError:
            facts = {}
            object.__setattr__(self, "_facts", facts)
        if name not in facts:
            facts[name] = find()
        found: _Fact = facts[name]
        return found


_PARTS: Final[dict[type, tuple[str, ...]]] = {}


def parts_of(expression: Node) -> tuple[str, ...]:
    """Return the names of a node's fields from a cache, because `dataclasses.fields` is slow."""
    kind = type(expression)
    if (known := _PARTS.get(kind)) is None:
        known = _PARTS[kind] = tuple(part.name for part in fields(kind))  # type: ignore[arg-type]  # every node is a dataclass
    return known


def as_calls(root: Node) -> str:
    """Return the Python calls that create a tree, with all its fields."""
    texts: list[str] = []
    waiting: list[tuple[bool, Any]] = [(False, root)]
    while waiting:
        is_text, value = waiting.pop()
        if is_text:
            texts.append(value)
        elif isinstance(value, Node):
            inner: list[tuple[bool, Any]] = [(True, f"{type(value).__name__}(")]
            for place, name in enumerate(parts_of(value)):
                inner += [(True, f"{', ' if place else ''}{name}="), (False, getattr(value, name))]
            waiting += reversed([*inner, (True, ")")])
        elif isinstance(value, tuple):
            inner = [(True, "(")]
            for place, item in enumerate(value):
                inner += [(True, ", " if place else ""), (False, item)]
            waiting += reversed([*inner, (True, ",)" if len(value) == 1 else ")")])
        else:
            texts.append(repr(value))
    return "".join(texts)


def _steps(root: Node) -> list[Any]:
    """Return a tree as a flat list; each tuple or node comes after its parts."""
    found: list[Any] = []
    waiting: list[Any] = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Node):
            names = parts_of(value)
            found.append((type(value), len(names)))
            waiting += [getattr(value, name) for name in names]
        elif isinstance(value, tuple):
            found.append((tuple, len(value)))
            waiting += value
        else:
            found.append((None, value))
    # The loop visits parents before children, and later parts before earlier parts. So reverse the
    # list.
    return found[::-1]


def _from_steps(steps: list[Any]) -> Any:
    made: list[Any] = []
    for kind, value in steps:
        if kind is None:
            made.append(value)
            continue
        parts = made[len(made) - value :]
        del made[len(made) - value :]
        made.append(tuple(parts) if kind is tuple else kind(*parts))
    return made[0]


# --- The expression tree of predicates, constraints and computed values


COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>"})
ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "%"})


_MEANT: Final = {
    **dict.fromkeys(("eq", "equals", "equalTo"), "col(name) == value"),
    **dict.fromkeys(("ne", "neq", "not_equals", "notEqual"), "col(name) != value"),
    **dict.fromkeys(("lt", "less"), "col(name) < value"),
    **dict.fromkeys(("le", "less_equal"), "col(name) <= value"),
    **dict.fromkeys(("gt", "greater"), "col(name) > value"),
    **dict.fromkeys(("ge", "greater_equal"), "col(name) >= value"),
    **dict.fromkeys(("and_", "logical_and"), "(…) & (…)"),
    **dict.fromkeys(("or_", "logical_or"), "(…) | (…)"),
    **dict.fromkeys(("not_", "invert", "logical_not"), "~(…)"),
    **dict.fromkeys(
        ("add", "sub", "mul", "div", "truediv", "mod"), "an operator, as in col(name) + 1"
    ),
    **dict.fromkeys(("not_in", "notin", "is_not_in"), "~col(name).is_in(values)"),
    "isin": "is_in(values)",
    **dict.fromkeys(("eqNullSafe", "eq_missing"), "equals_null_safe(value)"),
    **dict.fromkeys(("isna", "isnull", "isNull"), "is_null()"),
    **dict.fromkeys(("notna", "notnull", "isNotNull", "is_not_nan"), "is_not_null()"),
    **dict.fromkeys(("startswith", "startsWith"), "starts_with(prefix)"),
    **dict.fromkeys(("endswith", "endsWith", "ends_with"), "like('%suffix')"),
    "contains": "like('%text%'), or SQL for an array, such as \"array_contains(tags, 'a')\"",
    "ilike": "SQL, such as \"name ILIKE 'a%'\"",
    **dict.fromkeys(("rlike", "matches"), "SQL, such as \"name RLIKE '^a'\""),
    **dict.fromkeys(
        ("str", "lower", "upper", "len"), "like(pattern), or SQL: \"lower(name) = 'a'\""
    ),
    **dict.fromkeys(("dt", "year", "month"), 'SQL, such as "year(day) = 2024"'),
    **dict.fromkeys(("list", "arr"), "SQL, such as \"array_contains(tags, 'a')\""),
    **dict.fromkeys(("struct", "getField", "getItem", "get_field"), "col('info.city')"),
    **dict.fromkeys(("asc", "desc", "sort"), "order_by='id DESC' of a scan"),
    **dict.fromkeys(("fill_null", "fillna", "coalesce"), 'SQL, such as "coalesce(amount, 0) > 1"'),
    **dict.fromkeys(
        ("abs", "round", "floor", "ceil", "sqrt", "sin", "cos"), 'SQL, such as "abs(amount) > 1"'
    ),
    **dict.fromkeys(("when", "otherwise", "apply", "map"), 'SQL, such as "CASE WHEN … END"'),
    **dict.fromkeys(
        ("sum", "mean", "min", "max", "count", "over", "first", "last"),
        "deltalog.sql(query, t=table)",
    ),
    "is_between": "between(low, high)",
    "astype": "cast(type)",
    "alias": "the names of `columns`; an expression has no alias",
}
"""Methods of expressions of other libraries."""


@suggests_arguments
class Expression(Node, SimilarNames):
    """Any node of an expression. Operators build nodes: `(col("a") > 5) & col("b").is_null()`."""

    __slots__ = ()

    _meant = _MEANT

    def __hash__(self) -> int:
        """Hash the node by its identity."""
        return object.__hash__(self)

    def __eq__(self, other: object) -> Comparison:  # type: ignore[override]
        """Return `self = other` of SQL: NULL if either side is NULL.

        Raises:
            InvalidInputError: `other` is None, so that the result would be NULL for every row.
        """
        return Comparison("=", self, _not_none(other, "is_null()"))

    def __ne__(self, other: object) -> Comparison:  # type: ignore[override]
        """Return `self <> other` of SQL, with the same exception."""
        return Comparison("<>", self, _not_none(other, "is_not_null()"))

    def __lt__(self, other: object) -> Comparison:
        """Return `self < other` of SQL."""
        return Comparison("<", self, lit(other))

    def __le__(self, other: object) -> Comparison:
        """Return `self <= other` of SQL."""
        return Comparison("<=", self, lit(other))

    def __gt__(self, other: object) -> Comparison:
        """Return `self > other` of SQL."""
        return Comparison(">", self, lit(other))

    def __ge__(self, other: object) -> Comparison:
        """Return `self >= other` of SQL."""
        return Comparison(">=", self, lit(other))

    def __and__(self, other: Expression) -> And:
        """Return `self AND other` of SQL, with three-valued logic.

        Raises:
            InvalidInputError: `other` is a string.
        """
        return And((*_operands_of(And, self), *_operands_of(And, _condition(other))))

    def __or__(self, other: Expression) -> Or:
        """Return `self OR other` of SQL, with three-valued logic, and the same exception."""
        return Or((*_operands_of(Or, self), *_operands_of(Or, _condition(other))))

    def __rand__(self, other: object) -> NoReturn:
        """Refuse a value as the left operand.

        Raises:
            InvalidInputError: always. In Python, `&` and `|` are evaluated before comparisons.
        """
        raise InvalidInputError(
            f"cannot combine {other!r} with an expression: put comparisons in brackets, such as "
            "(col('a') > 1) & (col('b') < 4)"
        )

    __ror__ = __rand__

    def __invert__(self) -> Not:
        """Return `NOT self` of SQL, with three-valued logic."""
        return Not(self)

    def __add__(self, other: object) -> Arithmetic:
        """Return the sum."""
        return Arithmetic("+", self, lit(other))

    def __sub__(self, other: object) -> Arithmetic:
        """Return the difference."""
        return Arithmetic("-", self, lit(other))

    def __mul__(self, other: object) -> Arithmetic:
        """Return the product."""
        return Arithmetic("*", self, lit(other))

    def __truediv__(self, other: object) -> Arithmetic:
        """Return the quotient, like `/` in Spark SQL."""
        return Arithmetic("/", self, lit(other))

    def __mod__(self, other: object) -> Arithmetic:
        """Return the remainder with the sign of the left side."""
        return Arithmetic("%", self, lit(other))

    def __radd__(self, other: object) -> Arithmetic:
        """Return the sum with a Python value on the left."""
        return Arithmetic("+", lit(other), self)

    def __rsub__(self, other: object) -> Arithmetic:
        """Return the difference with a Python value on the left."""
        return Arithmetic("-", lit(other), self)

    def __rmul__(self, other: object) -> Arithmetic:
        """Return the product with a Python value on the left."""
        return Arithmetic("*", lit(other), self)

    def __rtruediv__(self, other: object) -> Arithmetic:
        """Return the quotient with a Python value on the left."""
        return Arithmetic("/", lit(other), self)

    def __rmod__(self, other: object) -> Arithmetic:
        """Return the remainder with a Python value on the left."""
        return Arithmetic("%", lit(other), self)

    def __neg__(self) -> Call:
        """Return the negated number."""
        return Call("negative", (self,))

    def __bool__(self) -> NoReturn:
        """Refuse `and`, `or`, `not` and chained comparisons: Python would drop one side."""
        raise InvalidInputError(
            f"cannot use the expression {higher('shown_sql')(self)} as a Python truth value: "
            "write & for and, | for or, ~ for not, is_in(values) for in, and put comparisons in "
            "brackets"
        )

    if not TYPE_CHECKING:  # type checkers must report these uses

        def __getitem__(self, key: object) -> NoReturn:
            """Raise an error that says how to write a field or an element."""
            __tracebackhide__ = True  # IPython does not show this frame
            name = f"{self.name}.{key}" if isinstance(self, Column) else f"info.{key}"
            use = f"col({name!r})" if isinstance(key, str) else "SQL, such as \"tags[0] = 'a'\""
            raise WrongCallError(f"{type(self).__name__} has no item {key!r}: use {use}")

    def equals_null_safe(self, other: object) -> Comparison:
        """Return `self <=> other` of SQL: NULL equals NULL, and the result is never NULL."""
        return Comparison("<=>", self, lit(other))

    def is_null(self) -> IsNull:
        """Return `self IS NULL` of SQL; the result is never NULL."""
        return IsNull(self)

    def is_not_null(self) -> Not:
        """Return `self IS NOT NULL` of SQL; the result is never NULL."""
        return Not(IsNull(self))

    def is_in(self, options: Iterable[object]) -> In:
        """Return `self IN (options)` of SQL; NULL if no option is equal and one is NULL.

        Raises:
            InvalidInputError: `options` is one value.
        """
        if isinstance(options, str | bytes) or not hasattr(options, "__iter__"):
            raise InvalidInputError(
                f"cannot use {shortened(options)} as the options of is_in: expected a list, such "
                f"as [{shortened(options)}]"
            )
        return In(self, tuple(lit(option) for option in options))

    def between(self, low: object, high: object) -> And:
        """Return `self BETWEEN low AND high` of SQL, which includes both bounds."""
        return And((self >= low, self <= high))

    def like(self, pattern: str, escape: str = "\\") -> Like:
        """Return `self LIKE pattern` of SQL: `%` matches any string, `_` any character."""
        return Like(self, lit(pattern), escape)

    def starts_with(self, prefix: str) -> Call:
        """Return whether a string starts with `prefix`."""
        return Call("startswith", (self, lit(prefix)))

    def cast(self, to: DataType | str | Any) -> Cast:
        """Return `CAST(self AS to)` of SQL, with the errors of Spark's ANSI mode."""
        return Cast(self, as_type(to))

    def collate(self, collation: str) -> Collate:
        """Return `self COLLATE collation`, which is compared by this collation.

        Args:
            collation: the name of the collation in SQL, such as `UTF8_LCASE`; `UTF8_BINARY`
            compares bytes.
        """
        return Collate(self, collation_named(collation))


def _not_none(other: object, instead: str) -> Expression:
    if is_missing(other):
        raise InvalidInputError(
            f"cannot compare an expression with {other!r}: the result would be NULL for every row; "
            f"use {instead}, or equals_null_safe(value) if only some values are None"
        )
    return lit(other)


def _condition(other: object) -> Expression:
    if isinstance(other, str):
        raise InvalidInputError(
            f"cannot combine an expression with the string {other!r}: write both sides as "
            "expressions, such as (col('a') > 1) | (col('b') == 'x'), or both in one string of SQL"
        )
    return lit(other)


def _operands_of(kind: type[And | Or], side: Expression) -> tuple[Expression, ...]:
    return side.operands if isinstance(side, kind) else (side,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column(Expression):
    """A column, or a field inside a column: `("a", "b")` is `a.b`."""

    path: tuple[str, ...]

    _otherwise = (
        "col('info.city') for a field of a struct, or SQL, such as \"length(name) > 3\", for a "
        "function"
    )

    @property
    def name(self) -> str:
        """The dotted name of the column, for error messages."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Literal(Expression):
    """A constant.

    Args:
        value: None, bool, int, float, Decimal, str, bytes, date, datetime (aware: `timestamp`,
            naive: `timestamp_ntz`), timedelta, list or dict. If the type requires it, an int means
            months, nanoseconds since 1970, or, outside of the years 1 to 9999, days or microseconds
            since 1970.
        type: the type; if None, `resolve` derives it from the other operand.
        nanos: for a timestamp written as a string, the nanoseconds after the last full microsecond.
            They are used only in comparisons with a column of nanosecond timestamps.
    """

    value: Any
    type: DataType | None = None
    nanos: int = 0

    @property
    def is_far_moment(self) -> bool:
        """Whether the value is an int for a date or timestamp outside of the years 1 to 9999."""
        kind = self.type
        return (
            isinstance(self.value, int)
            and isinstance(kind, PrimitiveType)
            and kind.primitive.counted is not None
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Expression):
    """`left op right` with an operator of `COMPARISONS`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class And(Expression):
    """AND of all operands: false if one operand is false, even if another is NULL."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Or(Expression):
    """OR of all operands: true if one operand is true, even if another is NULL."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Not(Expression):
    """NOT; NULL for NULL."""

    operand: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsNull(Expression):
    """Whether the value is NULL."""

    operand: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class In(Expression):
    """Whether the value is one of the options."""

    operand: Expression
    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Like(Expression):
    """`LIKE` (or `ILIKE`) against a pattern."""

    operand: Expression
    pattern: Expression
    escape: str = "\\"
    ignore_case: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arithmetic(Expression):
    """`left op right` with an operator of `ARITHMETIC`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cast(Expression):
    """`CAST`, or `TRY_CAST` with `is_try`: NULL where a cast would fail.

    `time_zone` is set if a resolved cast converts to or from local time in a zone other than UTC.
    """

    operand: Expression
    to: DataType
    is_try: bool = False
    time_zone: str | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Collate(Expression):
    """`operand COLLATE name`: a string that is compared by a collation.

    In a resolved tree this node is used only in comparisons. Its value is then the collation key of
    the operand: comparing keys by bytes has the same result as comparing the strings by the
    collation.

    Args:
        operand: a string.
        collation: the identifier of the collation, such as `spark.UTF8_LCASE`.
    """

    operand: Expression
    collation: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Case(Expression):
    """`CASE WHEN condition THEN value … ELSE otherwise END`."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(Expression):
    """A call of a function, with its Spark name in lower case."""

    function: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lambda(Expression):
    """`(parameters) -> body`, an argument of a function such as `transform`.

    Args:
        parameters: names in lower case; in the body they hide columns with the same name.
        body: the body, in which a `Variable` represents each use of a parameter.
    """

    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Variable(Expression):
    """A parameter of an enclosing lambda, by its name in lower case."""

    name: str


class Columns:
    """Return a column: `col("id")` or `col.id`.

    In a string, dots separate fields, and backticks quote a name: ``col("a.`b.c`")``.
    """

    __slots__ = ()

    @suggests_options("col()", {})
    def __call__(self, name: str) -> Column:
        """Return a column, or a field of a struct.

        Raises:
            InvalidInputError: the name is empty, or a backtick is not closed.
        """
        return Column(_split_name(name))

    def __getattr__(self, name: str) -> Column:
        """Return a column whose name does not begin with an underscore."""
        __tracebackhide__ = True  # IPython does not show this frame
        if name.startswith("_"):
            raise UnknownNameError(f"col has no attribute {name!r}: use col({name!r})")
        return Column((name,))

    def __repr__(self) -> str:
        """Return the public name."""
        return "deltalog.col"


col: Final[Columns] = Columns()


def lit(value: object) -> Expression:
    """Return a constant; an expression is returned unchanged.

    A UUID becomes its string.

    Raises:
        InvalidInputError: the value is a column of another library, such as a Series of pandas, or
            an object without a type in SQL.
    """
    if type(value).__name__ in _COLUMNS:
        raise InvalidInputError(
            f"cannot use {kind_of(value)} as a constant: expected one value; "
            "col('id').is_in(values) compares with several"
        )
    if type(value) in {object, complex} or callable(value):
        raise InvalidInputError(
            f"cannot use {kind_of(value)} as a constant: expected a value of a column, such as 5, "
            "'a', True, None, a date or a list"
        )
    if isinstance(value, UUID):
        return Literal(str(value))
    return value if isinstance(value, Expression) else Literal(value)


_COLUMNS: Final = {"Series", "Index", "DataFrame", "ChunkedArray"}
"""Names of classes of pandas, Polars and Arrow that contain many values."""


def _split_name(name: str) -> tuple[str, ...]:
    if not isinstance(name, str):
        raise wrong_argument("col", "name", name, "the name of a column, such as 'id'")
    parts: list[str] = []
    current: list[str] = []
    quoted = was_quoted = False
    position = 0
    while position < len(name):
        char = name[position]
        if char == "`":
            if quoted and name[position + 1 : position + 2] == "`":
                current.append("`")
                position += 1
            else:
                quoted = not quoted
                was_quoted = True
        elif char == "." and not quoted:
            parts.append("".join(current))
            current = []
        else:
            current.append(char)
        position += 1
    parts.append("".join(current))
    if quoted or (not all(parts) and not was_quoted):
        raise InvalidInputError(
            f"cannot make a column of {name!r}: expected names between dots, "
            "quoted by backticks if they contain a dot"
        )
    return tuple(parts)
