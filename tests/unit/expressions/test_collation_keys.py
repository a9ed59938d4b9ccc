"""Keys by which collations compare texts, and parts of texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalog._util.kernels import pc
from deltalog.expressions.comparing import _SETTLED, DOTTED_I, LOWER, keys, keys_of
from deltalog.expressions.comparing import test as found_in
from deltalog.schema.types import BY_BYTES, RULES
from tests.support.collating import ALL, LCASE, LCASE_RTRIM, key, pieces, texts


@given(st.lists(st.none() | texts), st.sampled_from(ALL))
def test_keys_are_those_of_the_model(values: list[str | None], collation: str) -> None:
    found = keys_of(values, collation)
    assert [None if one is None else one.encode() for one in found] == [
        None if value is None else key(value, collation) for value in values
    ]


@given(texts, st.sampled_from(ALL))
def test_a_key_is_its_own_key(text: str, collation: str) -> None:
    (once,) = keys_of([text], collation)
    assert keys_of([once], collation) == [once]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("AB", "ab"), ("\u03a3", "\u03c2"), ("\u03c3", "\u03c2"),
        ("\u0391\u03a3", "\u03b1\u03c2"), ("\u0130", "i\u0307"), ("ẞ", "ß"), ("\u212a", "k"),
        ("𐐀", "𐐨"), ("É", "é"), ("Ა", "ა"),
    ],
)  # fmt: skip
def test_what_is_equal_but_for_case(one: str, other: str) -> None:
    first, second = keys_of([one, other], LCASE)
    assert first == second


@pytest.mark.parametrize(
    ("one", "other"),
    [("\u0130", "i"), ("\u0131", "I"), ("ß", "ss"), ("ẞ", "SS"), ("\u017f", "s"), ("e\u0301", "é"),
     ("ﬀ", "ff"), ("a ", "a"), ("ǅ", "dž")],
)  # fmt: skip
def test_what_is_not_equal(one: str, other: str) -> None:
    first, second = keys_of([one, other], LCASE)
    assert first != second


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        (0x1C89, 0x1C8A), (0xA7CB, 0x0264), (0xA7DC, 0x019B), (0xA7DA, 0xA7DB), (0xA7CE, 0xA7CF),
        (0x10D50, 0x10D70), (0x10D65, 0x10D85), (0x16EA0, 0x16EBB), (0x16EB8, 0x16ED3),
        (0xA7DD, 0xA7DD), (0x1DF40, 0x1DF40),
    ],
)  # fmt: skip
def test_letters_of_unicode_15_to_18(upper: int, lower: int) -> None:
    """Python has the first ones not, and pyarrow 26 has those of 18, which ICU 78 has not."""
    assert keys_of(["é" + chr(upper) + "Z"], LCASE) == ["é" + chr(lower) + "z"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a ", "a"), ("A  ", "a"), (" a", " a"), ("a\t", "a\t"), ("a\u00a0", "a\u00a0"), ("  ", "")],
)
def test_spaces_at_the_end_alone_are_left_out(text: str, expected: str) -> None:
    assert keys_of([text], LCASE_RTRIM) == [expected]


def test_of_the_default_a_text_is_its_key() -> None:
    assert keys_of(["A ", None], BY_BYTES) == ["A ", None]


@pytest.mark.parametrize("collation", RULES)
@pytest.mark.parametrize(
    "values",
    [
        pa.array([], pa.string()), pa.array([None, None], pa.string()), pa.array(["É", None, "A"]),
        pa.chunked_array([["A"], [], ["\u03c2", None]], pa.string()), pa.scalar("É"),
        pa.scalar(None, pa.string()),
    ],
    ids=lambda values: str(values.type),
)  # fmt: skip
def test_keys_have_the_form_of_their_texts(collation: str, values: Any) -> None:
    found = keys(values, collation)
    assert type(found) is type(values)
    assert found.type == pa.string()


def holds(function: str, text: str, part: str, collation: str) -> bool:
    """Whether the pieces of some characters that follow each other are those of the part."""
    if collation.endswith("_RTRIM"):
        text, part = text.rstrip(" "), part.rstrip(" ")
    split = pieces if "LCASE" in collation else list
    found, wanted = split(text), "".join(split(part))
    ends = range(len(found) + 1)
    spans = [(first, last) for first in ends for last in ends if first <= last]
    allowed: dict[str, Callable[[int, int], bool]] = {
        "startswith": lambda first, _: first == 0,
        "endswith": lambda _, last: last == len(found),
        "contains": lambda _, __: True,
    }
    return any("".join(found[a:b]) == wanted for a, b in spans if allowed[function](a, b))


@given(
    st.sampled_from(ALL),
    st.sampled_from(["startswith", "endswith", "contains"]),
    st.lists(
        st.none() | st.text(st.sampled_from("aAiI \u0130\u0307\u03c2\u03a3"), max_size=4),
        max_size=4,
    ),
    st.text(st.sampled_from("aAiI \u0130\u0307\u03c2\u03a3"), max_size=3),
)
def test_parts_are_found_as_by_the_model(
    collation: str, function: str, values: list[str | None], part: str
) -> None:
    expected = [
        None if value is None else holds(function, value, part, collation) for value in values
    ]
    column = pa.array(values, pa.string())
    assert found_in(function, column, pa.scalar(part), collation).to_pylist() == expected
    parts = pa.array([part] * len(values), pa.string())
    assert found_in(function, column, parts, collation).to_pylist() == expected


def test_a_part_of_null_is_found_nowhere() -> None:
    column = pa.array(["a", None])
    assert found_in("contains", column, pa.scalar(None, pa.string()), LCASE).to_pylist() == [
        None, None,
    ]  # fmt: skip


def test_kernels_and_the_table_agree_on_what_is_settled() -> None:
    settled = [
        chr(code)
        for first, last in _SETTLED
        for code in range(first, last + 1)
        if code != ord(DOTTED_I)
    ]
    lowered: Any = pc.utf8_lower(pa.array(settled))
    found = lowered.to_pylist()
    assert found == [character.translate(LOWER) for character in settled]
