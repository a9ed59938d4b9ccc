"""Texts, bytes and truth values, and what every codec asks of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.schema.primitives.strings import (
    BYTES,
    TEXT,
    TRUTH,
    all_match,
    check_kind,
    check_match,
    join,
    json_texts,
)


def array(*texts: str | None) -> Any:
    return pa.array(texts, pa.string())


def test_texts_match_as_a_whole_and_null_does() -> None:
    assert all_match(array("a", None, "b"), "a|b")
    assert not all_match(array("a", "ab"), "a")
    check_match(array("1", None), r"\d")
    with pytest.raises(ValueError, match="expected"):
        check_match(array("1", ""), r"\d")


def test_true_is_no_number() -> None:
    check_kind(1, int)
    check_kind(True, bool)
    check_kind(b"", (bytes, bytearray))
    for value, kind in ((True, int), (1, bool), ("1", int), (None, str)):
        with pytest.raises(TypeError, match=f"found an? {type(value).__name__}"):
            check_kind(value, kind)


def test_parts_are_joined_and_null_stays_null() -> None:
    assert join("<", array("a", None, ""), ">").to_pylist() == ["<a>", None, "<>"]


def test_texts_as_json_has_them() -> None:
    found = json_texts(array("a", None, 'q"', "b\\", "\n", "ä/", ""))
    assert found.to_pylist() == ['"a"', None, r'"q\""', r'"b\\"', r'"\n"', '"ä/"', '""']
    assert json_texts(array("a", None)).to_pylist() == ['"a"', None]
    assert json_texts(array()).to_pylist() == []


def test_truth_is_a_word_in_any_case() -> None:
    assert TRUTH.parse is not None
    assert TRUTH.encode is not None
    found = TRUTH.parse(array("true", "FALSE", None), pa.bool_(), "UTC")
    assert found.to_pylist() == [True, False, None]
    for text in ("1", "yes", "", "true "):
        with pytest.raises(ValueError, match="expected"):
            TRUTH.parse(array(text), pa.bool_(), "UTC")
    assert [TRUTH.encode(value, pa.bool_()) for value in (True, False)] == ["true", "false"]
    with pytest.raises(TypeError):
        TRUTH.encode(1, pa.bool_())


def test_texts_and_bytes_are_unicode() -> None:
    assert TEXT.encode is not None
    assert BYTES.encode is not None
    assert TEXT.encode("ä", pa.string()) == "ä"
    assert BYTES.encode(bytearray("ä".encode()), pa.binary()) == "ä"
    with pytest.raises(UnicodeEncodeError):
        TEXT.encode("\ud800", pa.string())
    with pytest.raises(UnicodeDecodeError):
        BYTES.encode(b"\xff", pa.binary())


def test_numbers_are_no_texts() -> None:
    assert TEXT.conform is not None
    assert BYTES.conform is not None
    assert TEXT.conform(pa.array([1]), pa.string()) is None
    assert BYTES.conform(array("a"), pa.binary()) is None
    large = TEXT.conform(pa.array(["a", None], pa.large_string()), pa.string())
    assert large is not None
    assert (large.type, large.to_pylist()) == (pa.string(), ["a", None])
