from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from deltalog.errors import InvalidMetadataError
from deltalog.protocol.actions import Metadata, Protocol
from deltalog.protocol.column_mapping import Mode
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features.row_ids import Dialect
from deltalog.schema import Field, PrimitiveType, StructType, encode_schema

PLAIN = StructType(
    [
        Field("Id", PrimitiveType("long")),
        Field("p", PrimitiveType("string")),
        Field("v", PrimitiveType("double")),
    ]
)
MAPPED = StructType(
    [
        Field(
            name,
            PrimitiveType("long"),
            metadata={
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": f"col-{name}",
            },
        )
        for number, name in enumerate(("a", "b"), 1)
    ]
)


def table(
    reader: int = 1,
    writer: int = 2,
    readers: tuple[str, ...] | None = None,
    writers: tuple[str, ...] | None = None,
    *,
    configuration: dict[str, str] | None = None,
    schema: StructType = PLAIN,
    partitioned_by: tuple[str, ...] = (),
) -> TableConfiguration:
    return TableConfiguration(
        Protocol(
            min_reader_version=reader,
            min_writer_version=writer,
            reader_features=readers,
            writer_features=writers,
        ),
        Metadata(
            id="1",
            schema_string=encode_schema(schema),
            partition_columns=partitioned_by,
            configuration=configuration or {},
        ),
    )


NAME_MODE = {"delta.columnMapping.mode": "name"}


@pytest.mark.protocol("CM-01", "CM-02", "PROTO-07", "VER-02")
@pytest.mark.parametrize(
    ("mapped", "mode"),
    [
        (table(1, 2, configuration=NAME_MODE), Mode.NONE),
        (table(1, 5, configuration=NAME_MODE), Mode.NONE),
        (table(2, 5, configuration=NAME_MODE), Mode.NAME),
        (table(2, 6, configuration={"delta.columnMapping.mode": "id"}), Mode.ID),
        (table(2, 7, None, ("columnMapping",), configuration=NAME_MODE), Mode.NAME),
        (
            table(3, 7, ("columnMapping",), ("columnMapping",), configuration=NAME_MODE),
            Mode.NAME,
        ),
        (table(3, 7, (), (), configuration=NAME_MODE), Mode.NONE),
        # dat/iceberg_compat_v1: only the writers' list has it
        (
            table(3, 7, (), ("columnMapping", "icebergCompatV1"), configuration=NAME_MODE),
            Mode.NAME,
        ),
        (table(3, 7, ("columnMapping",), ("columnMapping",)), Mode.NONE),
    ],
)
def test_the_mode_needs_the_protocols_leave(mapped: TableConfiguration, mode: Mode) -> None:
    assert mapped.column_mapping_mode is mode


@pytest.mark.protocol("CM-01")
def test_an_unknown_mode_is_an_error() -> None:
    wrong = table(2, 5, configuration={"delta.columnMapping.mode": "names"})
    with pytest.raises(InvalidMetadataError, match="expected none, id or name, found 'names'"):
        _ = wrong.column_mapping_mode


@pytest.mark.protocol("CM-09", "CM-10")
def test_physical_names() -> None:
    mapped = table(2, 5, configuration=NAME_MODE, schema=MAPPED, partitioned_by=("B",))
    assert mapped.schema.names == ("a", "b")
    assert mapped.physical_schema.names == ("col-a", "col-b")
    assert mapped.partition_columns == ("b",)
    assert mapped.physical_partition_columns == ("col-b",)
    assert mapped.data_columns == ("a",)
    unmapped = table(1, 2, configuration=NAME_MODE, schema=MAPPED)
    assert unmapped.physical_schema.names == ("a", "b")


def test_a_mapped_table_without_ids_is_invalid() -> None:
    with pytest.raises(InvalidMetadataError, match=r"delta\.columnMapping\.id"):
        _ = table(2, 5, configuration=NAME_MODE).physical_schema


@pytest.mark.protocol("D-38", "D-66")
def test_partition_columns_in_the_schemas_case() -> None:
    parted = table(partitioned_by=("P", "id"))
    assert parted.partition_columns == ("p", "Id")
    assert parted.partition_schema.names == ("p", "Id")
    assert parted.data_columns == ("v",)


@pytest.mark.protocol("D-38")
def test_an_exact_name_wins() -> None:
    schema = StructType([Field("a", PrimitiveType("long")), Field("A", PrimitiveType("long"))])
    assert table(schema=schema, partitioned_by=("A",)).partition_columns == ("A",)


@pytest.mark.protocol("META-06")
def test_a_partition_column_that_is_not_there() -> None:
    with pytest.raises(InvalidMetadataError, match="found 'q'; the columns are Id, p, v"):
        _ = table(partitioned_by=("q",)).partition_columns


