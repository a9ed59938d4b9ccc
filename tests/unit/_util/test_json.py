from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from deltalog._util import json
from deltalog._util.json import (
    JsonObject,
    Lexeme,
    dumps,
    iter_objects,
    iter_values,
    loads,
    parse_lexemes,
)
from deltalog.errors import InvalidInputError, InvalidMetadataError, MalformedLogError


@pytest.mark.protocol("LOG-03")
def test_each_line_is_an_object() -> None:
    assert iter_objects(b'{"a":1}\n{"b":"x\\ny"}\n') == [{"a": 1}, {"b": "x\ny"}]


@pytest.mark.protocol("LOG-03", "D-70")
@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1}\n{"b":2}',
        b'{"a":1}\r\n{"b":2}\r\n',
        b'\n{"a":1}\n\n  \n{"b":2}\n\n',
        b'{\n  "a": 1\n}\n{\n  "b":\n 2}\n',
        b'{"a":1} {"b":2}',
        b'\xef\xbb\xbf{"a":1}\n{"b":2}\n',
    ],
)
def test_layouts_that_are_tolerated(data: bytes) -> None:
    assert iter_objects(data) == [{"a": 1}, {"b": 2}]


@pytest.mark.protocol("D-70")
def test_line_separators_of_unicode_end_no_line() -> None:
    assert iter_objects('{"a":"x\u2028y\u0085z"}\n'.encode()) == [{"a": "x\u2028y\u0085z"}]


def test_nothing_is_no_object() -> None:
    assert iter_objects(b"") == []
    assert iter_objects(b"\n \r\n") == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a":1}\n{"b":', "version 4, line 2"),
        (b'{"a":1}\n\n[1]\n', "version 4, line 3: expected object, found list"),
        (b'{"a":1}\n{"b":"\xff"}\n', "version 4: invalid UTF-8 at byte 14"),
        (b'{"a":1}\n"text"\n', "line 2: expected object, found str 'text'"),
    ],
)
def test_a_torn_or_foreign_line_is_named(data: bytes, message: str) -> None:
    with pytest.raises(MalformedLogError, match=message):
        iter_objects(data, "version 4")


def test_deep_nesting_is_an_error_of_ours() -> None:
    deep = b"[" * 200_000
    with pytest.raises(MalformedLogError):
        loads(deep)
    with pytest.raises(MalformedLogError):
        iter_objects(b'{"a":' + deep)
    with pytest.raises(MalformedLogError):
        parse_lexemes(deep)


@pytest.mark.parametrize(
    "number", [2**63 - 1, -(2**63), 2**64, -(2**63) - 1, 123456789012345678901234567890]
)
def test_whole_numbers_are_never_rounded(number: int) -> None:
    assert loads(str(number)) == number
    assert loads(f'{{"n": [{number}]}}') == {"n": [number]}
    assert loads(dumps({"n": number})) == {"n": number}


def test_numbers_in_texts_stay_texts() -> None:
    assert loads('{"a":"123456789012345678901234567890"}') == {
        "a": "1" + "23456789012345678901234567890"
    }


def test_words_that_are_no_json_are_kept() -> None:
    assert loads("[Infinity, -Infinity]") == [math.inf, -math.inf]
    assert math.isnan(loads("NaN"))
    assert iter_objects(b'{"a":NaN}\n')[0]["a"] != 0


def test_the_position_is_in_the_message() -> None:
    with pytest.raises(MalformedLogError, match="schemaString, line 2, column 3"):
        loads("{\n  nope}", "schemaString")


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="cannot write as JSON"):
        dumps({"a": object()})


def test_output_is_compact_and_keeps_unicode() -> None:
    assert dumps({"a": [1, "é"], "b": None}) == '{"a":[1,"é"],"b":null}'.encode()


@pytest.mark.protocol("SUM-03", "D-04")
def test_lexemes_are_kept() -> None:
    tree = parse_lexemes('{"a":1.0,"b":[2.71,42,1e5],"c":"1.0","d":true,"e":null}')
    assert tree == {"a": "1.0", "b": ["2.71", "42", "1e5"], "c": "1.0", "d": True, "e": None}
    assert isinstance(tree["a"], Lexeme)
    assert not isinstance(tree["c"], Lexeme)
    assert pickle.loads(pickle.dumps(tree["a"])) == "1.0"


@pytest.mark.protocol("SUM-08", "D-04")
@pytest.mark.parametrize("text", ['{"version":1,"version":2}', '{"a":{"b":1,"c":2,"b":1}}'])
def test_a_key_twice_is_refused(text: str) -> None:
    with pytest.raises(MalformedLogError, match="twice"):
        parse_lexemes(text, "_last_checkpoint")
    assert loads(text)  # the plain reader keeps the last, as every other one


@pytest.mark.parametrize("text", ["", "{", "[NaN]", "Infinity", "{'a':1}"])
def test_the_exact_reader_is_strict(text: str) -> None:
    with pytest.raises(MalformedLogError, match="_last_checkpoint"):
        parse_lexemes(text, "_last_checkpoint")


