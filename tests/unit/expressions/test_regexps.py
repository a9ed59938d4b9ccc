from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions.strings import regexp_replace, rlike, to_re2


def _matches(text: str, pattern: str) -> bool:
    found: bool = rlike(pa.scalar(text), pa.scalar(pattern)).as_py()
    return found


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("a\n", "a$", True),
        ("a\r\n", "a$", True),
        ("a\nb", "a$", False),
        ("a\nb", "(?m)a$", True),
        ("a\rb", "a.b", False),
        ("a\u2028b", "a.b", False),
        ("a\rb", "(?s)a.b", True),
        ("a\x0bb", r"a\sb", True),
        ("a\u00a0b", r"a\hb", True),
        ("a.b", r"a\Q.\Eb", True),
        ("axb", r"a\Q.\Eb", False),
        ("a", r"\u0061", True),
        (".", "[.]", True),
        ("x", "[.]", False),
        ("$", "[$]", True),
        ("]", r"[\]]", True),
        ("]", "[]a]", True),
    ],
)
def test_patterns_mean_what_java_reads(text: str, pattern: str, expected: bool) -> None:
    assert _matches(text, pattern) is expected


@pytest.mark.parametrize("pattern", ["[a[b]]", "[a&&[b]]", "a(?=b)", r"(a)\1", "(", "a++"])
def test_what_cannot_be_read_as_java_does_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInputError, match="regular expression"):
        _matches("a", pattern)


def test_plain_patterns_stay_as_they_are() -> None:
    assert to_re2(r"^[a-z]+\d*(x|y)?") == r"^[a-z]+\d*(x|y)?"


def test_a_replacement_is_read_as_java_does() -> None:
    values = pa.array(["a1b22", None])
    swapped = regexp_replace(values, pa.scalar(r"([a-z])(\d+)"), pa.scalar(r"$2\$$1"))
    assert swapped.to_pylist() == ["1$a22$b", None]
    with pytest.raises(InvalidInputError, match="must be followed by a group"):
        regexp_replace(values, pa.scalar("a"), pa.scalar("$x"))


def test_an_arrow_text_is_matched_as_a_whole_column() -> None:
    values = pa.chunked_array([["ab", "b"], [None]])
    assert rlike(values, pa.scalar("^a")).to_pylist() == [True, False, None]
    assert pc.any(rlike(values, pa.scalar("b$"))).as_py()
