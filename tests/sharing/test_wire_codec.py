"""Members of messages: numbers, times, and tables of members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from deltalog._util.json import dumps
from deltalog.errors import MalformedMessageError
from deltalog.sharing.wire.codec import (
    MessageCodec,
    encode_timestamp,
    natural_number,
    nonempty_text,
    number,
    parse_object,
    parse_timestamp,
    required_text,
    string_map,
    texts,
    timestamp,
)
from deltalog.sharing.wire.lines import ParquetFileLine, parse_line
from deltalog.sharing.wire.requests import parse_table_query


@pytest.mark.protocol("SHARE-QT-20")
def test_numbers_may_be_texts() -> None:
    found = parse_line(b'{"file":{"url":"u","id":"i","size":"7","partitionValues":{}}}')
    assert isinstance(found, ParquetFileLine)
    assert found.size_bytes == 7
    assert parse_table_query(b'{"version":"3"}').version == 3
    for text in (b'{"version":"x3"}', b'{"version":"-1"}', b'{"version":1.5}', b'{"version":true}'):
        with pytest.raises(MalformedMessageError):
            parse_table_query(text)


@pytest.mark.protocol("SHARE-TS-01")
def test_times() -> None:
    assert parse_timestamp("2022-01-01T00:00:00Z") == 1640995200000
    assert parse_timestamp("2022-01-01T00:00:00.123Z") == 1640995200123
    assert parse_timestamp("2022-01-01T01:00:00+01:00") == 1640995200000
    assert encode_timestamp(1640995200000) == "2022-01-01T00:00:00Z"
    assert encode_timestamp(1640995200123) == "2022-01-01T00:00:00.123Z"
    assert encode_timestamp(253402300800000) == "+10000-01-01T00:00:00Z"
    for text in ("2022-01-01 00:00:00", "2022-01-01", "abc", "", "9999999-01-01T00:00:00Z"):
        with pytest.raises(MalformedMessageError):
            parse_timestamp(text)


@dataclass(frozen=True, kw_only=True)
class _Message:
    name: str
    size: int | None = None
    count: int | None = None
    token: str | None = None
    tags: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    end_ms: int | None = None


CODEC = MessageCodec(
    _Message,
    name=required_text("theName"),
    size=number("theSize"),
    count=natural_number("theCount"),
    token=nonempty_text("theToken"),
    tags=texts("theTags"),
    options=string_map("theOptions"),
    end_ms=timestamp("theEnd"),
)


def _parse(text: str) -> _Message:
    return CODEC.parse(parse_object(text, "message"))


@pytest.mark.protocol("SHARE-META-04", "SHARE-META-05")
def test_absent_and_null_members_take_defaults_and_are_left_out() -> None:
    assert _parse('{"theName":"n","theSize":null,"later":[1]}') == _Message(name="n")
    assert CODEC.encode(_Message(name="n")) == {"theName": "n"}


def test_members_are_written_in_the_order_of_the_table() -> None:
    text = (
        '{"theName":"n","theSize":-5,"theCount":0,"theToken":"t","theTags":["a"],'
        '"theOptions":{"k":"v"},"theEnd":"2022-01-01T00:00:00Z"}'
    )
    message = _Message(
        name="n",
        size=-5,
        count=0,
        token="t",  # noqa: S106
        tags=("a",),
        options={"k": "v"},
        end_ms=1640995200000,
    )
    assert _parse(text) == message
    assert dumps(CODEC.encode(message)).decode() == text


@pytest.mark.protocol("SHARE-PG-02")
def test_an_empty_token_is_none() -> None:
    assert _parse('{"theName":"n","theToken":""}').token is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "message: expected object"),
        ("{", "message"),
        ("{}", r"message\.theName: required str is missing"),
        ('{"theName":1}', r"message\.theName: expected str, found int 1"),
        ('{"theName":"n","theSize":"x"}', r"message\.theSize: expected a whole number"),
        (
            '{"theName":"n","theSize":9223372036854775808}',
            r"message\.theSize: .* does not fit 64 bits",
        ),
        ('{"theName":"n","theCount":-1}', r"message\.theCount: expected 0 or more, found -1"),
        ('{"theName":"n","theTags":"a"}', r"message\.theTags: expected list of strings"),
        ('{"theName":"n","theEnd":"2022-01-01"}', r"message\.theEnd: expected a time"),
        ('{"theName":"n","theEnd":5}', r"message\.theEnd: expected str"),
    ],
)
def test_errors_name_the_member(text: str, problem: str) -> None:
    with pytest.raises(MalformedMessageError, match=problem):
        _parse(text)
