from __future__ import annotations

import contextlib

import pytest

from deltalog.errors import DeltaProtocolError, InvalidInputError, MalformedLogError
from deltalog.protocol.actions import CommitInfo, DomainMetadata
from deltalog.protocol.actions.model import RowIdHighWaterMark
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.features.row_ids import (
    ROW_TRACKING_DOMAIN,
    Dialect,
    check_change,
    check_enabled,
    dialect_of,
    high_water_mark,
    high_water_mark_action,
    is_assigning,
    is_enabled,
    preserved_row_ids,
    row_commit_version_column,
    row_id_column,
)

CURRENT = TableProperties(
    {
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
    }
)
DRAFT = TableProperties({"delta.enableRowIds": "true", "delta.rowIds.physicalColumnName": "rid"})


def domain(text: str, *, removed: bool = False) -> dict[str, DomainMetadata]:
    action = DomainMetadata(domain=ROW_TRACKING_DOMAIN, configuration=text, removed=removed)
    return {ROW_TRACKING_DOMAIN: action}


@pytest.mark.protocol("B-70", "B-12", "ROWID-05")
def test_the_dialect_of_a_table() -> None:
    assert dialect_of({"rowTracking", "domainMetadata"}) is Dialect.CURRENT
    assert dialect_of({"rowIds"}) is Dialect.DRAFT
    assert dialect_of({"rowIds", "rowTracking"}) is Dialect.CURRENT
    assert dialect_of({"appendOnly"}) is None


@pytest.mark.protocol("B-71", "ROWID-11", "ROWID-12")
def test_each_dialect_has_its_own_switch() -> None:
    assert is_enabled(Dialect.CURRENT, CURRENT)
    assert is_enabled(Dialect.DRAFT, DRAFT)
    assert not is_enabled(Dialect.CURRENT, DRAFT)
    assert not is_enabled(Dialect.DRAFT, CURRENT)
    assert not is_enabled(None, CURRENT)


@pytest.mark.protocol("ROWID-12")
def test_ids_that_may_not_last_are_not_shown() -> None:
    check_enabled(Dialect.CURRENT, CURRENT, "t")
    with pytest.raises(DeltaProtocolError, match="row tracking is not enabled"):
        check_enabled(Dialect.CURRENT, TableProperties({}), "t")


@pytest.mark.protocol("ROWID-03", "B-74", "B-75")
def test_the_hidden_columns() -> None:
    assert row_id_column(Dialect.CURRENT, CURRENT) == "_row-id-col-1"
    assert row_commit_version_column(Dialect.CURRENT, CURRENT) == "_row-commit-version-col-1"
    assert row_id_column(Dialect.DRAFT, DRAFT) == "rid"
    assert row_commit_version_column(Dialect.DRAFT, CURRENT) is None
    assert row_id_column(None, CURRENT) is None


@pytest.mark.protocol("B-76", "ROWID-05")
def test_ids_are_given_where_supported_and_not_suspended() -> None:
    suspended = TableProperties({"delta.rowTrackingSuspended": "true"})
    assert is_assigning(Dialect.CURRENT, TableProperties({}))
    assert not is_assigning(Dialect.CURRENT, suspended)
    assert not is_assigning(None, CURRENT)


DRAFT_FEATURES = ["rowIds", "domainMetadata"]
BOTH = [*DRAFT_FEATURES, "rowTracking"]


@pytest.mark.parametrize(
    ("features", "before", "was_enabled", "properties", "refused"),
    [
        (DRAFT_FEATURES, None, False, DRAFT, False),
        (BOTH, None, False, CURRENT, True),
        (BOTH, DRAFT_FEATURES, False, CURRENT, True),
        (BOTH, ["rowTracking"], True, CURRENT, True),
        (BOTH, BOTH, False, CURRENT, True),
        (BOTH, BOTH, True, CURRENT, False),
        (BOTH, BOTH, False, DRAFT, False),
    ],
)
def test_no_row_gets_two_ids(
    features: list[str],
    before: list[str] | None,
    was_enabled: bool,
    properties: TableProperties,
    refused: bool,
) -> None:
    with pytest.raises(InvalidInputError) if refused else contextlib.nullcontext():
        check_change(
            features,
            properties,
            before=before,
            was_enabled=was_enabled,
            table="t",
            operation="WRITE",
        )


@pytest.mark.protocol("B-72", "HWM-02")
def test_the_mark_in_both_forms() -> None:
    action = RowIdHighWaterMark(high_water_mark=12, preserved_row_ids=True)
    spark = '{"rowIdHighWaterMark":9,"domainName":"delta.rowTracking"}'
    assert high_water_mark(domain(spark)) == 9
    assert high_water_mark({}, action) == 12
    assert high_water_mark(domain(spark), action) == 12
    assert high_water_mark(domain('{"rowIdHighWaterMark":30}'), action) == 30
    assert high_water_mark(domain(spark, removed=True)) is None
    assert high_water_mark({}) is None


@pytest.mark.parametrize("text", ["", "{}", '{"rowIdHighWaterMark":"9"}', "[]"])
def test_a_broken_mark_is_an_error(text: str) -> None:
    with pytest.raises(MalformedLogError, match=r"delta\.rowTracking"):
        high_water_mark(domain(text))


@pytest.mark.protocol("B-72", "B-70")
@pytest.mark.parametrize("dialect", Dialect)
def test_a_mark_is_read_back(dialect: Dialect) -> None:
    action = high_water_mark_action(dialect, 7, preserved=False)
    if isinstance(action, RowIdHighWaterMark):
        assert action == RowIdHighWaterMark(high_water_mark=7, preserved_row_ids=False)
    else:
        assert dialect is Dialect.CURRENT
        assert action.configuration == '{"rowIdHighWaterMark":7,"domainName":"delta.rowTracking"}'
        assert high_water_mark({action.domain: action}) == 7


@pytest.mark.protocol("B-73")
@pytest.mark.parametrize(
    ("values", "preserved"),
    [
        ({"tags": {"delta.rowTracking.preserved": "true"}}, True),
        ({"tags": {"delta.rowTracking.preserved": "false"}}, False),
        ({"tags": {}}, None),
        ({"tags": None}, None),
        ({}, None),
    ],
)
def test_whether_ids_were_kept(values: dict[str, object], preserved: bool | None) -> None:
    assert preserved_row_ids(CommitInfo(values=values)) is preserved


@pytest.mark.protocol("B-73")
def test_the_draft_says_it_in_its_action() -> None:
    action = RowIdHighWaterMark(high_water_mark=1, preserved_row_ids=False)
    assert preserved_row_ids(None, action) is False
    assert preserved_row_ids(None) is None
