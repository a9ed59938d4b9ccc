"""Laws of merges without an equality: what happens is what loops over all pairs of rows say.

The condition compares the table with the source by `<`, `<=`, `>`, `>=` and BETWEEN, and may say
more. The model knows Spark's order of values and the three truth values of SQL; it looks at every
pair, for tables of several files and for batches of pairs that are cut after any number of them.
"""
# ruff: noqa: ARG005  # every condition takes both rows, whichever it looks at

from __future__ import annotations

import datetime as dt
import operator as operators
import random
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import AmbiguousMergeError, InvalidInputError
from deltalog.operations.changes.request import Action, When
from tests.support.examples import examples
from tests.support.logs import DictStore

Row = dict[str, Any]
Truth = bool | None

# --- Kinds of values, and their order ----------------------------------------------------------


def same(value: Any) -> Any:
    return value


def number(value: float) -> tuple[bool, float]:
    """NaN is greater than every other number and equals itself; -0.0 equals 0.0."""
    as_double = float(value)
    return (True, 0.0) if as_double != as_double else (False, as_double)  # noqa: PLR0124  # NaN


def at_utc(value: dt.date) -> dt.datetime:
    """A date is its midnight, and a time without a zone is one of the session's: of UTC."""
    if not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    return value.replace(tzinfo=dt.UTC)


@dataclass(frozen=True)
class Term:
    """A value of one row."""

    sql: str
    of: Callable[[Row], Any]


@dataclass(frozen=True)
class Kind:
    """Types of the compared columns on both sides, some values, and the order that they have."""

    table: pa.DataType
    source: pa.DataType
    of_table: Sequence[Any]
    of_source: Sequence[Any]
    key: Callable[[Any], Any] = same
    has_sums: bool = False
    collation: str = ""

    def text(self, term: Term) -> str:
        """A side of a comparison; one with a collation decides for both."""
        return f"{term.sql} COLLATE {self.collation}" if self.collation else term.sql


def alike(data_type: Any, values: Sequence[Any], **options: Any) -> Kind:
    return Kind(data_type, data_type, values, values, **options)


(NEGATIVE_NAN,) = struct.unpack("<d", b"\1\0\0\0\0\0\xf8\xff")
NAN, INFINITY = float("nan"), float("inf")
SMALL = [-2, -1, 0, 1, 2, 3, 4]
INTS = [-(2**31), -1, 0, 1, 2**31 - 1]
LONGS = [-(2**63), -(2**63) + 1, *INTS, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1]
DOUBLES = [NAN, NEGATIVE_NAN, -INFINITY, -1.5, -0.0, 0.0, 5e-324, 1.0, 2.0, INFINITY]
FLOATS = [NAN, -INFINITY, -0.0, 0.0, 0.10000000149011612, 1.0, INFINITY]
DATES = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 28), dt.date(2024, 2, 29)]
DATES += [dt.date(2024, 3, 1), dt.date(9999, 12, 31)]
MOMENTS = [
    *(dt.datetime.combine(date, dt.time(), dt.UTC) for date in DATES),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC),
    dt.datetime(2024, 2, 29, 0, 0, 0, 1, dt.UTC),
    dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
]
WALLS = [moment.replace(tzinfo=None) for moment in MOMENTS]
# By UTF-16 the last two would be in the other order.
TEXTS = ["", "A", "B", "a", "aa", "b", "\xe9", "\ufb01", "\U0001f600"]
CENTS = [Decimal(text) for text in ("-99999999.99", "-0.01", "0.00", "0.99", "1.00", "1.01")]
FINER = [Decimal(text) for text in ("-0.0101", "0.0000", "0.9999", "1.0000", "1.0100", "1.0101")]
LONG, DOUBLE, DECIMAL = pa.int64(), pa.float64(), pa.decimal128(10, 2)
MOMENT, WALL = pa.timestamp("us", "UTC"), pa.timestamp("us")

