"""Law: a table after any allowed changes can be read and written, and no feature is ever lost."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from deltalog.errors import DeltaError
from deltalog.protocol.column_mapping import Mode, validate
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features import FEATURES, check_readable
from deltalog.protocol.features.protocol_change import normalise
from deltalog.protocol.features.support import (
    check_protocol,
    check_writable,
    misplaced_reader_features,
)
from deltalog.protocol.table_change.change import changed_table, new_table
from deltalog.schema import Field, StructType
from deltalog.schema import evolve as alter

Change = Callable[[TableConfiguration], TableConfiguration]

PROPERTIES = {
    "delta.appendOnly": ("true", "false"),
    "delta.columnMapping.mode": ("none", "name", "id"),
    "delta.enableChangeDataFeed": ("true", "false"),
    "delta.enableDeletionVectors": ("true", "false"),
    "delta.enableIcebergCompatV1": ("true", "false"),
    "delta.enableIcebergCompatV2": ("true", "false"),
    "delta.enableInCommitTimestamps": ("true", "false"),
    "delta.enableRowTracking": ("true", "false"),
    "delta.enableTypeWidening": ("true", "false"),
    "delta.checkpointPolicy": ("v2", "classic"),
    "delta.constraints.c": ("a > 0", "b IS NOT NULL"),
    "delta.minWriterVersion": ("2", "3", "4", "5", "6", "7"),
    "delta.minReaderVersion": ("1", "2"),
    "delta.feature.vacuumProtocolCheck": ("supported",),
}
NAMES = st.sampled_from(["a", "b", "c", "A", "c d", "_change_type"])
TYPES = st.sampled_from(["byte", "integer", "long", "double", "timestamp_ntz", "variant", "date"])


def set_property(item: tuple[str, str]) -> Change:
    key, text = item
    return lambda table: changed_table(
        table, configuration={**table.metadata.configuration, key: text}
    )


def unset_property(key: str) -> Change:
    def change(table: TableConfiguration) -> TableConfiguration:
        kept = {k: text for k, text in table.metadata.configuration.items() if k != key}
        return changed_table(table, configuration=kept)

    return change


def add_feature(name: str) -> Change:
    return lambda table: changed_table(table, features=[name])


def edit(change: Callable[[StructType], StructType]) -> Change:
    return lambda table: changed_table(table, schema=change(table.schema))


CHANGES = st.one_of(
    st.sampled_from([(key, text) for key, texts in PROPERTIES.items() for text in texts]).map(
        set_property
    ),
    st.sampled_from(sorted(PROPERTIES)).map(unset_property),
    st.sampled_from(sorted(FEATURES)).map(add_feature),
    st.tuples(NAMES, TYPES).map(lambda x: edit(lambda s: alter.add_column(s, Field(*x)))),
    NAMES.map(lambda name: edit(lambda s: alter.drop_column(s, (name,)))),
    st.tuples(NAMES, NAMES).map(lambda x: edit(lambda s: alter.rename_column(s, (x[0],), x[1]))),
    st.tuples(NAMES, TYPES).map(
        lambda x: edit(lambda s: alter.change_type(s, (x[0],), Field("", x[1]).type))
    ),
)


@given(
    st.dictionaries(
        st.sampled_from(["delta.columnMapping.mode", "delta.enableTypeWidening"]),
        st.just("name") | st.just("true"),
    ),
    st.lists(CHANGES, max_size=12),
)
def test_allowed_changes_leave_a_table_that_works(
    properties: dict[str, str], changes: list[Change]
) -> None:
    configuration = {
        key: "name" if key.endswith("mode") else "true" for key, _ in properties.items()
    }
    schema = StructType([Field("a", "integer"), Field("b", "date")])
    table = new_table(schema, configuration=configuration, created_time_ms=1)
    for change in changes:
        try:
            after = change(table)
        except DeltaError:
            continue
        assert set(table.features) <= set(after.features)
        check_protocol(after.protocol)
        check_readable(after, table="t")
        check_writable(after, table="t")
        assert misplaced_reader_features(after.protocol) == ()
        assert normalise(after.protocol) == after.protocol
        highest = after.properties.column_mapping_max_column_id
        validate(after.schema, after.column_mapping_mode, max_id=highest)
        assert highest >= table.properties.column_mapping_max_column_id
        if table.column_mapping_mode is not Mode.NONE:
            assert after.column_mapping_mode is table.column_mapping_mode
        table = after
