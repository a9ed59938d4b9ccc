"""Expressions in DuckDB's SQL have the values, the types and the errors of `evaluate`."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, TextRules, nodes, parse_sql, resolve
from deltalog.expressions.sql_session import SqlSession
from deltalog.expressions.trees import walk
from deltalog.query.duckdb_expressions import _FUNCTIONS, _NODES, to_duckdb
from deltalog.query.running import evaluated
from deltalog.schema import StructType, from_arrow_schema
from tests.support.examples import examples

_EXACT: Final = Context(prec=80)
_UTC: Final = pa.timestamp("us", "UTC")
_NTZ: Final = pa.timestamp("us")
_SESSION: Final = SqlSession(now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC), time_zone="UTC")
_DATABASE: Final = duckdb.connect(config={"threads": "1"})
_DATABASE.execute("SET GLOBAL TimeZone = 'UTC'")


# --- Rows


def _whole(bits: int) -> st.SearchStrategy[int]:
    most = (1 << (bits - 1)) - 1
    edges = st.sampled_from([0, 1, -1, 2, most, most - 1, -most, -most - 1])
    return st.one_of(edges, st.integers(-9, 9), st.integers(-most - 1, most))


_DOUBLES: Final = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.5, 100.0, math.nan, math.inf, -math.inf, 5e-324, 1e308]),
    st.floats(),
)
# Quotes, wildcards, a backslash, a combining accent, a character outside of the first plane.
_LETTERS: Final = "ab'\"%_\\e\u0301\u00e9\U0001f600 \n"
_STRINGS: Final = st.text(_LETTERS + "\0", max_size=6)
_VALUES: Final[Mapping[Any, st.SearchStrategy[Any]]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): _whole(8),
    pa.int16(): _whole(16),
    pa.int32(): _whole(32),
    pa.int64(): _whole(64),
    pa.float32(): st.one_of(st.floats(width=32), st.sampled_from([math.nan, -0.0, math.inf])),
    pa.float64(): _DOUBLES,
    pa.string(): _STRINGS,
    pa.date32(): st.one_of(st.integers(-12_000_000, 10_000_000), st.sampled_from([0, -719_529])),
    _UTC: _whole(64),
    _NTZ: _whole(64),
}
_STORED: Final = {pa.date32(): pa.int32(), _UTC: pa.int64(), _NTZ: pa.int64()}
_COLUMNS: Final[Mapping[str, Any]] = {
    "b": pa.bool_(), "b2": pa.bool_(), "i8": pa.int8(), "i16": pa.int16(), "i": pa.int32(),
    "i2": pa.int32(), "l": pa.int64(), "l2": pa.int64(), "f": pa.float32(), "x": pa.float64(),
    "x2": pa.float64(), "s": pa.string(), "s2": pa.string(), "day": pa.date32(),
    "day2": pa.date32(), "t": _UTC, "t2": _UTC, "n": _NTZ, "n2": _NTZ,
}  # fmt: skip


def _decimals(kind: Any) -> st.SearchStrategy[Decimal]:
    most = 10**kind.precision - 1
    near = min(most, 99)
    numbers = st.one_of(
        st.sampled_from([0, 1, -1, most, -most]),
        st.integers(-near, near),
        st.integers(-most, most),
    )
    return numbers.map(lambda number: Decimal(number).scaleb(-kind.scale, _EXACT))


@st.composite
def _decimal_types(draw: st.DrawFn) -> Any:
    precision = draw(st.one_of(st.integers(1, 9), st.integers(1, 38), st.just(38)))
    return pa.decimal128(precision, draw(st.integers(0, precision)))


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Some rows, with two columns of decimals of any type."""
    rows = draw(st.integers(1, 4))
    kinds = {**_COLUMNS, "d": draw(_decimal_types()), "d2": draw(_decimal_types())}
    arrays = []
    for kind in kinds.values():
        value = _decimals(kind) if pa.types.is_decimal(kind) else _VALUES[kind]
        values = draw(st.lists(st.one_of(st.none(), value), min_size=rows, max_size=rows))
        stored = pa.array(values, _STORED.get(kind, kind))
        arrays.append(stored.view(kind) if kind in _STORED else stored)
    return pa.RecordBatch.from_arrays(arrays, list(kinds))


