from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from deltalog.data.write import WriterProperties, write_files
from deltalog.data.write.open_files import split
from deltalog.protocol.features.identity_columns import (
    MAX_VALUE,
    MIN_VALUE,
    IdentityColumn,
    next_values,
)
from deltalog.protocol.partition_values import encode_value
from deltalog.protocol.stats.collect import StatsCollector, encode_stats
from deltalog.schema import ArrayType, DataType, Field, MapType, PrimitiveType, StructType
from tests.property.schema_strategies import NAMES, PARTITION_TYPES, values
from tests.support.writes import read_back, spec_of, stats_of, table

LEAVES = PARTITION_TYPES | st.just(PrimitiveType("void"))
KEYS = st.sampled_from(["string", "long"]).map(PrimitiveType)


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    fields = st.lists(
        st.builds(Field, NAMES, inner), min_size=1, max_size=3, unique_by=lambda f: f.name.lower()
    )
    return fields.map(StructType)


NESTED: st.SearchStrategy[DataType] = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(ArrayType, inner.filter(lambda kind: not holds_only_void(kind)))
        | st.builds(MapType, KEYS, inner.filter(lambda kind: not holds_only_void(kind)))
        | structs(inner)
    ),
    max_leaves=4,
)


def holds_only_void(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(holds_only_void(field.type) for field in kind)
    return kind == PrimitiveType("void")


def has_empty_struct(kind: DataType) -> bool:
    """Whether a struct would have no field in files."""
    match kind:
        case StructType():
            return holds_only_void(kind) or any(has_empty_struct(field.type) for field in kind)
        case ArrayType():
            return has_empty_struct(kind.element_type)
        case MapType():
            return has_empty_struct(kind.value_type)
        case _:
            return False


def any_value(kind: DataType) -> st.SearchStrategy[Any]:
    match kind:
        case StructType():
            found: st.SearchStrategy[Any] = st.fixed_dictionaries(
                {field.name: any_value(field.type) for field in kind}
            )
        case ArrayType():
            found = st.lists(any_value(kind.element_type), max_size=3)
        case MapType():
            keys = values(kind.key_type) if isinstance(kind.key_type, PrimitiveType) else st.none()
            pairs = st.tuples(keys, any_value(kind.value_type))
            found = st.lists(pairs, max_size=2, unique_by=lambda pair: pair[0])
        case PrimitiveType() if kind.type != "void":
            found = values(kind)
        case _:
            return st.none()
    return st.none() | found


@st.composite
def tables(draw: st.DrawFn) -> tuple[StructType, list[dict[str, Any]]]:
    schema = draw(structs(NESTED))
    assume(not any(has_empty_struct(field.type) for field in schema))
    assume(not holds_only_void(schema))
    row = st.fixed_dictionaries({field.name: any_value(field.type) for field in schema})
    return schema, draw(st.lists(row, min_size=1, max_size=6))


def shown(rows: list[Any]) -> list[str]:
    """Rows as texts, in any order; NaN is itself, and floats are what 32 bits hold."""
    return sorted(map(repr, rows))


@pytest.mark.protocol("CM-08", "CM-09", "D-30", "SCH-07")
@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(tables(), st.sampled_from(["none", "name", "id"]), st.integers(1, 7), st.booleans())
def test_what_is_written_is_read(
    drawn: tuple[StructType, list[dict[str, Any]]], mode: str, batch_rows: int, tiny: bool
) -> None:
    schema, rows = drawn
    configuration = table(*schema, mapping=mode, features=["timestampNtz"])
    spec = spec_of(
        configuration,
        target_file_size_bytes=1 if tiny else 2**20,
        writer_properties=WriterProperties(max_row_group_size=2),
    )
    whole = pa.Table.from_pylist(rows, schema=configuration.arrow_schema)
    written = write_files(spec, whole.to_batches(max_chunksize=batch_rows))
    assert sum(stats["numRecords"] for stats in stats_of(written)) == len(rows)
    assert shown(read_back(spec, written).to_pylist()) == shown(whole.to_pylist())


@pytest.mark.protocol("ADD-12", "D-07", "PART-01")
@given(st.data())
def test_rows_of_a_group_share_their_texts(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(PARTITION_TYPES, min_size=1, max_size=3))
    fields = [Field(f"c{number}", kind) for number, kind in enumerate(kinds)]
    row = st.tuples(*(st.none() | values(kind) for kind in kinds))
    rows = data.draw(st.lists(row, max_size=12))
    schema = table(*fields, Field("x", "long")).arrow_schema
    named = [
        {**{field.name: value for field, value in zip(fields, row, strict=True)}, "x": 0}
        for row in rows
    ]
    batch = pa.RecordBatch.from_pylist(named, schema=schema)
    stored = batch.to_pylist()
    seen: list[Any] = []
    for group in split(batch, fields):
        members = range(len(rows)) if group.rows is None else group.rows.to_pylist()
        seen += members
        for number in members:
            texts = [encode_value(stored[number or 0][field.name], field.type) for field in fields]
            assert group.values == tuple(texts)
    assert sorted(seen) == list(range(len(rows)))
    assert len({group.values for group in split(batch, fields)}) == len(split(batch, fields))


@given(
    st.lists(st.none() | st.floats(), min_size=1, max_size=20),
    st.lists(st.integers(1, 20), max_size=4),
)
def test_statistics_do_not_depend_on_batches(numbers: list[float | None], cuts: list[int]) -> None:
    schema = StructType([Field("x", "double")])
    batch = pa.record_batch([pa.array(numbers, pa.float64())], names=["x"])
    whole, cut = StatsCollector(schema), StatsCollector(schema)
    whole.update(batch)
    start = 0
    for end in [*sorted(cuts), len(numbers)]:
        cut.update(batch.slice(start, max(0, end - start)))
        start = max(start, end)
    assert encode_stats(cut.finish()) == encode_stats(whole.finish())


@pytest.mark.protocol("IDN-03", "IDN-05")
@given(
    st.integers(MIN_VALUE, MAX_VALUE),
    st.integers(MIN_VALUE, MAX_VALUE).filter(bool),
    st.integers(0, 20),
)
def test_identity_values_are_the_sequence_or_an_error(start: int, step: int, count: int) -> None:
    expected = [start + k * step for k in range(count)]
    column = IdentityColumn(name="id", start=start, step=step)
    if all(MIN_VALUE <= value <= MAX_VALUE for value in expected):
        assert next_values(column, start, count).to_pylist() == expected
    else:
        with pytest.raises(ValueError, match="no values left"):
            next_values(column, start, count)
