"""A table replaced by another: properties and ids of old and new."""

from __future__ import annotations

import itertools

import pytest

from deltalog.actions.properties import TableProperties
from deltalog.column_mapping import validate
from deltalog.context import utc_context
from deltalog.engine import LocalEngine
from deltalog.schema import Field, StructType
from deltalog.table_change import new_table
from deltalog.transaction import PendingTransaction
from deltalog.verbs.create import Create, Replace
from deltalog.verbs.do import make_table
from tests.support.logs import DictStore

SCHEMA = StructType([Field("id", "long"), Field("p", "string")])
OPTIONS: list[dict[str, str]] = [
    {},
    {"delta.columnMapping.mode": "name"},
    {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"},
    {"delta.enableInCommitTimestamps": "true"},
    {"delta.enableIcebergCompatV2": "true"},
]


def replaced(before: dict[str, str], after: dict[str, str]) -> PendingTransaction:
    store = DictStore()
    old = new_table(SCHEMA, configuration=before, created_time_ms=1)
    base = make_table(Create(), utc_context(store), old, LocalEngine()).committed.snapshot
    pending = PendingTransaction(base.context, base, operation="")
    wanted = new_table(SCHEMA, configuration=after, partition_columns=["p"], created_time_ms=2)
    Replace(wanted).stage(pending, LocalEngine())
    return pending


@pytest.mark.parametrize(("before", "after"), list(itertools.product(OPTIONS, OPTIONS)))
def test_any_table_takes_the_place_of_any(before: dict[str, str], after: dict[str, str]) -> None:
    found = replaced(before, after).configuration
    assert found.partition_columns == ("p",)
    for key, text in after.items():
        assert found.metadata.configuration[key] == text
    validate(found.schema, found.column_mapping_mode)
    highest = found.properties.column_mapping_max_column_id
    assert highest >= TableProperties(before).column_mapping_max_column_id


@pytest.mark.protocol("B-22")
def test_times_of_commits_go_on_in_a_replaced_table() -> None:
    found = replaced({"delta.enableInCommitTimestamps": "true"}, {}).configuration
    assert found.in_commit_timestamps is not None