# --- Expressions in Spark's SQL, by type


def _chosen(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


def _filled(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda found: template.format(*found))


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


_LEAVES: Final[Mapping[str, st.SearchStrategy[str]]] = {
    "boolean": _chosen("b", "b2", "true", "false", "CAST(NULL AS BOOLEAN)"),
    "int": st.one_of(
        _chosen("i", "i2", "CAST(i8 AS INT)", "CAST(i16 AS INT)", "CAST(NULL AS INT)"),
        st.integers(-3, 3).map(str),
        _chosen("2147483647", "-2147483648"),
    ),
    "bigint": st.one_of(
        _chosen("l", "l2", "CAST(i AS BIGINT)", "9223372036854775807L", "CAST(NULL AS BIGINT)"),
        st.integers(-3, 3).map("{}L".format),
    ),
    "double": _chosen(
        "x", "x2", "CAST(f AS DOUBLE)", "CAST(i AS DOUBLE)", "CAST(l AS DOUBLE)", "1.5D", "0D",
        "-1e300D", "CAST(NULL AS DOUBLE)", "CAST(d AS DOUBLE)",
    ),
    "decimal": _chosen(
        "d", "d2", "0.5", "1.00", "-12.345", "CAST(NULL AS DECIMAL(10,2))",
        "CAST(i AS DECIMAL(10,0))", "CAST(l AS DECIMAL(20,1))", "CAST(i AS DECIMAL(5,2))",
        "CAST(d AS DECIMAL(38,9))", "CAST(d2 AS DECIMAL(38,0))",
        "99999999999999999999999999999999999999BD",
    ),
    "string": st.one_of(
        _chosen("s", "s2", "''", "CAST(NULL AS STRING)"),
        st.text(_LETTERS, max_size=3).map(_quoted),
    ),
    "date": _chosen("day", "day2", "DATE '2020-02-29'", "DATE '0001-01-01'", "DATE '9999-12-31'"),
    "timestamp": _chosen(
        "t", "t2", "TIMESTAMP '2020-02-29 12:30:01.000001Z'", "TIMESTAMP '0001-01-01 00:00:00Z'"
    ),
    "timestamp_ntz": _chosen("n", "n2", "TIMESTAMP_NTZ '2020-02-29 12:30:01.000001'"),
}  # fmt: skip
_COMPARISONS: Final = _chosen("=", "<>", "<", "<=", ">", ">=", "<=>")
_PATTERNS: Final = st.text("ab%_'e\u0301\U0001f600", max_size=5).map(_quoted)


def _larger(depth: int) -> Mapping[str, st.SearchStrategy[str]]:
    """The expressions of each type with at most this number of levels."""
    if depth == 0:
        return _LEAVES
    inner = _larger(depth - 1)
    boolean = inner["boolean"]
    pairs = [
        *((one, one) for one in inner),
        ("int", "bigint"),
        ("int", "decimal"),
        ("double", "int"),
        ("decimal", "double"),
    ]
    compared = [
        _filled("({} {} {})", inner[one], _COMPARISONS, inner[other]) for one, other in pairs
    ]
    found: dict[str, list[st.SearchStrategy[str]]] = {
        kind: [
            leaf,
            _filled("CASE WHEN {} THEN {} ELSE {} END", boolean, inner[kind], inner[kind]),
            _filled("CASE WHEN {} THEN {} END", boolean, inner[kind]),
            _filled("coalesce({}, {})", inner[kind], inner[kind]),
        ]
        for kind, leaf in _LEAVES.items()
    }
    found["boolean"] += [
        *compared,
        st.one_of([_filled("({} IN ({}, {}))", one, one, one) for one in inner.values()]),
        st.one_of([_filled("({} IS NULL)", one) for one in inner.values()]),
        _filled("(NOT {})", boolean),
        _filled("({} AND {})", boolean, boolean),
        _filled("({} OR {})", boolean, boolean),
        _filled("({} AND {} AND {})", boolean, boolean, boolean),
        _filled("({} LIKE {})", inner["string"], _PATTERNS),
    ]
    for kind in ("int", "bigint", "double", "decimal"):
        operators = _chosen("+", "-", "*", *(["/"] * (kind in {"double", "decimal"})))
        found[kind].append(_filled("({} {} {})", inner[kind], operators, inner[kind]))
    found["decimal"] += [
        _filled("({} + {})", inner["decimal"], inner["int"]),
        _filled("({} / {})", inner["decimal"], inner["int"]),
        _filled("round({}, {})", inner["decimal"], _chosen("0", "1", "2", "5", "-1")),
        _filled("abs({})", inner["decimal"]),
        _filled("CAST({} AS {})", inner["decimal"], _DECIMALS),
        _filled("({} / nullif({}, 0))", inner["decimal"], inner["decimal"]),
    ]
    found["double"] += [
        _filled("abs({})", inner["double"]),
        _filled("CASE WHEN x > 0 THEN {} / x ELSE {} END", inner["double"], inner["double"]),
        _filled("CASE x2 WHEN 0 THEN {} ELSE {} / x2 END", inner["double"], inner["double"]),
    ]
    found["date"].append(_filled("date_add({}, {})", inner["date"], inner["int"]))
    found["int"] += [
        _filled("{}({})", _chosen("year", "quarter", "month", "day"), inner["date"]),
        _filled("length({})", inner["string"]),
        _filled("CAST({} AS INT)", inner["decimal"]),
    ]
    found["string"] += [
        _filled("concat({}, {})", inner["string"], inner["string"]),
        _filled("({} || {})", inner["string"], inner["string"]),
        _filled("substring({}, {}, {})", inner["string"], _STARTS, _LENGTHS),
        _filled("substring({}, {})", inner["string"], _STARTS),
        _filled("{}({})", _chosen("lower", "upper"), inner["string"]),
    ]
    return {kind: st.one_of(some) for kind, some in found.items()}


_DECIMALS: Final = _chosen("DECIMAL(5,2)", "DECIMAL(38,0)", "DECIMAL(38,37)", "DECIMAL(1,1)")
_STARTS: Final = _chosen("1", "2", "3", "7", "2147483647")
_LENGTHS: Final = _chosen("0", "1", "2", "2147483647")
_EXPRESSIONS: Final = st.one_of(*_larger(1).values(), *_larger(2).values())


# --- Laws


def _resolved(text: str, schema: StructType) -> Expression:
    return resolve(parse_sql(text), schema, _SESSION, text_rules=TextRules.VALUES)


def _sql(text: str, schema: pa.Schema) -> str | None:
    own = from_arrow_schema(schema)
    columns = {name: f'"{name}"' for name in own.names}
    return to_duckdb(_resolved(text, own), own, columns).text


def _answer(query: str, batch: pa.RecordBatch) -> pa.Table:
    cursor = _DATABASE.cursor()
    cursor.register("given", pa.table(batch))
    # DuckDB asks pyarrow for filters of registered tables, so the rows become DuckDB's own.
    cursor.execute("CREATE OR REPLACE TEMP TABLE rows AS FROM given")
    found: pa.Table = cursor.sql(query).to_arrow_table()
    return found


def _bits(values: Any) -> list[Any]:
    """Values that are equal only if they are the same, also for dates that Python lacks."""
    kind = values.type
    if kind in _STORED:
        return list(values.cast(_STORED[kind]).to_pylist())
    if pa.types.is_floating(kind):
        return [
            one if one is None else "nan" if math.isnan(one) else struct.pack("<d", one)
            for one in values.to_pylist()
        ]
    return list(values.to_pylist())


def check_same(text: str, batch: pa.RecordBatch) -> bool:
    """Compare DuckDB with `evaluate`; return whether DuckDB computes the expression.

    Rows for which a guard is false are left out, as `evaluate` computes them.
    """
    schema = from_arrow_schema(batch.schema)
    try:
        resolved = _resolved(text, schema)
    except InvalidInputError:  # such as types without a common one
        return False
    found = to_duckdb(resolved, schema, {name: f'"{name}"' for name in schema.names})
    if found.text is None:
        return False
    if found.guards:
        guards = " AND ".join(found.guards)
        tested = _answer(f"SELECT ({guards}) IS NOT FALSE AS kept FROM rows", batch)  # noqa: S608  # our own text
        kept: Any = tested.column("kept").combine_chunks()
        batch = batch.filter(kept)
        if not batch.num_rows:
            return True
    sql = found.text
    try:
        wanted = evaluated(resolved, batch)
    except InvalidInputError:
        with pytest.raises(duckdb.Error):
            _answer(f"SELECT {sql} AS found FROM rows", batch)  # noqa: S608  # our own text
        return True
    answer = _answer(f"SELECT {sql} AS found FROM rows", batch)  # noqa: S608  # our own text
    column = answer.column("found").combine_chunks()
    assert column.type == wanted.type, sql
    assert _bits(column) == _bits(wanted), sql
    if pa.types.is_boolean(wanted.type):  # a filter is optimized in other ways
        passed = _answer(f"SELECT count(*) FROM rows WHERE {sql}", batch)  # noqa: S608  # as above
        assert passed.column(0).to_pylist() == [wanted.to_pylist().count(True)], sql
    return True


@given(text=_EXPRESSIONS, batch=batches())
@settings(max_examples=examples(1_000))
def test_duckdb_computes_what_evaluate_computes(text: str, batch: pa.RecordBatch) -> None:
    event(f"translated: {check_same(text, batch)}")


# --- What is translated, and what is not

_KINDS: Final[Mapping[str, Any]] = {
    **_COLUMNS,
    "d": pa.decimal128(7, 2),
    "d2": pa.decimal128(15, 4),
    "wide": pa.decimal128(38, 10),
    "bytes": pa.binary(),
    "row": pa.struct([("in", pa.int32()), ('a "b', pa.string())]),
    "many": pa.list_(pa.int32()),
}
_SCHEMA: Final = pa.schema(list(_KINDS.items()))
_FIVE: Final[Mapping[Any, Sequence[Any]]] = {
    pa.bool_(): [True, False, None, True, False],
    pa.int8(): [0, -128, None, 127, 1],
    pa.int16(): [0, -32768, None, 32767, 1],
    pa.int32(): [3, -7, None, 12, 0],
    pa.int64(): [3, -(2**53) - 1, None, 2**53 + 1, 0],
    pa.float32(): [0.1, math.nan, None, -0.0, math.inf],
    pa.float64(): [0.5, math.nan, None, -0.0, math.inf],
    pa.string(): ["it's 100%", "e\u0301\u00e9\U0001f600", None, "", "a_b\0c\\d"],
    pa.binary(): [b"\0", b"a", None, b"", b"\xff"],
    pa.date32(): [0, -719_529, None, 2_932_896, 18_321],
    _UTC: [0, -1, None, 253_402_300_799_999_999, 2**62],
    _NTZ: [1, -2, None, 253_402_300_799_999_999, 2**62],
}


def _five_rows() -> pa.RecordBatch:
    """Rows in which each column has a NULL; a second column of a type has another order."""
    arrays = []
    for place, (name, kind) in enumerate(_KINDS.items()):
        if pa.types.is_decimal(kind):
            most = Decimal(10**kind.precision - 1).scaleb(-kind.scale, _EXACT)
            values: Sequence[Any] = [Decimal(0), most, None, most.copy_negate(), Decimal("1.5")]
        elif name == "row":
            values = [{"in": 1, 'a "b': "x"}, {"in": None, 'a "b': None}, None] * 2
        elif name == "many":
            values = [[1], [], None, [None], [1, 2]]
        else:
            values = _FIVE[kind]
        turn = 0 if place % 2 else 1
        values = [*values[turn:5], *values[:turn]]
        stored = pa.array(values, _STORED.get(kind, kind))
        arrays.append(stored.view(kind) if kind in _STORED else stored)
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


_ROWS: Final = _five_rows()
_TRANSLATED: Final = (
    # each kind of node
    "i",
    "row.`in`",
    'row.`a "b`',
    "b AND b2",
    "b OR b2 OR i > 3",
    "NOT b",
    "i IS NULL",
    "i IS NOT NULL",
    "many IS NULL",
    "i <=> i2",
    "i <> i2",
    "i = NULL",
    "x >= x2",
    "s < s2",
    "bytes <= bytes",
    "f = f",
    "i IN (1, 2, NULL)",
    "s NOT IN ('a', 'it\\'s')",
    "x IN (x2, 0.5D)",
    "x IN (0D, 1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 9D, 10D, 11D, 12D, 13D, 14D, 15D, 16D)",
    "x NOT IN (0D, 1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 9D, 10D, 11D, 12D, 13D, 14D, NULL)",
    "s IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', '', 'e\u0301\u00e9\U0001f600')",
    "s LIKE '%_b%'",
    "s NOT LIKE '__\U0001f600'",
    "s LIKE 'it\\'s%'",
    "CASE WHEN b THEN i ELSE i2 END",
    "CASE WHEN b THEN d END",
    "CASE i WHEN 3 THEN 'three' WHEN 12 THEN 'twelve' ELSE '' END",
    "CASE WHEN i = 0 THEN 0 ELSE i * 2 END",
    "b AND i * 2 > 3",
    "b OR i * 2 > 3 OR b2",
    # constants of each type
    "CASE WHEN b THEN true ELSE false END",
    "CAST(NULL AS DATE)",
    "day = DATE '2020-02-29'",
    "t < TIMESTAMP '2020-01-01 00:00:00+02:00'",
    "n < TIMESTAMP_NTZ '2020-01-01 00:00:00'",
    "coalesce(x, -1.5e300D)",
    "coalesce(s, 'it\\'s \"so\" \u00e9')",
    "coalesce(l, -9223372036854775807L)",
    "coalesce(d, 1.25)",
    # arithmetic
    "i + i2",
    "i - 1",
    "i * i2",
    "l * 2L",
    "x + x2",
    "x - x2",
    "x * x2",
    "x / 2D",
    "i / 2",
    "x / (CASE WHEN x2 = 0 THEN 1D ELSE x2 END)",
    "d + d2",
    "d - d2",
    "d * d2",
    "d * 2",
    "d + i",
    "d < wide",
    "d * d > 1.5",
    "CAST(d2 AS DECIMAL(18,4)) * CAST(d2 AS DECIMAL(18,4))",
    "CAST(d2 AS DECIMAL(18,4)) + CAST(d2 AS DECIMAL(18,4))",
    "-1 * CAST(d2 AS DECIMAL(18,4)) - CAST(d2 AS DECIMAL(18,4))",
    "d2 * d2",
    "d / d2",
    "d / 3",
    "1 / d",
    "(d - 1) / 7.125",
    # casts
    "CAST(i8 AS SMALLINT)",
    "CAST(i8 AS INT)",
    "CAST(i16 AS BIGINT)",
    "CAST(i AS BIGINT)",
    "CAST(i AS DOUBLE)",
    "CAST(l AS DOUBLE)",
    "CAST(f AS DOUBLE)",
    "CAST(i AS DECIMAL(10,0))",
    "CAST(i AS DECIMAL(5,2))",
    "CAST(l AS DECIMAL(38,2))",
    "CAST(d AS DECIMAL(20,4))",
    "CAST(d AS DOUBLE)",
    "CAST(d2 AS DOUBLE)",
    # functions
    "coalesce(i, i2, 0)",
    "concat(s, '-', s2)",
    "round(d)",
    "round(d, 1)",
    "round(d2, 0)",
    "s || s2",
    "length(s)",
    "substring(s, 1, 2)",
    "substring(s, 2)",
    "substr(s, 3, 0)",
    "substring(s, 2147483647, 2147483647)",
    "year(day)",
    "quarter(day)",
    "month(day)",
    "day(day)",
    "dayofmonth(day)",
    "abs(d)",
    "abs(x)",
    "lower(s)",
    "upper(s)",
    "wide * wide",
    "wide / d",
    "d / wide",
    "CAST(d2 AS DECIMAL(15,2))",
    "CAST(d2 AS DECIMAL(12,4))",
    "CAST(d2 AS INT)",
    "day + 5",
    "date_add(day, i)",
    "CASE WHEN x > 0 THEN x2 / x ELSE NULL END",
    "CASE x WHEN 0 THEN NULL ELSE x2 / x END",
    "d / nullif(d2, 0)",
    "b AND CASE WHEN d > 0 THEN d2 / d ELSE NULL END > 1 AND b2",
    "b AND upper(s) = 'A' AND i > 1",
)
_NOT_TRANSLATED: Final = (
    # DuckDB divides, and takes remainders, of other types
    "((d / d2) / (d / d2)) / (d / d2)",  # would be long
    "d % d2",
    "i % i2",
    "x % x2",
    "div(i, i2)",
    # types that DuckDB adds in another type
    "i8 + i8",
    "i16 * i16",
    "f + f",
    # Spark rounds
    "wide + CAST(d AS DECIMAL(38,0))",
    # casts that lose something, or that write texts
    "CAST(i AS STRING)",
    "CAST(s AS INT)",
    "CAST(day AS STRING)",
    "CAST(x AS INT)",
    "CAST(x AS FLOAT)",
    "CAST(l AS INT)",
    "CAST(x AS DECIMAL(10,2))",
    "CAST(i AS FLOAT)",
    "CAST(wide AS DOUBLE)",
    "CAST(day AS TIMESTAMP)",
    "CAST(t AS DATE)",
    "CAST(t AS TIMESTAMP_NTZ)",
    "CAST(b AS INT)",
    "TRY_CAST(i AS DECIMAL(5,2))",
    # what may fail where Spark does not evaluate it
    "date_add(date_add(day, i), 1)",
    "wide / 3 / 3",
    "CASE WHEN d <> 0 THEN d2 / CAST(d AS DECIMAL(5,0)) END",  # 0.4 becomes 0
    "coalesce(i, i2 * 2)",
    "coalesce(1D / x, x2)",
    # constants of other types
    "f < CAST(0.1 AS FLOAT)",
    "coalesce(f, 0.5F)",
    "x = CAST('NaN' AS DOUBLE)",
    "x < CAST('Infinity' AS DOUBLE)",
    "bytes = X'00'",
    "s = 'a\\0b'",
    # comparisons of other types, and with no type
    "row = row",
    "many = many",
    "day = n",
    "t = n",
    "CASE WHEN b THEN many END = many",
    # patterns
    "s LIKE 'a\\\\_b'",
    "s LIKE s2",
    "s ILIKE 'a%'",
    "s LIKE 'a#_b' ESCAPE '#'",
    "s RLIKE 'a.*'",
    # positions before the first character, and positions that are not constants
    "substring(s, 0, 2)",
    "substring(s, -1, 2)",
    "substring(s, -2)",
    "substring(s, 1, -1)",
    "substring(s, i, 2)",
    "substring(s, 1, i)",
    # functions of other types, and other functions
    "substring(bytes, 1, 2)",
    "length(bytes)",
    "concat(bytes, bytes)",
    "concat(many, many)",
    "concat()",
    "year(t)",
    "month(n)",
    "day(s)",
    "round(x, 1)",
    "round(d, 2)",
    "round(d, -1)",
    "abs(i)",
    "many[0]",
)


@pytest.mark.parametrize("text", _TRANSLATED)
def test_an_expression_is_translated_and_the_same(text: str) -> None:
    assert check_same(text, _ROWS)


@pytest.mark.parametrize("text", _NOT_TRANSLATED)
def test_an_expression_is_left_to_evaluate(text: str) -> None:
    assert _sql(text, _SCHEMA) is None


def test_each_node_and_each_function_has_an_example() -> None:
    schema = from_arrow_schema(_SCHEMA)
    found = [one for text in _TRANSLATED for one in walk(_resolved(text, schema))]
    assert {type(one) for one in found} >= set(_NODES)
    assert {one.function for one in found if isinstance(one, nodes.Call)} >= set(_FUNCTIONS)


# --- Errors: what Spark does not evaluate cannot fail, and all else can

_LARGE: Final[dict[str, Any]] = {
    "i": [2**31 - 1, None],
    "i2": [None, 2**31 - 1],
    "x": [None, None],
    "z": [0.0] * 2,
    "k": [2**31 - 1] * 2,
}


def _large() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array(values, pa.float64() if name in {"x", "z"} else pa.int32())
            for name, values in _LARGE.items()
        ],
        list(_LARGE),
    )


