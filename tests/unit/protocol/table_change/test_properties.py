from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.protocol.actions import Metadata
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.table_change.change import changed_table
from deltalog.schema import Field, StructType
from tests.support.table_changes import MAPPED, table, with_properties


@pytest.mark.protocol("CM-07")
@pytest.mark.parametrize(
    "key",
    [
        "delta.columnMapping.maxColumnId",
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.inCommitTimestampEnablementVersion",
        "delta.requireCheckpointProtectionBeforeVersion",
    ],
)
def test_what_writers_keep_is_not_for_users(key: str) -> None:
    with pytest.raises(InvalidInputError, match=key):
        table(configuration={key: "99"})
    before = table(configuration={**MAPPED, "delta.enableRowTracking": "true"})
    with pytest.raises(InvalidInputError, match=key):
        changed_table(before, configuration={**before.metadata.configuration, key: "99"})


def test_what_writers_keep_stays_when_all_properties_are_replaced() -> None:
    before = table(configuration={**MAPPED, "delta.enableRowTracking": "true", "mine": "1"})
    after = changed_table(before, configuration=MAPPED)
    kept = {
        key: text
        for key, text in before.metadata.configuration.items()
        if "materialized" in key or "maxColumnId" in key
    }
    assert len(kept) == 3
    assert after.metadata.configuration == {**MAPPED, **kept}


@pytest.mark.protocol("ROWID-03", "ROWID-04", "B-74", "B-75")
@pytest.mark.parametrize("how", ["delta.enableRowTracking", "delta.feature.rowTracking"])
def test_hidden_columns_of_row_ids_are_named_once(how: str) -> None:
    before = with_properties(
        table(),
        **{
            how.removeprefix("delta.").replace(".", "__"): "true"
            if "enable" in how
            else "supported"
        },
    )
    assert before.row_id_column is not None
    assert before.row_commit_version_column is not None
    assert before.row_id_column.startswith("_row-id-col-")
    assert before.row_commit_version_column.startswith("_row-commit-version-col-")
    assert before.row_id_column not in before.schema.names
    after = with_properties(before, appendOnly="true")
    assert after.row_id_column == before.row_id_column
    taken = StructType([*before.schema.fields, Field(before.row_id_column, "long")])
    with pytest.raises(InvalidInputError, match="row ids"):
        changed_table(before, schema=taken)


@pytest.mark.protocol("B-70", "B-71", "B-74", "B-78")
def test_the_drafts_row_ids_only_where_they_are() -> None:
    with pytest.raises(InvalidInputError, match="enableRowTracking"):
        table(configuration={"delta.enableRowIds": "true"})
    made = table(configuration={"delta.enableRowIds": "true"}, features=["rowIds"])
    assert made.row_ids_enabled
    assert made.row_id_column is not None


@pytest.mark.protocol("APP-03", "APP-04", "PROP-01", "D-38")
def test_properties_are_checked_only_where_they_change() -> None:
    odd = TableConfiguration(
        table().protocol,
        Metadata(
            id="1",
            schema_string=table().metadata.schema_string,
            configuration={"delta.unheardOf": "1", "delta.appendOnly": "TRUE"},
        ),
    )
    after = changed_table(odd, configuration={**odd.metadata.configuration, "mine": "1"})
    assert after.metadata.configuration["delta.unheardOf"] == "1"
    assert after.properties.append_only
    with pytest.raises(InvalidInputError, match=r"did you mean 'delta\.appendOnly'"):
        table(configuration={"delta.appendOnl": "true"})
    with pytest.raises(InvalidInputError, match="expected true or false"):
        table(configuration={"delta.appendOnly": "yes"})


def test_a_switched_off_time_of_commits_leaves_no_trace_for_the_next_time() -> None:
    before = table()
    old = Metadata(
        id="1",
        schema_string=before.metadata.schema_string,
        configuration={
            "delta.enableInCommitTimestamps": "false",
            "delta.inCommitTimestampEnablementVersion": "2",
            "delta.inCommitTimestampEnablementTimestamp": "1000",
        },
    )
    after = with_properties(
        TableConfiguration(before.protocol, old), enableInCommitTimestamps="true"
    )
    assert after.metadata.configuration == {"delta.enableInCommitTimestamps": "true"}