KINDS: dict[str, Kind] = {
    "int": alike(pa.int32(), SMALL, has_sums=True),
    "long": alike(LONG, LONGS),
    "double": alike(DOUBLE, DOUBLES, key=number, has_sums=True),
    "date": alike(pa.date32(), DATES),
    "timestamp": alike(MOMENT, MOMENTS),
    "timestamp_ntz": alike(WALL, WALLS),
    "string": alike(pa.string(), TEXTS),
    "decimal": alike(DECIMAL, CENTS, has_sums=True),
    "boolean": alike(pa.bool_(), [False, True]),
    "binary": alike(pa.binary(), [b"", b"\0", b"a", b"aa", b"\x7f", b"\x80", b"\xff"]),
    "text without case": alike(
        pa.string(), ["", "A", "B", "a", "aa", "AA", "b"], key=str.lower, collation="UTF8_LCASE"
    ),
    "int and long": Kind(pa.int32(), LONG, INTS, LONGS),
    "long and int": Kind(LONG, pa.int32(), LONGS, INTS),
    "long and double": Kind(LONG, DOUBLE, LONGS, [*DOUBLES, 2.0**53, 2.0**63], number),
    "double and int": Kind(DOUBLE, pa.int32(), DOUBLES, SMALL, number, has_sums=True),
    "float and double": Kind(pa.float32(), DOUBLE, FLOATS, [0.1, *FLOATS, *DOUBLES], number),
    "decimal and long": Kind(DECIMAL, LONG, CENTS, LONGS),
    "decimals": Kind(DECIMAL, pa.decimal128(12, 4), CENTS, FINER, has_sums=True),
    "decimal and double": Kind(DECIMAL, DOUBLE, CENTS, [*DOUBLES, 1.01, 0.99], number),
    "date and timestamp": Kind(pa.date32(), MOMENT, DATES, MOMENTS, at_utc),
    "timestamp and timestamp_ntz": Kind(MOMENT, WALL, MOMENTS, WALLS, at_utc),
}

# --- Conditions, in SQL and in Python ----------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """SQL over a row of the table and one of the source, and what it means."""

    sql: str
    holds: Callable[[Row, Row], Truth]


SYMBOLS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    **SYMBOLS,
    "<>": operators.ne,
    "=": operators.eq,
}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare(symbol: str, left: Any, right: Any, key: Callable[[Any], Any] = same) -> Truth:
    if left is None or right is None:
        return None
    return COMPARISONS[symbol](key(left), key(right))


def opposite(value: Truth) -> Truth:
    return None if value is None else not value


def all_of(values: Iterable[Truth]) -> Truth:
    found = list(values)
    if False in found:
        return False
    return None if None in found else True


def any_of(*values: Truth) -> Truth:
    return opposite(all_of(map(opposite, values)))


def column(name: str) -> Term:
    return Term(name, lambda row: row[name[2:]])


def added(term: Term, more: int) -> Term:
    def total(row: Row) -> Any:
        value = term.of(row)
        return None if value is None else value + more

    return Term(f"{term.sql} {'-' if more < 0 else '+'} {abs(more)}", total)


def first_of(one: Term, other: Term) -> Term:
    def found(row: Row) -> Any:
        value = one.of(row)
        return other.of(row) if value is None else value

    return Term(f"coalesce({one.sql}, {other.sql})", found)


TARGET_COLUMNS = (column("t.a"), column("t.b"))
SOURCE_COLUMNS = (column("s.low"), column("s.high"))


def terms(columns: tuple[Term, Term], kind: Kind) -> st.SearchStrategy[Term]:
    """A column, more often than a value that is computed."""
    some = [*columns, *columns, first_of(*columns)]
    if kind.has_sums:
        some += [added(columns[0], 1), added(columns[1], -2)]
    return st.sampled_from(some)


def bound(kind: Kind, symbol: str, target: Term, source: Term, *, turned: bool) -> Condition:
    """A bound of a value of the table; turned, the source is on the left."""
    sql = f"{kind.text(target)} {symbol} {source.sql}"
    if turned:
        sql = f"{source.sql} {TURNED[symbol]} {kind.text(target)}"
    return Condition(sql, lambda t, s: compare(symbol, target.of(t), source.of(s), kind.key))


def bounds(kind: Kind) -> st.SearchStrategy[Condition]:
    return st.builds(
        lambda symbol, target, source, turned: bound(kind, symbol, target, source, turned=turned),
        st.sampled_from(sorted(SYMBOLS)),
        terms(TARGET_COLUMNS, kind),
        terms(SOURCE_COLUMNS, kind),
        st.booleans(),
    )