@pytest.mark.parametrize(
    "text",
    [
        "i IS NULL AND i * i > 3",
        "i * i > 3 AND i IS NULL",
        "i > 0 OR i * i > 3",
        "i * i > 3 OR i > 0",
        "i IS NOT NULL OR i2 * i2 > 3 OR i * i > 3",
        "i IS NULL AND (i2 > 5 AND i * i > 3)",
        "CASE WHEN i > 0 THEN 0 ELSE i * i END",
        "CASE WHEN i < 0 THEN i * i END",
        "CASE WHEN i * i > 0 THEN 0 END",
        "i * i",
        "i + 1",
        "i * i IS NULL",
        "k * k IS NULL",
        "k * k IS NOT NULL",
        "i * i = CAST(NULL AS INT)",
        "CAST(i AS DECIMAL(5,2)) >= CAST(NULL AS DECIMAL(5,2))",
        "i2 = i * i",
        "i2 + i * i",
        "i2 IN (i * i)",
        "i IN (i, i * i)",
        "x = 1D / z",
        "x / z",
        "x + 1D / z",
        "z / z",
        "length(CASE WHEN i * i > 0 THEN 'a' END)",
        "NOT (i * i > 0)",
        "i * i <=> i2",
        "i2 <=> i * i",
        # DuckDB moves constants to the other side, and leaves out what is multiplied by zero
        "k * 4 > 0",
        "4 * k > 0",
        "k + 2147483647 > 0",
        "2147483647 + k <> 3",
        "-2147483647 - k < 7",
        "CAST(k * 4 AS BIGINT) > 0L",
        "k * 4 + 1 = 5",
        "(k * 4) * 0 = 0",
        "0 * (k * 4)",
        "CAST(k AS DECIMAL(5,2)) * 0",
        "CAST(k AS DECIMAL(5,2)) * 0.00 = 0",
        "1D / z * 0D",
    ],
)
def test_an_error_is_raised_where_spark_raises_it(text: str) -> None:
    check_same(text, _large())