def test_the_arrow_schema() -> None:
    found = table().arrow_schema
    assert found.names == ["Id", "p", "v"]
    assert found.types == [pa.int64(), pa.string(), pa.float64()]


@pytest.mark.protocol("TF-05", "B-06", "VER-01")
def test_supported_is_not_active() -> None:
    plain = table()
    assert plain.supports("appendOnly")
    assert not plain.is_active("appendOnly")
    append_only = table(configuration={"delta.appendOnly": "true"})
    assert append_only.is_active("appendOnly")
    unlisted = table(1, 7, None, (), configuration={"delta.appendOnly": "true"})
    assert not unlisted.supports("appendOnly")
    assert not unlisted.is_active("appendOnly")


@pytest.mark.protocol("CDC-03", "TF-05")
def test_the_change_feed_needs_its_feature() -> None:
    on = {"delta.enableChangeDataFeed": "true"}
    assert table(1, 4, configuration=on).change_data_feed_enabled
    assert table(1, 7, None, ("changeDataFeed",), configuration=on).change_data_feed_enabled
    assert not table(1, 7, None, (), configuration=on).change_data_feed_enabled
    assert not table(1, 2, configuration=on).change_data_feed_enabled
    assert not table(1, 4).change_data_feed_enabled


@pytest.mark.protocol("DV-01", "B-30")
def test_the_property_only_gates_new_deletion_vectors() -> None:
    listed = table(3, 7, ("deletionVectors",), ("deletionVectors",))
    assert listed.may_have_deletion_vectors
    assert not listed.writes_deletion_vectors
    on = {"delta.enableDeletionVectors": "true"}
    assert not table(1, 2, configuration=on).may_have_deletion_vectors
    assert not table(1, 2, configuration=on).writes_deletion_vectors
    both = table(3, 7, ("deletionVectors",), ("deletionVectors",), configuration=on)
    assert both.writes_deletion_vectors


@pytest.mark.protocol("B-63", "B-10", "B-11")
def test_aliases_are_the_feature() -> None:
    preview = table(3, 7, ("typeWidening-preview", "timestampNTZ"), ("columnInvariants",))
    for name in ("typeWidening", "typeWidening-preview", "timestampNtz", "invariants"):
        assert preview.supports(name)
    assert not preview.supports("variantType")
    assert preview.features["typeWidening"] == "typeWidening-preview"


def test_a_feature_without_a_switch_is_active_when_listed() -> None:
    listed = table(1, 7, None, ("domainMetadata", "unheardOf"))
    assert listed.is_active("domainMetadata")
    assert listed.is_active("unheardOf")
    assert not table().is_active("unheardOf")


@pytest.mark.protocol("B-70", "B-71", "B-74", "ROWID-03", "ROWID-12")
def test_row_ids_in_both_dialects() -> None:
    current = table(
        1,
        7,
        None,
        ("rowTracking", "domainMetadata"),
        configuration={
            "delta.enableRowTracking": "true",
            "delta.rowTracking.materializedRowIdColumnName": "_row-id",
            "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-cv",
        },
    )
    assert current.row_id_dialect is Dialect.CURRENT
    assert current.row_ids_enabled
    assert (current.row_id_column, current.row_commit_version_column) == ("_row-id", "_row-cv")
    assert "_row-id" not in current.schema.names
    draft = table(
        1,
        7,
        None,
        ("delta.rowIds",),
        configuration={"delta.enableRowIds": "true", "delta.rowIds.physicalColumnName": "rid"},
    )
    assert draft.row_id_dialect is Dialect.DRAFT
    assert draft.row_ids_enabled
    assert (draft.row_id_column, draft.row_commit_version_column) == ("rid", None)
    assert table().row_id_dialect is None
    assert not table(configuration={"delta.enableRowTracking": "true"}).row_ids_enabled


@pytest.mark.protocol("B-22")
def test_in_commit_timestamps_need_feature_and_property() -> None:
    on = {"delta.enableInCommitTimestamps": "true"}
    assert table(1, 7, None, ("inCommitTimestamp",), configuration=on).in_commit_timestamps
    assert table(1, 7, None, ("inCommitTimestamp",)).in_commit_timestamps is None
    assert table(configuration=on).in_commit_timestamps is None


@pytest.mark.protocol("B-56")
def test_catalog_managed_tables() -> None:
    assert table(3, 7, ("catalogOwned",), ("catalogOwned",)).is_catalog_managed
    assert not table().is_catalog_managed


def test_a_configuration_pickles_with_its_answers() -> None:
    one = table(partitioned_by=("p",))
    assert one.partition_columns == ("p",)
    other = pickle.loads(pickle.dumps(one))
    assert other == one
    assert other.data_columns == ("Id", "v")
