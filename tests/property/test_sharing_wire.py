"""Messages of Delta Sharing: whatever comes is a message or a `MalformedMessageError`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalog.errors import InvalidInputError, MalformedMessageError
from deltalog.sharing.wire.codec import parse_timestamp
from deltalog.sharing.wire.hints import parse_json_hint, parse_sql_hint
from deltalog.sharing.wire.lines import TABLE, ParquetFileLine, encode_line, parse_line, parse_page
from deltalog.sharing.wire.profile import parse_profile
from deltalog.sharing.wire.requests import (
    Capabilities,
    TableQuery,
    encode_capabilities,
    encode_table_query,
    parse_capabilities,
    parse_changes_query,
    parse_error,
    parse_table_query,
)

KEYS = ("file", "add", "url", "id", "size", "items", "name", "protocol", "metaData", "version")
NODES = ("deltaSingleAction", "partitionValues", "op", "and", "column", "children", "valueType")
WORDS = st.sampled_from(KEYS + NODES)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)
TEXTS = st.text() | st.sampled_from(["a = 1", "'x' < `b`", "a IS NULL", "2022-01-01T00:00:00Z"])
NUMBERS = st.none() | st.integers(0, 2**63 - 1)


def _bytes(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # beyond 64 bits, or half a surrogate pair
        return repr(value).encode("utf-8", "replace")


PARSERS: list[Callable[[bytes], Any]] = [
    parse_line,
    parse_table_query,
    parse_profile,
    lambda data: parse_page(data, TABLE),
    lambda data: parse_json_hint(data.decode("utf-8", "replace")),
]


@pytest.mark.parametrize("parse", PARSERS)
@given(data=st.binary() | JSON.map(_bytes))
def test_what_comes_over_the_wire(parse: Callable[[bytes], Any], data: bytes) -> None:
    with contextlib.suppress(MalformedMessageError, InvalidInputError):
        parse(data)


@given(text=TEXTS)
def test_texts_of_parameters(text: str) -> None:
    parse_capabilities(text)
    parse_error(text.encode("utf-8", "replace"))
    for parse in (
        parse_timestamp,
        parse_sql_hint,
        lambda value: parse_changes_query({"startingVersion": value, "endingTimestamp": value}),
    ):
        with contextlib.suppress(MalformedMessageError):
            parse(text)


@given(
    formats=st.lists(st.sampled_from(["parquet", "delta"]), unique=True).map(tuple),
    features=st.frozensets(st.sampled_from(["deletionvectors", "columnmapping"])),
    ends=st.booleans(),
)
def test_capabilities_come_back(
    formats: tuple[str, ...], features: frozenset[str], ends: bool
) -> None:
    said = Capabilities(
        response_formats=formats, reader_features=features, include_end_stream_action=ends
    )
    assert parse_capabilities(encode_capabilities(said)) == said


@given(
    kind=st.sampled_from(["file", "add", "cdf", "remove"]),
    url=st.text(min_size=1),
    size=st.integers(0, 2**63 - 1),
    values=st.dictionaries(st.text(), st.none() | st.text(), max_size=3),
    version=NUMBERS,
)
def test_files_come_back(
    kind: str, url: str, size: int, values: dict[str, str | None], version: int | None
) -> None:
    said = ParquetFileLine(
        kind=kind, url=url, id="i", size_bytes=size, partition_values=values, version=version
    )
    assert parse_line(encode_line(said)) == said


@given(
    hints=st.lists(st.text(), max_size=3).map(tuple),
    limit=NUMBERS,
    version=NUMBERS,
    token=st.none() | st.text(min_size=1),
)
def test_queries_come_back(
    hints: tuple[str, ...], limit: int | None, version: int | None, token: str | None
) -> None:
    said = TableQuery(predicate_hints=hints, limit_hint=limit, version=version, page_token=token)
    assert parse_table_query(encode_table_query(said)) == said