def between(kind: Kind, value: Term, low: Term, high: Term, *, of_table: bool) -> Condition:
    """A value of the table between two of the source, or the other way round."""

    def holds(t: Row, s: Row) -> Truth:
        own, other = (t, s) if of_table else (s, t)
        found = value.of(own)
        return all_of(
            [
                compare(">=", found, low.of(other), kind.key),
                compare("<=", found, high.of(other), kind.key),
            ]
        )

    return Condition(f"{kind.text(value)} BETWEEN {low.sql} AND {high.sql}", holds)


def betweens(kind: Kind) -> st.SearchStrategy[Condition]:
    target, source = terms(TARGET_COLUMNS, kind), terms(SOURCE_COLUMNS, kind)
    return st.builds(
        lambda value, low, high: between(kind, value, low, high, of_table=True),
        target, source, source,
    ) | st.builds(
        lambda value, low, high: between(kind, value, low, high, of_table=False),
        source, target, target,
    )  # fmt: skip


def total(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


OF_TARGET = [
    Condition("t.x > 1", lambda t, s: compare(">", t["x"], 1)),
    Condition("t.a IS NOT NULL", lambda t, s: t["a"] is not None),
    Condition("t.x <= 2 OR t.b IS NULL", lambda t, s: any_of(le(t["x"], 2), t["b"] is None)),
]
OF_SOURCE = [
    Condition("s.x > 1", lambda t, s: compare(">", s["x"], 1)),
    Condition("s.high IS NOT NULL", lambda t, s: s["high"] is not None),
    Condition("s.x <= 2 OR s.low IS NULL", lambda t, s: any_of(le(s["x"], 2), s["low"] is None)),
]
OF_BOTH = [
    Condition("t.x <> s.x", lambda t, s: compare("<>", t["x"], s["x"])),
    Condition("t.x + s.x > 2", lambda t, s: compare(">", total(t["x"], s["x"]), 2)),
    Condition("t.x < s.x", lambda t, s: compare("<", t["x"], s["x"])),
    Condition("(t.x = s.x OR t.x > 2)", lambda t, s: any_of(eq(t["x"], s["x"]), gt(t["x"], 2))),
]


def le(left: Any, right: Any) -> Truth:
    return compare("<=", left, right)


def gt(left: Any, right: Any) -> Truth:
    return compare(">", left, right)


def eq(left: Any, right: Any) -> Truth:
    return compare("=", left, right)


def grouped(one: Condition) -> Condition:
    return Condition(f"({one.sql})", one.holds)


def negated(one: Condition) -> Condition:
    return Condition(f"NOT ({one.sql})", lambda t, s: opposite(one.holds(t, s)))


def either(one: Condition, other: Condition) -> Condition:
    return Condition(
        f"(({one.sql}) OR ({other.sql}))",
        lambda t, s: any_of(one.holds(t, s), other.holds(t, s)),
    )


def joined(parts: Sequence[Condition]) -> Condition:
    return Condition(
        " AND ".join(part.sql for part in parts),
        lambda t, s: all_of(part.holds(t, s) for part in parts),
    )


def conditions(kind: Kind) -> st.SearchStrategy[Condition]:
    """Conjuncts, of which any number may be bounds and none is an equality."""
    some = bounds(kind)
    rest = st.sampled_from([*OF_TARGET, *OF_SOURCE, *OF_BOTH])
    part = (
        some
        | betweens(kind)
        | rest.map(grouped)
        | some.map(negated)
        | betweens(kind).map(negated)
        | st.builds(either, some, some | rest)
    )
    return st.one_of(
        st.lists(some | betweens(kind), min_size=1, max_size=2),
        st.builds(lambda first, more: [*more, first], some, st.lists(part, max_size=3)),
        st.lists(part, min_size=1, max_size=2),
    ).map(joined)


# --- Merges, and what they mean ----------------------------------------------------------------

Values = dict[str, Callable[[Row, Row], Any]]

CHANGES: Values = {
    "s.m": lambda t, s: s["m"],
    "t.n": lambda t, s: t["n"],
    "t.n + 1000": lambda t, s: total(t["n"], 1000),
    "t.x + s.x": lambda t, s: total(t["x"], s["x"]),
    "-1": lambda t, s: -1,
    "s.low": lambda t, s: s["low"],
    "t.b": lambda t, s: t["b"],
}


@dataclass(frozen=True)
class Step:
    """A clause, and what it means: values are named by the keys of `CHANGES`."""

    when: When
    action: Action
    condition: Condition | None = None
    values: Mapping[str, str] = field(default_factory=dict)

    def takes(self, target: Row, source: Row) -> bool:
        return self.condition is None or self.condition.holds(target, source) is True

    def changed(self, target: Row, source: Row) -> Row:
        new = {name: CHANGES[sql](target, source) for name, sql in self.values.items()}
        return {**target, **new}

    def __str__(self) -> str:
        condition = None if self.condition is None else self.condition.sql
        return f"{self.when} {self.action} {dict(self.values)} if {condition}"


UPDATE = Step(When.MATCHED, Action.UPDATE, values={"x": "s.m"})
DELETE = Step(When.MATCHED, Action.DELETE)
INSERT = Step(When.NOT_MATCHED, Action.INSERT, values={"n": "s.m", "x": "-1"})
UPDATE_OTHERS = Step(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, values={"x": "t.n + 1000"})
DELETE_OTHERS = Step(When.NOT_MATCHED_BY_SOURCE, Action.DELETE)
EMPTY: Row = dict.fromkeys(("n", "a", "b", "x", "m", "low", "high"))


@st.composite
def steps(draw: Any, kind: Kind) -> list[Step]:
    """Up to two clauses of each sort, of which only the last may be without a condition."""
    copies = kind.table == kind.source
    found: list[Step] = []
    for when, parts in (
        (When.MATCHED, st.sampled_from([*OF_TARGET, *OF_SOURCE, *OF_BOTH]) | bounds(kind)),
        (When.NOT_MATCHED, st.sampled_from(OF_SOURCE)),
        (When.NOT_MATCHED_BY_SOURCE, st.sampled_from(OF_TARGET)),
    ):
        count = draw(st.sampled_from([0, 1, 1, 2]))
        for place in range(count):
            condition = draw(parts if place < count - 1 else st.none() | parts)
            if when is When.NOT_MATCHED:
                more = {"a": "s.low"} if copies and draw(st.booleans()) else {}
                found.append(Step(when, Action.INSERT, condition, {**INSERT.values, **more}))
            elif draw(st.booleans()):
                found.append(Step(when, Action.DELETE, condition))
            elif when is When.MATCHED:
                values = [{"x": "s.m"}, {"x": "t.x + s.x", "n": "t.n + 1000"}]
                if copies:
                    values.append({"a": "s.low", "x": "s.m"})
                found.append(Step(when, Action.UPDATE, condition, draw(st.sampled_from(values))))
            else:
                values = [{"x": "t.n + 1000"}, {"a": "t.b", "x": "-1"}]
                found.append(Step(when, Action.UPDATE, condition, draw(st.sampled_from(values))))
    return found or [UPDATE]


@dataclass
class Outcome:
    """The rows of a table after a merge, and how many of them are new or changed."""

    rows: list[Row] = field(default_factory=list)
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


def first(clauses: Sequence[Step], when: When, target: Row, source: Row) -> Step | None:
    return next((one for one in clauses if one.when is when and one.takes(target, source)), None)


def outcome(
    rows: Sequence[Row], source: Sequence[Row], on: Condition, clauses: Sequence[Step]
) -> Outcome:
    """What a merge does, by loops over all pairs.

    Raises:
        AmbiguousMergeError: several source rows change a row of the table. As in Delta Spark they
            may if nothing but a delete without a condition is done to rows that match.
    """
    acts = [one for one in clauses if one.when is When.MATCHED]
    may_repeat = [(one.action, one.condition) for one in acts] == [(Action.DELETE, None)]
    done = Outcome()
    used: set[int] = set()
    for row in rows:
        matches = [place for place, other in enumerate(source) if on.holds(row, other) is True]
        used.update(matches)
        if matches:
            found = [(first(acts, When.MATCHED, row, source[at]), source[at]) for at in matches]
        else:
            found = [(first(clauses, When.NOT_MATCHED_BY_SOURCE, row, EMPTY), EMPTY)]
        acting = [(step, other) for step, other in found if step is not None]
        if len(acting) > 1 and not may_repeat:
            raise AmbiguousMergeError("the model")
        if not acting:
            done.rows.append(row)
        elif acting[0][0].action is Action.DELETE:
            done.deleted += 1
        else:
            done.updated += 1
            done.rows.append(acting[0][0].changed(row, acting[0][1]))
    for place, other in enumerate(source):
        step = None if place in used else first(clauses, When.NOT_MATCHED, EMPTY, other)
        if step is not None:
            done.inserted += 1
            new = step.changed(EMPTY, other)
            done.rows.append({name: new[name] for name in ("n", "a", "b", "x")})
    return done


class Merging:
    """A table in files, whose merges are compared with the model."""

    def __init__(self, kind: Kind, *files: Sequence[Row], vectors: bool = False) -> None:
        pair = [("n", LONG), ("a", kind.table), ("b", kind.table), ("x", LONG)]
        self._schema = pa.schema(pair)
        self._of_source = pa.schema(
            [("m", LONG), ("low", kind.source), ("high", kind.source), ("x", LONG)]
        )
        self._store = DictStore()
        self.rows: list[Row] = [row for rows in files for row in rows]
        options = {"delta.enableDeletionVectors": "true"} if vectors else {}
        for rows in [file for file in files if file] or [[]]:
            data = pa.Table.from_pylist(list(rows), schema=self._schema)
            write_deltalake(self._store, data, mode="append", configuration=options)

    def merge(
        self,
        source: Sequence[Row],
        on: Condition,
        clauses: Sequence[Step],
        *,
        most_pairs: int | None = None,
        aliases: bool = True,
        chunk: int = 1 << 20,
    ) -> str:
        """Merge and compare; return what came of it."""
        rows = pa.Table.from_pylist(list(source), schema=self._of_source)
        batches = rows.to_batches(max_chunksize=chunk)
        data = pa.Table.from_batches(batches, schema=self._of_source)
        table = DeltaTable(self._store)
        before = table.version()

        def text(sql: str) -> str:
            return sql if aliases else re.sub(r"\b[ts]\.", _full_name, sql)

        merger = table.merge(
            data,
            text(on.sql),
            source_alias="s" if aliases else None,
            target_alias="t" if aliases else None,
        )
        for step in clauses:
            condition = None if step.condition is None else text(step.condition.sql)
            values = {name: text(sql) for name, sql in step.values.items()}
            match step.when, step.action:
                case When.MATCHED, Action.UPDATE:
                    merger.when_matched_update(values, condition)
                case When.MATCHED, _:
                    merger.when_matched_delete(condition)
                case When.NOT_MATCHED, _:
                    merger.when_not_matched_insert(values, condition)
                case _, Action.UPDATE:
                    merger.when_not_matched_by_source_update(values, condition)
                case _:
                    merger.when_not_matched_by_source_delete(condition)
        with pytest.MonkeyPatch.context() as patch:
            if most_pairs is not None:
                patch.setattr("deltalog.operations.changes.merge.pairs.MOST_PAIRS", most_pairs)
            try:
                expected = outcome(self.rows, source, on, clauses)
            except AmbiguousMergeError:
                with pytest.raises(AmbiguousMergeError):
                    merger.execute()
                self._check(before)
                return "ambiguous"
            done = merger.execute()
        self.rows = expected.rows
        changed = (expected.inserted, expected.updated, expected.deleted)
        names = [f"num_target_rows_{name}" for name in ("inserted", "updated", "deleted")]
        assert tuple(done[name] for name in names) == changed
        assert done["num_source_rows"] == len(source)
        self._check(before + any(changed))
        return "changed" if any(changed) else "same"

    def _check(self, version: int) -> None:
        table = DeltaTable(self._store)
        assert table.version() == version
        expected = pa.Table.from_pylist(self.rows, schema=self._schema)
        assert in_order(table.to_pyarrow_table()) == in_order(expected)


def _full_name(alias: re.Match[str]) -> str:
    return {"t.": "target.", "s.": "source."}[alias.group()]


def in_order(table: pa.Table) -> list[str]:
    """All rows as texts, which also tell -0.0 from 0.0, and say that NaN is NaN."""
    return sorted(map(repr, table.select(["n", "a", "b", "x"]).to_pylist()))


# --- Data --------------------------------------------------------------------------------------

MOST_PAIRS = st.sampled_from([None, 1, 7, 100])
SMALL_OR_NULL = st.none() | st.integers(0, 4)


def values_of(values: Sequence[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from([None, *values])


def files_of(kind: Kind, *, most: int = 3) -> st.SearchStrategy[list[list[Row]]]:
    values = values_of(kind.of_table)
    row = st.tuples(values, values, SMALL_OR_NULL)
    return st.lists(st.lists(row, max_size=6), max_size=most).map(numbered_files)


def numbered_files(files: Sequence[Sequence[tuple[Any, Any, Any]]]) -> list[list[Row]]:
    numbers = iter(range(1000))
    return [[{"n": next(numbers), "a": a, "b": b, "x": x} for a, b, x in file] for file in files]


def sources_of(kind: Kind, *, most: int = 6) -> st.SearchStrategy[list[Row]]:
    values = values_of(kind.of_source)
    return st.lists(st.tuples(values, values, SMALL_OR_NULL), max_size=most).map(numbered_source)


def numbered_source(rows: Sequence[tuple[Any, Any, Any]]) -> list[Row]:
    return [
        {"m": 100 + place, "low": low, "high": high, "x": x}
        for place, (low, high, x) in enumerate(rows)
    ]


@dataclass(frozen=True)
class Given:
    """A merge that is done to a table."""

    source: list[Row]
    on: Condition
    clauses: list[Step]

    def __repr__(self) -> str:
        return f"merge {self.source} on {self.on.sql}: {[str(step) for step in self.clauses]}"


def merges_of(kind: Kind) -> st.SearchStrategy[Given]:
    return st.builds(Given, sources_of(kind), conditions(kind), steps(kind))


# --- Laws --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=8)
@given(data=st.data(), vectors=st.booleans(), aliases=st.booleans(), most_pairs=MOST_PAIRS)
def test_a_merge_by_ranges_does_what_loops_over_all_pairs_say(
    name: str, data: st.DataObject, most_pairs: int | None, *, vectors: bool, aliases: bool
) -> None:
    kind = KINDS[name]
    table = Merging(kind, *data.draw(files_of(kind), label="files"), vectors=vectors)
    for merge in data.draw(st.lists(merges_of(kind), min_size=1, max_size=2), label="merges"):
        table.merge(
            merge.source, merge.on, merge.clauses, most_pairs=most_pairs, aliases=aliases, chunk=2
        )


@pytest.mark.parametrize("name", ["double", "string"])
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_one_bound_matches_the_values_on_its_side(name: str, symbol: str) -> None:
    """Every value is compared with every other, and with NULL."""
    kind = KINDS[name]
    rows = [(value, None, None) for value in (None, *kind.of_table)]
    for place, value in enumerate((None, *kind.of_source)):
        on = bound(kind, symbol, TARGET_COLUMNS[0], SOURCE_COLUMNS[0], turned=bool(place % 2))
        table = Merging(kind, *numbered_files([rows[::2], rows[1::2]]))
        table.merge(numbered_source([(value, None, None)]), on, [UPDATE, INSERT, UPDATE_OTHERS])


def between_low_and_high(kind: Kind, *, of_table: bool = True) -> Condition:
    if of_table:
        return between(kind, TARGET_COLUMNS[0], *SOURCE_COLUMNS, of_table=True)
    return between(kind, SOURCE_COLUMNS[0], *TARGET_COLUMNS, of_table=False)


def half_open(kind: Kind) -> Condition:
    target, (low, high) = TARGET_COLUMNS[0], SOURCE_COLUMNS
    return joined(
        [
            bound(kind, ">=", target, low, turned=False),
            bound(kind, "<", target, high, turned=False),
        ]
    )


SEEDS = st.integers(0, 2**32)
SIZES = st.sampled_from([1, 5, 30, 60])
CLAUSES: dict[str, list[Step]] = {
    "all sorts": [UPDATE, INSERT, DELETE_OTHERS],
    "deletes": [DELETE, INSERT, UPDATE_OTHERS],
    "inserts": [INSERT],
    "of the others": [UPDATE_OTHERS],
    "with conditions": [
        Step(When.MATCHED, Action.DELETE, Condition("s.m = 103", lambda t, s: s["m"] == 103)),
        Step(
            When.MATCHED,
            Action.UPDATE,
            Condition("s.m = 100 + t.n % 7", lambda t, s: s["m"] == 100 + t["n"] % 7),
            {"x": "t.x + s.x"},
        ),
        Step(When.NOT_MATCHED, Action.INSERT, OF_SOURCE[0], INSERT.values),
        Step(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, OF_TARGET[0]),
    ],
}


def many_rows(seed: int, count: int, values: Sequence[Any]) -> list[tuple[Any, Any, Any]]:
    """Rows that a seed makes, since drawing many of them takes long."""
    rng = random.Random(seed)
    return [
        (rng.choice(values), rng.choice(values), rng.choice([None, 0, 1, 2, 3]))
        for _ in range(count)
    ]


@pytest.mark.parametrize("clauses", CLAUSES)
@settings(max_examples=12)
@given(
    name=st.sampled_from(sorted(KINDS)),
    on=st.sampled_from(["half open", "between", "low between", "drawn"]),
    sizes=st.tuples(SIZES, SIZES),
    seed=SEEDS,
    most_pairs=MOST_PAIRS,
    data=st.data(),
)
def test_many_ranges_do_what_loops_over_all_pairs_say(
    clauses: str,
    name: str,
    *,
    on: str,
    sizes: tuple[int, int],
    seed: int,
    most_pairs: int | None,
    data: st.DataObject,
) -> None:
    kind = KINDS[name]
    rows = many_rows(seed, sizes[0], [None, *kind.of_table])
    cut = seed % (len(rows) + 1)
    table = Merging(kind, *numbered_files([rows[:cut], rows[cut:]]), vectors=bool(seed % 2))
    source = numbered_source(many_rows(seed + 1, sizes[1], [None, *kind.of_source]))
    condition = {
        "half open": lambda: half_open(kind),
        "between": lambda: between_low_and_high(kind),
        "low between": lambda: between_low_and_high(kind, of_table=False),
        "drawn": lambda: data.draw(conditions(kind), label="condition"),
    }[on]()
    table.merge(source, condition, CLAUSES[clauses], most_pairs=most_pairs, chunk=7)


@settings(max_examples=examples(30))
@given(
    edges=st.lists(st.integers(-20, 60), unique=True, max_size=25).map(sorted),
    gaps=st.sets(st.integers(0, 24)),
    copies=st.booleans(),
    seed=SEEDS,
    most_pairs=MOST_PAIRS,
)
def test_ranges_that_follow_each_other_change_each_row_once(
    edges: list[int], gaps: set[int], seed: int, most_pairs: int | None, *, copies: bool
) -> None:
    """Intervals of validity: no row is in two of them, whatever their order in the source."""
    kind = KINDS["int"]
    ranges: list[tuple[int | None, int | None, int]] = [
        (low, high, 1) for place, (low, high) in enumerate(pairwise(edges)) if place not in gaps
    ]
    # Empty, turned round and unknown ranges hold nothing.
    ranges += [(5, 5, 2), (9, 3, 2), (None, 7, 2), (7, None, 2)] if copies else []
    random.Random(seed).shuffle(ranges)
    rows = many_rows(seed, 50, [None, *range(-25, 65)])
    table = Merging(kind, *numbered_files([rows[:20], rows[20:25], rows[25:]]))
    done = table.merge(
        numbered_source(ranges),
        half_open(kind),
        [UPDATE, INSERT, UPDATE_OTHERS],
        most_pairs=most_pairs,
        chunk=3,
    )
    assert done == "changed"


@pytest.mark.parametrize("most_pairs", [None, 1])
@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ([UPDATE], "ambiguous"),
        ([DELETE], "changed"),
        ([DELETE, INSERT, DELETE_OTHERS], "changed"),
        ([Step(When.MATCHED, Action.DELETE, OF_SOURCE[0])], "ambiguous"),
        ([INSERT], "same"),
        ([UPDATE_OTHERS], "changed"),
        ([Step(When.MATCHED, Action.UPDATE, OF_SOURCE[0], {"x": "s.m"}), DELETE], "ambiguous"),
        (
            [Step(When.MATCHED, Action.UPDATE, Condition("s.x = 3", lambda t, s: s["x"] == 3),
                  {"x": "s.m"})],
            "changed",
        ),
        (
            [Step(When.MATCHED, Action.DELETE, Condition("s.x = 9", lambda t, s: s["x"] == 9))],
            "same",
        ),
    ],
)  # fmt: skip
def test_ranges_that_overlap_are_ambiguous_where_two_of_them_act(
    clauses: list[Step], expected: str, most_pairs: int | None
) -> None:
    kind = KINDS["int"]
    rows = [(value, None, 0) for value in (None, 0, 1, 2, 3, 9)]
    source = numbered_source([(0, 2, 2), (2, 4, 3), (1, 3, 2)])
    table = Merging(kind, *numbered_files([rows[:2], rows[2:]]))
    done = table.merge(source, between_low_and_high(kind), clauses, most_pairs=most_pairs)
    assert done == expected


@pytest.mark.parametrize("most_pairs", [None, 1])
@pytest.mark.parametrize(("num_rows", "num_sources"), [(0, 0), (0, 3), (3, 0), (1, 1)])
@pytest.mark.parametrize("clauses", CLAUSES)
def test_a_side_without_rows_leaves_those_of_the_other(
    clauses: str, num_rows: int, num_sources: int, most_pairs: int | None
) -> None:
    kind = KINDS["date"]
    rows = [(DATES[2], DATES[3], place) for place in range(num_rows)]
    source = numbered_source([(DATES[place], DATES[1 + place], 2) for place in range(num_sources)])
    table = Merging(kind, *numbered_files([rows[:1], rows[1:]]))
    table.merge(source, half_open(kind), CLAUSES[clauses], most_pairs=most_pairs)


@pytest.mark.parametrize(
    "on",
    [
        *OF_TARGET,
        *OF_SOURCE,
        *OF_BOTH,
        Condition("1 = 0", lambda t, s: False),
        Condition("1 = 1", lambda t, s: True),
        Condition("t.a > s.low AND 1 = 0", lambda t, s: False),
        Condition("t.a > NULL", lambda t, s: None),
    ],
    ids=lambda on: on.sql,
)
@pytest.mark.parametrize("clauses", ["deletes", "with conditions"])
def test_conditions_without_a_bound_hold_as_in_loops(on: Condition, clauses: str) -> None:
    kind = KINDS["int"]
    table = Merging(kind, *numbered_files([many_rows(1, 9, SMALL), many_rows(2, 9, SMALL)]))
    source = numbered_source(many_rows(3, 9, [None, *SMALL]))
    table.merge(source, on, CLAUSES[clauses], most_pairs=7)


MOST = 2**63 - 1
BEFORE_THE_SUM = {
    "a row's own": ("t.a < 9 AND t.a + 1 > s.low", [1, MOST], [0]),
    "the source's own": ("s.low < 9 AND t.a > s.low + 1", [5], [0, MOST]),
    "over both": ("t.a <= s.low + 5 AND t.a + 1 > s.low", [1, MOST], [0]),
    "no source": ("t.a + 1 > s.low", [MOST], []),
    "no table": ("t.a > s.low + 1", [], [MOST]),
}


@pytest.mark.parametrize("others", [[], [UPDATE_OTHERS]])
@pytest.mark.parametrize("guard", BEFORE_THE_SUM)
def test_a_sum_is_not_taken_of_rows_that_an_earlier_condition_leaves_out(
    guard: str, others: list[Step]
) -> None:
    """Such a sum would overflow."""
    sql, rows, source = BEFORE_THE_SUM[guard]
    # Whatever the condition, it is true of 1 and 0, and of 5 and 0.
    on = Condition(sql, lambda t, s: t["a"] < 9 and s["low"] < 9)
    table = Merging(KINDS["long"], *numbered_files([[(value, None, 0)] for value in rows]))
    given_rows = numbered_source([(value, None, 0) for value in source])
    table.merge(given_rows, on, [DELETE, INSERT, *others])


@pytest.mark.parametrize("on", ["t.a + 1 > s.low", "s.low + 1 > t.a", "t.b < s.high - -1"])
def test_a_sum_that_overflows_is_an_error(on: str) -> None:
    row = {"a": MOST, "b": 0, "low": MOST, "high": MOST}
    table = Merging(KINDS["long"], [{**row, "n": 0, "x": 0}])
    with pytest.raises(InvalidInputError, match="overflows long"):
        table.merge([{**row, "m": 0, "x": 0}], Condition(on, lambda t, s: False), [UPDATE])
