"""Names of tables in SQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from deltalog.errors import InvalidInputError
from deltalog.query.names import QualifiedName, VersionExpression, unquoted, version_of


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("sales", ("sales",)),
        ("a.b.c", ("a", "b", "c")),
        ("my table", ("my table",)),
        ("`a.b`.c", ("a.b", "c")),
        ("x.`c``d`", ("x", "c`d")),
    ],
)
def test_dots_divide_a_name_and_backticks_quote(text: str, parts: tuple[str, ...]) -> None:
    assert QualifiedName.parse(text).parts == parts


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "`a", "a`b", "``"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected the name of a table"):
        QualifiedName.parse(text)


def test_a_name_in_sql_is_read_back() -> None:
    name = QualifiedName(("a b", "c`d", "select"))
    assert QualifiedName.parse(str(name)) == name
    assert name.key == ("a b", "c`d", "select")


def test_a_location_follows_a_format() -> None:
    name = QualifiedName(("DELTA", "/data/x.y"))
    assert (name.location, name.format) == ("/data/x.y", "delta")
    assert QualifiedName(("other", "/data")).location is None
    assert QualifiedName(("delta",)).format is None


def test_a_name_without_backticks_is_itself() -> None:
    assert (unquoted("a"), unquoted("`a``b`")) == ("a", "a`b")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v12", 12),
        ("V0", 0),
        ("20250131123000000", datetime(2025, 1, 31, 12, 30, tzinfo=UTC)),
        ("20250131123000123", datetime(2025, 1, 31, 12, 30, 0, 123000, tzinfo=UTC)),
    ],
)
def test_a_version_follows_an_at(text: str, version: object) -> None:
    assert version_of(text) == version


@pytest.mark.parametrize("text", ["v", "12", "vx", "2025013112300000", "20251331123000000", ""])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a version after @"):
        version_of(text)


@pytest.mark.parametrize(
    ("is_number", "sql", "value"),
    [
        (True, ":v", 3),
        (True, "1 + 1", 2),
        (False, "'2025-01-31'", "2025-01-31"),
        (False, "date_sub(date'2025-02-01', 1)", "2025-01-31"),
        (False, "CAST('2025-01-31 10:00:00' AS TIMESTAMP)", datetime(2025, 1, 31, 10, tzinfo=UTC)),
        (False, "timestamp_ntz'2025-01-31 10:00:00'", "2025-01-31T10:00:00"),
        (None, ":v", 3),
        (None, ":t", "2025-01-31"),
    ],
)
def test_a_version_is_computed(*, is_number: bool | None, sql: str, value: object) -> None:
    parameters = {"v": 3, "t": "2025-01-31"}
    assert VersionExpression(is_number, sql).value(parameters) == value


def test_the_present_moment_is_known() -> None:
    ago = VersionExpression(is_number=False, sql="current_timestamp() - INTERVAL 2 HOURS").value({})
    assert isinstance(ago, datetime)
    assert timedelta(hours=1) < datetime.now(UTC) - ago < timedelta(hours=3)


@pytest.mark.parametrize(
    ("is_number", "sql", "problem"),
    [
        (True, "'3'", "expected the number of a version, found '3'"),
        (False, "3", "expected a timestamp"),
        (None, "true", "expected a version or timestamp, found True"),
        (None, "NULL", "found None"),
        (None, "id", "id"),
        (None, ":missing", "missing"),
    ],
)
def test_what_is_no_version_and_no_moment_is_refused(
    *, is_number: bool | None, sql: str, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        VersionExpression(is_number, sql).value({})
