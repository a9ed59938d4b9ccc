"""Typed access to the sections of a configuration, and errors that say where."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from deltalog.errors import InvalidInputError
from deltalog.sharing.server.config_settings import ConfigSection, check_unique, closest


def _section(**values: object) -> ConfigSection:
    return ConfigSection(values, "shares[0]")


def test_settings_have_types_and_defaults() -> None:
    section = _section(name="n", on=True, port=80, texts="a", many=["a", "b"], map={"k": 1})
    assert section.required("name", str) == "n"
    assert section.get("on", False) is True
    assert section.number("port", 1) == 80
    assert section.texts("texts") == ("a",)
    assert section.texts("many") == ("a", "b")
    assert section.mapping("map") == {"k": 1}
    assert section.optional("absent", str) is None
    assert section.get("absent", 7) == 7
    assert section.texts("absent") is None
    assert section.mapping("absent") == {}
    section.finish()


@pytest.mark.parametrize(
    "value",
    [
        "2999-01-01T00:00:00Z",
        datetime(2999, 1, 1, tzinfo=UTC),
        datetime(2999, 1, 1),  # noqa: DTZ001 - as TOML and YAML give it
    ],
)
def test_times_may_be_of_the_file_or_texts(value: object) -> None:
    assert _section(end=value).moment("end") == 32472144000000
    assert _section().moment("end") is None


def test_sections_are_inside_of_sections() -> None:
    section = _section(limits={"a": 1}, tables=[{"a": 2}, {"a": 3}])
    assert section.child("limits", lambda one: one.number("a", 0)) == 1
    assert section.children("tables", lambda one: one.number("a", 0)) == (2, 3)
    assert section.child("absent", lambda one: one.number("a", 0)) is None
    assert section.children("absent", lambda one: one.number("a", 0)) == ()


def test_errors_say_where_and_show_no_value() -> None:
    section = _section(a="secret", inner={"b": "secret"}, rows=[{}, {"c": "secret"}])
    expected: dict[str, Callable[[], object]] = {
        r"^shares\[0\]\.a: expected a whole number, found .*$": lambda: section.number("a", 0),
        r"^shares\[0\]\.z: a string is missing": lambda: section.required("z", str),
        r"^shares\[0\]\.a: expected a list$": lambda: section.children("a", str),
        r"^shares\[0\]\.inner: expected a list of strings$": lambda: section.texts("inner"),
        r"^shares\[0\]\.inner\.b: expected true or false, found .*$": lambda: section.child(
            "inner", lambda one: one.get("b", True)
        ),
        r"^shares\[0\]\.rows\[1\]\.c: expected a whole number, found .*$": lambda: section.children(
            "rows", lambda one: one.number("c", 1)
        ),
        r"^shares\[0\]\.a: expected a mapping of settings; found .*$": lambda: section.child(
            "a", str
        ),
    }
    for message, read in expected.items():
        with pytest.raises(InvalidInputError, match=message) as caught:
            read()
        assert "secret" not in str(caught.value)
    with pytest.raises(InvalidInputError, match=r"^shares\[0\]\.n: expected 1 or more$"):
        _section(n=0).number("n", 5)


def test_settings_that_nothing_reads_are_unknown() -> None:
    section = _section(recipiens=[])
    section.children("recipients", str)
    with pytest.raises(InvalidInputError, match="unknown setting; did you mean 'recipients'"):
        section.finish()
    other = _section(xyz=1)
    other.optional("host", str)
    with pytest.raises(InvalidInputError, match="unknown setting; known are host"):
        other.finish()


def test_names_are_compared_without_case() -> None:
    assert closest("RECIPIENT", ["recipients", "shares"]) == "; did you mean 'recipients'?"
    assert closest("xyz", ["recipients"]) == ""
    check_unique(["a", "b"], "shares")
    with pytest.raises(InvalidInputError, match="shares: the name 'A' occurs twice"):
        check_unique(["a", "A"], "shares")
