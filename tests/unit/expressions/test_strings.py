"""Functions of strings, with constant arguments (computed by a kernel) and columns (by row)."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import strings
from deltalog.expressions.strings import KERNELS

# Spark counts code points, so each of these characters counts once.
TEXTS = ["Straße", "ab", "", None, "\U0001f600x"]


def column(*values: Any) -> Any:
    return pa.array(values, pa.int32() if isinstance(values[0], int) else pa.string())


def both_ways(name: str, texts: list[str | None], *constants: Any, first: bool = True) -> list[Any]:
    """The result with constants, after checking that columns of the same values give the same."""
    array = column(*texts)
    kinds = [pa.int32() if isinstance(value, int) else pa.string() for value in constants]
    scalars = [pa.scalar(value, kind) for value, kind in zip(constants, kinds, strict=True)]
    columns = [
        pa.array([value] * len(texts), kind) for value, kind in zip(constants, kinds, strict=True)
    ]
    arguments: list[Any] = [array, *scalars] if first else [*scalars, array]
    found: list[Any] = KERNELS[name](*arguments).to_pylist()
    rowwise: list[Any] = [array, *columns] if first else [*columns, array]
    assert KERNELS[name](*rowwise).to_pylist() == found
    return found


def test_case_is_changed_as_in_java() -> None:
    assert KERNELS["upper"](column("Straße", None)).to_pylist() == ["STRASSE", None]
    # A sigma at the end of a word has another form.
    assert KERNELS["lower"](column("ΟΔΟΣ", "AB")).to_pylist() == ["οδος", "ab"]
    assert KERNELS["initcap"](column("hELLO  wORLD-x", None)).to_pylist() == [
        "Hello  World-x",
        None,
    ]


def test_sizes() -> None:
    texts = column(*TEXTS)
    assert strings.length(texts).to_pylist() == [6, 2, 0, None, 2]
    assert strings.octet_length(texts).to_pylist() == [7, 2, 0, None, 5]
    assert strings.bit_length(column("é")).to_pylist() == [16]
    assert strings.length(pa.array([b"\x00\x01"])).to_pylist() == [2]


@pytest.mark.parametrize(
    ("start", "count", "expected"),
    [
        (1, 2, ["St", "ab", "", None, "\U0001f600x"]),
        (0, 1, ["S", "a", "", None, "\U0001f600"]),
        (5, 9, ["ße", "", "", None, ""]),
        (-2, 1, ["ß", "a", "", None, "\U0001f600"]),
        (-5, 3, ["tra", "", "", None, ""]),  # from before the first character
        (2, -1, ["", "", "", None, ""]),
    ],
)
def test_substring(start: int, count: int, expected: list[str | None]) -> None:
    assert both_ways("substring", TEXTS, start, count) == expected


def test_ends_of_strings() -> None:
    assert both_ways("substring", TEXTS, -1) == ["e", "b", "", None, "x"]
    assert both_ways("left", TEXTS, 1) == ["S", "a", "", None, "\U0001f600"]
    assert both_ways("right", TEXTS, 1) == ["e", "b", "", None, "x"]
    assert both_ways("right", TEXTS, 0) == ["", "", "", None, ""]
    assert strings.substring(pa.array([b"abc"]), pa.scalar(-2), pa.scalar(1)).to_pylist() == [b"b"]


@pytest.mark.parametrize(
    ("name", "chars", "text", "expected"),
    [
        ("trim", None, "  \ta ", "\ta"),
        ("ltrim", "xy", "yxayx", "ayx"),
        ("rtrim", "xy", "yxayx", "yxa"),
        ("trim", "", " a ", " a "),
    ],
)
def test_trimming(name: str, chars: str | None, text: str, expected: str) -> None:
    if chars is None:
        assert KERNELS[name](column(text)).to_pylist() == [expected]
    else:
        assert both_ways(name, [text, None], chars, first=False) == [expected, None]


def test_btrim_has_the_characters_last() -> None:
    assert both_ways("btrim", ["xax", None], "x") == ["a", None]


def test_concatenation() -> None:
    left, right = column("a", None, None), column("b", "c", None)
    assert strings.concat(left, right).to_pylist() == ["ab", None, None]
    assert strings.concat().as_py() == ""
    for separator in (pa.scalar("--"), column("--", "--", "--")):
        assert strings.concat_ws(separator, left, right).to_pylist() == ["a--b", "c", ""]
    assert strings.concat_ws(column("x", None)).to_pylist() == ["", None]
    nothing = pa.scalar(None, pa.string())
    assert strings.concat_ws(nothing, left).to_pylist() == [None, None, None]
    assert both_ways("repeat", ["ab", None], 2) == ["abab", None]
    assert both_ways("repeat", ["ab", None], -1) == ["", None]


def test_searching() -> None:
    assert both_ways("contains", ["a.b", "ab", None], ".") == [True, False, None]
    assert both_ways("startswith", ["ab", "ba", None], "a") == [True, False, None]
    assert both_ways("endswith", ["ab", "ba", None], "a") == [False, True, None]
    assert both_ways("instr", ["\U0001f600ab", "x", None], "a") == [2, 0, None]
    found = strings.find_from(column("a", "a", "", "a"), column(*["aba"] * 4), column(2, 0, 2, 4))
    assert found.to_pylist() == [3, 0, 1, 0]


def test_replacing() -> None:
    assert both_ways("replace", ["a.b.", None], ".", "-") == ["a-b-", None]
    assert both_ways("replace", ["a.b.", None], ".") == ["ab", None]
    assert both_ways("replace", ["ab", None], "", "-") == ["ab", None]


def test_split_part() -> None:
    texts = column(*["a,b,c"] * 4, None)
    found = strings.split_part(texts, pa.scalar(","), column(1, -1, 4, 3, 0))
    assert found.to_pylist() == ["a", "c", "", "c", None]
    with pytest.raises(InvalidInputError, match="index of split_part must not be 0"):
        strings.split_part(texts, pa.scalar(","), pa.scalar(0))


@pytest.mark.parametrize(
    ("name", "width", "fill", "expected"),
    [
        ("lpad", 4, "0", ["00ab", "abcd", None]),
        ("rpad", 4, "xyz", ["abxy", "abcd", None]),
        ("lpad", 4, "", ["ab", "abcd", None]),
        ("rpad", -1, "0", ["", "", None]),
    ],
)
def test_padding(name: str, width: int, fill: str, expected: list[str | None]) -> None:
    assert both_ways(name, ["ab", "abcde", None], width, fill) == expected


def test_codes() -> None:
    assert KERNELS["ascii"](column("a", "", None)).to_pylist() == [97, 0, None]
    codes = pa.array([65, 256 + 65, -1, None], pa.int64())
    assert KERNELS["chr"](codes).to_pylist() == ["A", "A", "", None]


def test_digests() -> None:
    data = pa.array([b"Spark", None])
    assert KERNELS["md5"](data).to_pylist() == ["8cde774d6f7333752ed72cacddb05126", None]
    assert KERNELS["sha1"](data).to_pylist() == ["85f5955f4b27a9a4c2aab6ffe5d7189fc298b92c", None]
    assert KERNELS["crc32"](data).to_pylist() == [1_557_323_817, None]
    for bits in (0, 256):
        assert KERNELS["sha2"](data, pa.scalar(bits)).to_pylist() == [
            hashlib.sha256(b"Spark").hexdigest(),
            None,
        ]
    assert KERNELS["sha2"](data, pa.scalar(128)).to_pylist() == [None, None]
