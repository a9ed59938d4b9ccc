from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.expressions import Expression, col, filter_mask, lit, resolve_predicate
from deltalog.expressions.comparing import compare
from deltalog.expressions.nodes import COMPARISONS, Comparison, Not
from deltalog.protocol.column_mapping import Mode
from deltalog.protocol.stats.collect import (
    StatsCollector,
    encode_stats,
    encode_stats_column,
    truncate_max,
    truncate_min,
)
from deltalog.protocol.stats.parse import parse_stats
from deltalog.protocol.stats.ranges import Facts, Stored
from deltalog.protocol.stats.schema import indexed_columns, schema_of_leaves, stats_schema
from deltalog.protocol.stats.skipping import plan_skipping
from deltalog.schema import Field, StructType, leaf_columns, to_arrow_schema
from tests.support.examples import examples


@dataclass(frozen=True)
class FakeTable:
    schema: StructType
    partition_columns: tuple[str, ...] = ()
    column_mapping_mode: Mode = Mode.NONE


SCHEMA = StructType(
    [
        Field("i", "integer"),
        Field("x", "long"),
        Field("f", "double"),
        Field("g", "float"),
        Field("s", "string"),
        Field("t", "timestamp"),
        Field("n", "timestamp_ntz"),
        Field("d", "date"),
        Field("c", "decimal(20,2)"),
        Field("st", StructType([Field("a", "integer")])),
        Field("p", "integer"),
    ]
)
TABLE = FakeTable(SCHEMA, ("p",))
DATA_SCHEMA = StructType(SCHEMA.fields[:-1])

texts = st.text(st.sampled_from("aab%_é\x7f\uffff😀\U0010ffff"), max_size=36)
# Close to each other, so that what is cut off a bound decides.
near = st.sampled_from([-1000, -1, 0, 1, 999, 1000]).map(
    lambda micros: dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)  # noqa: DTZ001
)
moments = near | st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))  # noqa: DTZ001
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-3, 3) | st.integers(-(2**31), 2**31 - 1),
    "x": st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
    "f": st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf")]) | st.floats(),
    "g": st.sampled_from([0.0, -0.0, float("nan")]) | st.floats(width=32),
    "s": texts | st.text("ab", max_size=3),
    "t": moments.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    "n": moments,
    "d": st.dates(dt.date(1970, 1, 1), dt.date(1970, 1, 9)) | st.dates(),
    "c": st.integers(-(10**20) + 1, 10**20 - 1).map(lambda units: Decimal(units).scaleb(-2)),
    "st.a": st.integers(-2, 2),
    "p": st.integers(0, 2),
}


