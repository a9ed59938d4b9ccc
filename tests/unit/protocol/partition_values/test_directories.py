"""Directories that are named by partition values."""

from __future__ import annotations

import pytest

from deltalog.protocol.partition_values import (
    escape_directory,
    hive_directory,
    parse_hive_directory,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a b", "a b"),
        (" le", " le"),
        ("*^|<>", "%2A%5E|<>"),
        ("[x]{y}", "%5Bx%5D%7By}"),
        ("a#b?c&d", "a%23b%3Fc&d"),
        ("a%20b", "a%2520b"),
        ("a/b=c:d", "a%2Fb%3Dc%3Ad"),
        ("\x01\x7f\"'\\", "%01%7F%22%27%5C"),
        ("ünï😀", "ünï😀"),
    ],
)
def test_directories_are_escaped_as_spark_escapes_them(text: str, name: str) -> None:
    assert escape_directory(text) == name
    assert parse_hive_directory(f"p={name}") == {"p": text}


def test_a_part_without_a_name_or_a_value_holds_none() -> None:
    assert parse_hive_directory("p/=x/q=/r=1/=") == {"q": None, "r": "1"}


def test_directories() -> None:
    values: dict[str, str | None] = {"a=": "x/y", "b": None, "c": ""}
    directory = hive_directory(["a=", "b", "c"], values)
    assert directory == ("a%3D=x%2Fy/b=__HIVE_DEFAULT_PARTITION__/c=__HIVE_DEFAULT_PARTITION__")
    assert parse_hive_directory(f"part/{directory}") == {"a=": "x/y", "b": None, "c": None}
