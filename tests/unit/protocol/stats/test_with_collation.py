"""Statistics of texts that a collation compares: collected, stored, and what they rule out."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalog._util.json import loads
from deltalog.expressions import col, filter_mask, resolve_predicate
from deltalog.expressions.nodes import COMPARISONS, Call, Comparison, In, Literal, Not
from deltalog.protocol.stats.collect import StatsCollector, encode_stats, encode_stats_column
from deltalog.protocol.stats.parse import parse_stats
from deltalog.protocol.stats.schema import leaves_of_schema, stats_schema
from deltalog.protocol.stats.skipping import plan_skipping
from deltalog.schema import Field, StructType
from tests.support.collating import ALL, LCASE, collated, key
from tests.support.skipping import FakeTable, keep

VERSIONED = f"{LCASE}.78.3"
TABLE = FakeTable(StructType([collated("s", LCASE), Field("x", "long"), Field("t", "string")]))


def collect(field: Field, *values: list[Any], prefix_length: int = 32) -> dict[str, Any]:
    collector = StatsCollector(StructType([field]), prefix_length=prefix_length)
    for batch in values:
        collector.update(pa.record_batch([pa.array(batch, pa.string())], names=[field.name]))
    found: dict[str, Any] = loads(encode_stats(collector.finish()))
    return found


def with_bounds(low: str | None, high: str | None, *, collation: str = VERSIONED) -> str:
    bounds = {"minValues": {"s": low}, "maxValues": {"s": high}}
    given = {kind: value for kind, value in bounds.items() if value["s"] is not None}
    return json.dumps(
        {"numRecords": 9, "nullCount": {"s": 1}, "statsWithCollation": {collation: given}}
    )


@pytest.mark.protocol("B-62")
def test_bounds_are_those_of_the_collation() -> None:
    stats = collect(collated("s", LCASE), ["b", "A", None], ["C"])
    assert stats["statsWithCollation"] == {
        VERSIONED: {"minValues": {"s": "a"}, "maxValues": {"s": "c"}}
    }
    assert stats["minValues"] == stats["maxValues"] == {}
    assert stats["nullCount"] == {"s": 1}


def test_spaces_at_the_end_do_not_count() -> None:
    stats = collect(collated("s", "spark.UTF8_BINARY_RTRIM"), ["b  ", "B"])
    assert stats["statsWithCollation"]["spark.UTF8_BINARY_RTRIM.78.3"] == {
        "minValues": {"s": "B"}, "maxValues": {"s": "b"},
    }  # fmt: skip


@pytest.mark.parametrize("field", [collated("s", "icu.de"), Field("s", "string")])
def test_without_rules_there_are_none(field: Field) -> None:
    assert "statsWithCollation" not in collect(field, ["b", "A"])


def test_of_nothing_but_null_there_are_none() -> None:
    assert "statsWithCollation" not in collect(collated("s", LCASE), [None])


def test_fields_of_structs_have_them() -> None:
    schema = StructType([Field("st", StructType([collated("s", LCASE)]))])
    collector = StatsCollector(schema)
    collector.update(pa.table({"st": [{"s": "B"}, {"s": "a"}, None]}))
    assert collector.finish()["statsWithCollation"] == {
        VERSIONED: {"minValues": {"st": {"s": "a"}}, "maxValues": {"st": {"s": "b"}}}
    }


def test_collectors_of_parts_add_up() -> None:
    parts = [StatsCollector(StructType([collated("s", LCASE)])) for _ in range(2)]
    for part, values in zip(parts, (["B"], ["a", "C"]), strict=True):
        part.update(pa.table({"s": values}))
    parts[0].merge(parts[1])
    assert parts[0].finish()["statsWithCollation"][VERSIONED] == {
        "minValues": {"s": "a"}, "maxValues": {"s": "c"},
    }  # fmt: skip


def test_checkpoints_have_them_typed() -> None:
    schema = stats_schema([(("s",), collated("s", LCASE)), (("t",), Field("t", "string"))])
    leaves = [path for path, _ in leaves_of_schema(schema)]
    assert ("statsWithCollation", VERSIONED, "minValues", "s") in leaves
    assert ("minValues", "s") not in leaves
    texts = pa.array([with_bounds("a", "c"), "{}"])
    parsed = parse_stats(texts, schema)
    again = encode_stats_column(parsed)
    assert parse_stats(again, schema).equals(parsed)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("s = 'M'", True), ("s = 'Z'", False), ("s = 'b'", True), ("s = 'A'", False),
        ("s < 'B'", False), ("s <= 'B'", True), ("s > 'x'", False), ("s >= 'X'", True),
        ("s IN ('A', 'Y')", False), ("s IN ('A', 'C')", True), ("startswith(s, 'Bx')", True),
        ("startswith(s, 'y')", False), ("NOT startswith(s, 'B')", True), ("s IS NULL", True),
        ("s <=> 'z'", False), ("s <=> NULL", True), ("s <> 'B'", True), ("s = NULL", False),
        ("s COLLATE UTF8_BINARY = 'Z'", True), ("CAST(s AS STRING) = 'Z'", True),
        ("s COLLATE UTF8_LCASE_RTRIM = 'Z'", True), ("upper(s) = 'Z'", True),
        ("s = 'Z' OR x = 1", True), ("NOT s <> 'Z'", False), ("s BETWEEN 'Y' AND 'Z'", False),
    ],
)  # fmt: skip
@pytest.mark.protocol("B-62")
def test_what_bounds_rule_out(predicate: str, *, expected: bool) -> None:
    assert keep(predicate, with_bounds("B", "x"), table=TABLE) == [expected]


@pytest.mark.parametrize("predicate", ["s = 'Z'", "s > 'z'", "s IN ('Z')", "startswith(s, 'z')"])
@pytest.mark.parametrize(
    "stats",
    [
        with_bounds(None, None), with_bounds("b", "c", collation=f"{LCASE}.75.1"),
        with_bounds("b", "c", collation=LCASE), with_bounds("b", "c", collation="icu.UNICODE.78.3"),
        '{"numRecords":9,"minValues":{"s":"b"},"maxValues":{"s":"c"},"nullCount":{"s":1}}',
        '{"numRecords":9,"statsWithCollation":5}', "{}", None,
    ],
)  # fmt: skip
@pytest.mark.protocol("B-62")
def test_what_is_not_of_this_version_rules_out_nothing(predicate: str, stats: str | None) -> None:
    assert keep(predicate, stats, table=TABLE) == [True]


def test_one_bound_is_enough() -> None:
    assert keep("s > 'z'", with_bounds(None, "c"), table=TABLE) == [False]
    assert keep("s < 'a'", with_bounds("b", None), table=TABLE) == [False]


texts = st.text(
    st.sampled_from("aAbB\u0130iI\u03c2\u03a3\u03c3 \u0307é😀\U0010ffff\x7f"), max_size=5
)
conditions = st.one_of(
    st.builds(Comparison, st.sampled_from(sorted(COMPARISONS)), st.just(col("s")),
              texts.map(Literal)),
    st.lists(texts, min_size=1, max_size=20).map(
        lambda options: In(col("s"), tuple(map(Literal, options)))
    ),
    texts.map(lambda part: Call("startswith", (col("s"), Literal(part)))),
)  # fmt: skip


@given(
    st.sampled_from(ALL),
    st.lists(st.lists(st.none() | texts, max_size=4), min_size=1, max_size=3),
    conditions,
    st.booleans(),
    st.integers(0, 4),
)
@pytest.mark.protocol("B-62")
def test_skipping_never_loses_a_row(
    collation: str,
    files: list[list[Any]],
    condition: Any,
    negated: bool,
    prefix: int,
) -> None:
    field = collated("s", collation)
    table = FakeTable(StructType([field]))
    wanted = resolve_predicate(Not(condition) if negated else condition, table.schema)
    skipping = plan_skipping(wanted, table)
    stats = [json.dumps(collect(field, values, prefix_length=prefix)) for values in files]
    kept = (
        [True] * len(files)
        if skipping is None
        else skipping.keep(parse_stats(pa.array(stats), skipping.stats_schema)).to_pylist()
    )
    for values, is_kept in zip(files, kept, strict=True):
        rows = pa.table({"s": pa.array(values, pa.string())})
        assert is_kept or not any(filter_mask(wanted, rows).to_pylist())


@given(st.sampled_from(ALL), st.lists(texts, min_size=1), st.integers(0, 4))
def test_bounds_hold_every_text(collation: str, values: list[str], prefix: int) -> None:
    stats = collect(collated("s", collation), values, prefix_length=prefix)
    (bounds,) = stats["statsWithCollation"].values()
    low, high = bounds["minValues"]["s"], bounds.get("maxValues", {}).get("s")
    for value in values:
        assert key(low, collation) <= key(value, collation)
        assert high is None or key(value, collation) <= key(high, collation)