@st.composite
def files(draw: st.DrawFn) -> list[pa.Table]:
    """Some files of some rows; the partition column has one value in each."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, 4))

        def column(name: str, count: int = count) -> list[Any]:
            narrow = draw(st.booleans())  # files of few values are the ones that get skipped
            options = VALUES[name] | st.none() if draw(st.booleans()) else VALUES[name]
            if narrow:
                return [draw(options)] * count
            return draw(st.lists(options, min_size=count, max_size=count))

        columns = {field.name: column(field.name) for field in DATA_SCHEMA if field.name != "st"}
        inner = column("st.a")
        columns["st"] = [None if a == 2 else {"a": a} for a in inner]
        columns["p"] = [draw(VALUES["p"] | st.none())] * count
        found.append(pa.table(columns, schema=to_arrow_schema(SCHEMA)))
    return found


@st.composite
def conditions(draw: st.DrawFn) -> Expression:
    """One comparison of any kind."""
    name = draw(st.sampled_from(list(VALUES)))
    column = col(name)
    constant = draw(VALUES[name])
    match draw(st.integers(0, 9)):
        case 0:
            return column.is_null()
        case 1:
            return column.is_not_null()
        case 2:
            return column.is_in(draw(st.lists(VALUES[name] | st.none(), min_size=1, max_size=20)))
        case 3 if name == "s":
            return column.like(draw(st.text("ab%_é", max_size=4)))
        case 4 if name == "s":
            return column.starts_with(draw(texts))
        case 5 if name in {"i", "x"}:
            other = col(draw(st.sampled_from(["i", "x", "f", "st.a", "p"])))
            return column < other if draw(st.booleans()) else column == other
        case 6 if name == "t":
            return Comparison(">=", column.cast("date"), lit(draw(VALUES["d"])))
        case 7 if name in {"i", "g"}:
            return Comparison("<=", column.cast("double"), lit(draw(VALUES["f"])))
        case 8:
            return column.equals_null_safe(draw(VALUES[name] | st.none()))
        case _:
            operator = draw(st.sampled_from(sorted(COMPARISONS)))
            return Comparison(operator, column, lit(constant))


predicates = st.recursive(
    conditions(),
    lambda inner: (
        st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1])
        | st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1])
        | inner.map(Not)
    ),
    max_leaves=4,
)


def statistics(table: pa.Table) -> str:
    collector = StatsCollector(DATA_SCHEMA)
    for batch in table.to_batches(max_chunksize=2):
        collector.update(batch)
    return encode_stats(collector.finish())


@pytest.mark.protocol("STAT-02", "STAT-04", "D-12", "D-13", "D-14", "D-15")
@given(files(), predicates)
@settings(deadline=None, max_examples=examples(100))
def test_skipping_never_loses_a_row(tables: list[pa.Table], predicate: Expression) -> None:
    resolved = resolve_predicate(predicate, SCHEMA)
    skipping = plan_skipping(resolved, TABLE)
    if skipping is None:
        return
    stats = parse_stats(pa.array([statistics(table) for table in tables]), skipping.stats_schema)
    partitions = pa.concat_tables([table.select(["p"]).slice(0, 1) for table in tables])
    kept = skipping.keep(stats, partitions).to_pylist()
    for table, is_kept in zip(tables, kept, strict=True):
        matches = filter_mask(resolved, table).to_pylist().count(True)
        assert is_kept or not matches


@pytest.mark.protocol("STAT-03", "STAT-07", "D-12", "D-13", "D-14", "D-15")
@given(files())
@settings(deadline=None, max_examples=examples(25))
def test_every_value_lies_within_the_corrected_bounds(tables: list[pa.Table]) -> None:
    schema = stats_schema(indexed_columns(DATA_SCHEMA))
    for table in tables:
        facts = Facts(parse_stats(pa.array([statistics(table)]), schema), None)
        for path, field in leaf_columns(DATA_SCHEMA):
            values: Any = table.column(path[0])
            for name in path[1:]:
                values = pc.struct_field(values, name)
            column = Stored(field.name, path, field)
            for operator, end in (("<=", column.lower(facts)), (">=", column.upper(facts))):
                holds = compare(operator, end[0], values.combine_chunks()).to_pylist()
                assert False not in holds


@pytest.mark.protocol("STAT-06", "D-12")
@given(st.text(max_size=200) | texts, st.integers(0, 40))
@settings(deadline=None)
def test_cut_texts_are_bounds(text: str, length: int) -> None:
    if any("\ud800" <= char <= "\udfff" for char in text):
        return
    assert truncate_min(text, length).encode() <= text.encode()
    highest = truncate_max(text, length)
    assert highest is None or highest.encode() >= text.encode()
    if len(text.encode("utf-16-le")) // 2 <= length:
        assert highest == truncate_min(text, length) == text


@pytest.mark.protocol("STAT-01", "STAT-14")
@given(files())
@settings(deadline=None, max_examples=examples(20))
def test_statistics_survive_their_json(tables: list[pa.Table]) -> None:
    schema = stats_schema(indexed_columns(DATA_SCHEMA), tight_bounds=False)
    written = [statistics(table) for table in tables]
    parsed = parse_stats(pa.array(written), schema)
    again = parse_stats(encode_stats_column(parsed), schema)
    assert again.equals(parsed) or str(again.to_pylist()) == str(parsed.to_pylist())
    assert parsed.column("numRecords").to_pylist() == [table.num_rows for table in tables]


good = st.integers(-5, 5).map(lambda x: (f'{{"minValues":{{"x":{x}}}}}', x))
floats = st.integers(-5, 5).map(lambda x: (f'{{"minValues":{{"x":{x}.0}}}}', x))
odd = st.sampled_from(
    ["", " ", "{", "}", "{}", "[]", '{"minValues":', "{}{}", "\n", '"x"', "NaN", '{"minValues":{}}']
).map(lambda text: (text, None))


@pytest.mark.protocol("D-63")
@given(st.lists(good | floats | odd | st.just((None, None)), max_size=60))
@settings(deadline=None)
def test_rows_stay_where_they_are_whatever_their_neighbours(
    rows: list[tuple[str | None, int | None]],
) -> None:
    schema = schema_of_leaves([(("minValues", "x"), pa.int64())])
    table = parse_stats(pa.array([text for text, _ in rows], pa.string()), schema)
    found = [(row["minValues"] or {}).get("x") for row in table.to_pylist()]
    assert found == [expected for _, expected in rows]