def node(**values: object) -> JsonObject:
    return JsonObject(values, "version 12, line 3: add", InvalidMetadataError)


def test_members_are_typed() -> None:
    assert node(a=1).required("a", int) == 1
    assert node(a=None).optional("a", str) is None
    assert node().optional("a", str) is None
    assert node(a=3.0).optional("a", int) == 3


@pytest.mark.parametrize("value", ["1", True, 1.5, [1], {}])
def test_a_wrong_type_names_member_and_place(value: object) -> None:
    with pytest.raises(
        InvalidMetadataError, match=r"version 12, line 3: add\.a: expected int, found"
    ):
        node(a=value).optional("a", int)


def test_a_missing_member_is_named() -> None:
    with pytest.raises(InvalidMetadataError, match=r"add\.a: required str is missing"):
        node(a=None).required("a", str)


def test_children_know_their_path() -> None:
    with pytest.raises(InvalidMetadataError, match=r"add\.deletionVector\.x: required"):
        node(deletionVector={}).child("deletionVector", lambda child: child.required("x", int))
    assert node().child("deletionVector", lambda child: child.required("x", int)) is None
    with pytest.raises(InvalidMetadataError, match=r"add\.deletionVector: expected object"):
        node(deletionVector=[1]).child("deletionVector", lambda child: child.where)


def test_maps_of_texts() -> None:
    assert node(m={"a": "1", "b": None}).mapping("m") == {"a": "1", "b": None}
    assert node(m=[("a", "1")]).mapping("m") == {"a": "1"}
    assert node(m={"a": 5, "b": True, "c": 1.5}).mapping("m") == {"a": "5", "b": "true", "c": "1.5"}
    assert node(m={"a": "1", "b": None}).mapping_of_strings("m") == {"a": "1"}
    assert node().mapping("m") is None
    for wrong in ("x", [1], {"a": [1]}):
        with pytest.raises(InvalidMetadataError, match="expected"):
            node(m=wrong).mapping("m")


def test_lists_of_texts() -> None:
    assert node(l=["a", "b"]).texts("l") == ("a", "b")
    assert node().texts("l") is None
    for wrong in ("ab", ["a", 1], [None]):
        with pytest.raises(InvalidMetadataError, match=r"add\.l"):
            node(l=wrong).texts("l")


@pytest.mark.protocol("TXN-01")
@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_whole_numbers_fit_64_bits(number: int) -> None:
    with pytest.raises(MalformedLogError, match=f"^here.version: {number} does not fit 64 bits"):
        JsonObject({"version": number}, "here").required("version", int)
    for fits in (2**63 - 1, -(2**63)):
        assert JsonObject({"version": fits}, "here").optional("version", int) == fits


@pytest.mark.parametrize("digits", [4_301, 20_000])
def test_numbers_of_thousands_of_digits_are_infinite(digits: int) -> None:
    number = "1" * digits
    assert loads(f'{{"a": {number}}}') == {"a": math.inf}
    assert iter_objects(f'{{"a": -{number}}}\n{{"b": 1}}'.encode()) == [{"a": -math.inf}, {"b": 1}]
    with pytest.raises(MalformedLogError, match=r"here\.a: expected int, found float inf"):
        JsonObject(loads(f'{{"a": {number}}}'), "here").required("a", int)


def test_values_have_the_number_of_their_first_line() -> None:
    lines = b'\xef\xbb\xbf{"a":1} [2]\r\n\n {\n"b":\n3}\n\n5'.splitlines(keepends=True)
    assert list(iter_values(lines)) == [(1, {"a": 1}), (1, [2]), (3, {"b": 3}), (7, 5)]
    assert list(iter_values([b"[\n", b"1] 2\n", b"3"])) == [(1, [1]), (2, 2), (3, 3)]


def test_a_value_of_many_lines_is_read_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    read = json._complete_values

    def counted(text: str, first: int) -> Any:
        reads.append(len(text))
        return read(text, first)

    monkeypatch.setattr(json, "_complete_values", counted)
    lines = [b"[\n", *[b"1,\n"] * 10_000, b"1]"]
    assert list(iter_values(lines)) == [(1, [1] * 10_001)]
    assert sum(reads) < 4 * sum(map(len, lines))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"a":1}\nx', "line 2, column 1: expected value, found 'x'"),
        (b'\n{"a":1,\n"b":x}', "line 3, column 5 of the value that begins in line 2: expected v"),
        (b'{"a":"x\ny"}', "line 1, column 8: invalid control character, found a line break"),
        (b'{"a":1}\n{"a":', "line 2: the value is not complete at the end of the file"),
        (b'{"a":"x', "line 1, column 6: unterminated string, found"),
        (b'{"a":1,"a":2}', "line 1: an object contains the key 'a' twice"),
        (b"[" * 100_000 + b"\n", "line 1: nested too deeply"),
    ],
)
def test_the_line_of_what_is_not_json(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedLogError, match=f"^{reason}"):
        list(iter_values(data.splitlines(keepends=True)))
