"""The bodies and parameters of requests."""

from __future__ import annotations

import pytest

from deltalog.errors import MalformedMessageError
from deltalog.sharing.wire.requests import (
    ChangesQuery,
    TableQuery,
    encode_changes_query,
    encode_table_query,
    parse_changes_query,
    parse_table_query,
)


@pytest.mark.protocol("SHARE-QT-01", "B-99")
def test_queries_are_read_and_written() -> None:
    query = TableQuery(
        predicate_hints=("date >= '2021-01-01'",),
        json_predicate_hints="{}",
        limit_hint=1000,
        version=123,
        max_files=5,
        page_token="p",  # noqa: S106
        include_refresh_token=True,
    )
    assert parse_table_query(encode_table_query(query)) == query
    assert encode_table_query(TableQuery()) == b"{}"
    assert parse_table_query(b"") == parse_table_query(b' {"foo": 1} ') == TableQuery()
    assert parse_table_query(b'{"predicateHints":"a = 1"}').predicate_hints == ("a = 1",)
    for text in (b"[1]", b"{", b'{"limitHint":-1}', b'{"predicateHints":[1]}', b'{"timestamp":1}'):
        with pytest.raises(MalformedMessageError):
            parse_table_query(text)


def test_changes_are_asked_by_parameters() -> None:
    query = ChangesQuery(
        starting_version=1, ending_timestamp_ms=1640995200000, include_historical_metadata=True
    )
    assert parse_changes_query(encode_changes_query(query)) == query
    with pytest.raises(MalformedMessageError):
        parse_changes_query({"includeHistoricalMetadata": "yes"})
