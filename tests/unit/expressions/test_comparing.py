from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions.comparing import like


@pytest.mark.parametrize("text", ["a.b", "a+b", "[x]", "a\\b", "(a|b)", "^$", "{1}", "#-&~", "é"])
def test_like_takes_plain_text_as_it_is(text: str) -> None:
    values = pa.array([text, "y" + text, text + "z", "zzz", None])
    pattern = text.replace("\\", "\\\\")
    expected = {
        pattern: [True, False, False, False, None],
        f"%{pattern}": [True, True, False, False, None],
        f"{pattern}%": [True, False, True, False, None],
        f"%{pattern}%": [True, True, True, False, None],
        f"_{pattern}": [False, True, False, False, None],
        f"{pattern}_%": [False, False, True, False, None],
    }
    for shape, rows in expected.items():
        assert like(values, shape, "\\", ignore_case=False).to_pylist() == rows


@pytest.mark.parametrize(
    ("pattern", "escape"), [("a\\", "\\"), ("\\a", "\\"), ("#x", "#"), ("a", "##")]
)
def test_an_escape_stands_before_what_needs_one(pattern: str, escape: str) -> None:
    with pytest.raises(InvalidInputError, match=r"escape character|ESCAPE"):
        like(pa.array(["a"]), pattern, escape, ignore_case=False)