@pytest.mark.parametrize("sign", ["+", "-"])
def test_decimals_that_only_the_result_fits(sign: str) -> None:
    # The left side has 33 digits before the point; the result's type has 32.
    left = pa.array([Decimal(10) ** 32], pa.decimal128(38, 5))
    right = pa.array([Decimal(-1) if sign == "+" else Decimal(1)], pa.decimal128(37, 6))
    check_same(f"d {sign} d2", pa.RecordBatch.from_arrays([left, right], ["d", "d2"]))


# --- Days outside of the years that `evaluate` computes


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970: the calendar repeats in 400 years."""
    cycles, rest = divmod(days + 719_162, 146_097)
    found = dt.date.fromordinal(rest + 1)
    return found.year + 400 * cycles, found.month, found.day


@given(days=st.one_of(_whole(32), st.sampled_from([2**31 - 2, -(2**31) + 2])))
@example(days=2**31 - 1)
@example(days=-(2**31) + 1)
@example(days=-(2**31))
@settings(max_examples=examples(200))
def test_each_day_has_its_parts(days: int) -> None:
    schema = pa.schema([("day", pa.date32())])
    batch = pa.RecordBatch.from_arrays([pa.array([days], pa.int32()).view(pa.date32())], ["day"])
    texts = [_sql(f"{name}(day)", schema) for name in ("year", "quarter", "month", "day")]
    found = _answer(f"SELECT {', '.join(map(str, texts))} FROM rows", batch)  # noqa: S608  # as above
    year, month, day = _civil(days)
    assert [column[0].as_py() for column in found.columns] == [
        year, (month + 2) // 3, month, day,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["CAST(i AS DECIMAL(5,2)) / nullif(d, 0)", "CAST(i AS DECIMAL(5,2)) / d"]
)
def test_a_dividend_is_not_computed_for_a_divisor_that_is_null(text: str) -> None:
    kinds = {"i": pa.int32(), "d": pa.decimal128(3, 0)}
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([1000, 7, None], kinds["i"]),
            pa.array([None, Decimal(2), Decimal(1)], kinds["d"]),
        ],
        list(kinds),
    )
    assert check_same(text, batch)
    resolved = _resolved(text, from_arrow_schema(batch.schema))
    assert evaluated(resolved, batch).to_pylist()[0] is None
