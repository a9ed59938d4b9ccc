from __future__ import annotations

import contextlib
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalog.errors import InvalidPartitionValueError
from deltalog.protocol.partition_values import (
    encode_value,
    escape_directory,
    hive_directory,
    parse_column,
    parse_hive_directory,
    parse_value,
)
from deltalog.schema import PrimitiveType, to_arrow_type
from tests.property.schema_strategies import PARTITION_TYPES, TEXT, values


@pytest.mark.protocol("PART-02", "PART-03", "PART-04", "PART-05", "D-07", "D-08", "D-09")
@given(st.data())
def test_a_value_comes_back_from_its_text(data: st.DataObject) -> None:
    kind = data.draw(PARTITION_TYPES)
    value = data.draw(values(kind))
    text = encode_value(value, kind)
    found = parse_value(text, kind, time_zone="UTC")
    if value in ("", b""):
        assert text is None
        assert found is None
    elif isinstance(value, float):
        assert math.isnan(found) if math.isnan(value) else repr(found) == repr(value)
    else:
        assert found == value
        assert encode_value(found, kind) == text


@pytest.mark.protocol("PART-01", "PART-03")
@given(st.data())
def test_a_column_is_its_values(data: st.DataObject) -> None:
    kind = data.draw(PARTITION_TYPES)
    texts = [
        encode_value(value, kind)
        for value in data.draw(st.lists(st.none() | values(kind), max_size=5))
    ]
    zone = data.draw(st.sampled_from(["UTC", "+00:00"]))
    column = parse_column(pa.array(texts, pa.string()), kind, time_zone=zone)
    assert column.type == to_arrow_type(kind)
    assert repr(column.to_pylist()) == repr(
        [parse_value(text, kind, time_zone="UTC") for text in texts]
    )


@pytest.mark.protocol("D-65")
@given(PARTITION_TYPES, TEXT | st.text("0123456789-+.:TZ einfa", max_size=24))
def test_any_text_is_a_value_or_corruption(kind: PrimitiveType, text: str) -> None:
    with contextlib.suppress(InvalidPartitionValueError):
        value = parse_value(text, kind, time_zone="UTC")
        assert repr(parse_value(encode_value(value, kind), kind, time_zone="UTC")) == repr(value)


@given(st.lists(st.tuples(TEXT.filter(bool), TEXT), max_size=3, unique_by=lambda pair: pair[0]))
def test_directories_come_back(pairs: list[tuple[str, str]]) -> None:
    texts: dict[str, str | None] = dict(pairs)
    directory = hive_directory(list(texts), texts)
    expected = {name: text or None for name, text in texts.items()}
    if "__HIVE_DEFAULT_PARTITION__" not in texts.values():
        assert parse_hive_directory(directory) == expected
    assert all("/" not in escape_directory(text) for text in texts)
