"""Which characters of a table are printed as they are."""

from __future__ import annotations

import json
import pickle

import pytest

from deltalog._util.escaping import printable, printable_json, printable_lines
from deltalog.errors import InvalidInputError, TableNotFoundError

CONTROLS = [
    "\x00", "\x07", "\x08", "\x0c", "\r", "\x1b", "\x7f", "\x85", "\x9b", "\x9d", "\xad", "\u061c",
    "\u200b", "\u200e", "\u2028", "\u2029", "\u202a", "\u202e", "\u2066", "\u2069", "\ufeff",
    "\U000e0041", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("control", CONTROLS)
def test_what_steers_a_terminal_is_escaped(control: str) -> None:
    text = f"a{control}b"
    escape = control.encode("unicode_escape").decode()
    assert printable(text) == printable_lines(text) == f"a{escape}b"
    assert printable(text).isprintable()
    if control != "\ud800":  # no JSON holds it
        held = json.dumps(text, ensure_ascii=False)
        assert json.loads(printable_json(held)) == text
        assert printable_json(held).isprintable()


def test_what_is_visible_stays() -> None:
    text = "naïve — “日本語” ½ 🙂 عربي\xa0x"
    assert printable(text) == printable_lines(text) == printable_json(text) == text


def test_lines_stay_where_a_text_has_lines() -> None:
    assert printable("a\n\tb") == r"a\n\tb"
    assert printable_lines("a\n\tb\x1b") == "a\n\tb\\x1b"


def test_messages_of_errors_are_escaped() -> None:
    for error in (InvalidInputError("a\x1b[2J\nb"), TableNotFoundError("a\x1b[2J\nb")):
        assert str(error) == str(pickle.loads(pickle.dumps(error))) == "a\\x1b[2J\nb"
        assert error.args == ("a\x1b[2J\nb",)
