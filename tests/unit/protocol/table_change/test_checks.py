from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import DeltaError, InvalidInputError, UnsupportedFeatureError
from deltalog.protocol.actions import Metadata, Protocol
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features.support import check_writable
from deltalog.protocol.table_change.change import changed_table
from deltalog.protocol.table_change.checks import engines_losing_access
from deltalog.schema import ArrayType, Field, MapType, StructType, encode_schema
from tests.support.table_changes import (
    IDENTITY,
    MAPPED,
    NESTED,
    PLAIN,
    columns,
    table,
    with_properties,
)


@pytest.mark.protocol("B-35", "CM-07")
@pytest.mark.parametrize(
    ("mode", "then"),
    [("none", "id"), ("name", "none"), ("name", "id"), ("id", "name"), ("id", "none")],
)
def test_illegal_changes_of_the_mapping_mode(mode: str, then: str) -> None:
    before = table(configuration={"delta.columnMapping.mode": mode})
    with pytest.raises(InvalidInputError, match="columnMapping"):
        with_properties(before, columnMapping__mode=then)


@pytest.mark.protocol("B-35")
def test_mapping_cannot_be_unset_while_files_stay() -> None:
    before = table(configuration=MAPPED)
    with pytest.raises(InvalidInputError, match=r"from name to none"):
        changed_table(before, configuration={})
    assert changed_table(before, configuration={}, replaces_data=True).schema is not None


def test_partitioning_changes_only_with_the_data() -> None:
    before = table(partition_columns=["p"])
    with pytest.raises(InvalidInputError, match="partition columns"):
        changed_table(before, partition_columns=["n"])
    after = changed_table(
        before, schema=StructType([Field("p", "integer"), Field("q", "long")]),
        partition_columns=["q"], replaces_data=True,
    )  # fmt: skip
    assert after.partition_columns == ("q",)


@pytest.mark.protocol("CON-07")
@pytest.mark.parametrize("change", ["drop", "rename", "type"])
def test_columns_that_a_rule_names_stay(change: str) -> None:
    fields = (
        Field("id", "integer"),
        Field("v", "string"),
        Field("g", "integer", metadata={"delta.generationExpression": "length(v)"}),
    )
    before = table(
        StructType(fields),
        configuration={
            **MAPPED,
            "delta.constraints.c": "id > 0",
            "delta.enableTypeWidening": "true",
        },
    )
    id_, v, g = before.schema.fields
    changed = {
        "drop": [v, g],
        "rename": [Field("i", "integer", metadata=id_.metadata), v, g],
        "type": [Field("id", "long", metadata=id_.metadata), v, g],
    }
    with pytest.raises(InvalidInputError, match=r"CHECK constraint 'c' \(id > 0\) depends on it"):
        changed_table(before, schema=StructType(changed[change]))
    with pytest.raises(InvalidInputError, match="generated column 'g'"):
        changed_table(before, schema=StructType([id_, g]))
    without = changed_table(before, schema=StructType([id_]))
    assert without.schema.names == ("id",)


@pytest.mark.protocol("GEN-04", "D-40", "IDN-01", "IDN-08", "B-58", "B-59", "INV-03", "CON-04")
@pytest.mark.parametrize(
    ("field", "message"),
    [
        (
            Field("g", "long", metadata={"delta.generationExpression": "g + 1"}),
            "also a generated column",
        ),
        (Field("g", "string", metadata={"delta.generationExpression": "id"}), "declared as string"),
        (Field("g", "long", metadata={"delta.generationExpression": "nope"}), "no column 'nope'"),
        (
            Field("g", "double", metadata={"delta.generationExpression": "rand()"}),
            "only a query can use it",
        ),
        (Field("g", "long", metadata={"delta.generationExpression": "my_udf(id)"}), "no SQL func"),
        (Field("g", "long", metadata={"delta.generationExpression": "sum(id)"}), "no SQL function"),
        (
            Field("g", "timestamp", metadata={"delta.generationExpression": "current_timestamp()"}),
            "its value changes with time",
        ),
        (Field("i", "integer", metadata=IDENTITY), "expected the type long"),
        (Field("i", "long", metadata={**IDENTITY, "delta.identity.step": 0}), "not 0"),
        (Field("s", StructType([Field("i", "long", metadata=IDENTITY)])), "only a column can"),
        (
            Field("i", "long", metadata={**IDENTITY, "CURRENT_DEFAULT": "1"}),
            "cannot be identity and default at once",
        ),
        (Field("d", "integer", metadata={"CURRENT_DEFAULT": "'x'"}), "cannot hold"),
        (Field("d", "integer", metadata={"CURRENT_DEFAULT": "id"}), "a default is a constant"),
        (Field("d", "byte", metadata={"CURRENT_DEFAULT": "300"}), "out of range"),
        (Field("d", "byte", metadata={"CURRENT_DEFAULT": "my_udf()"}), "no SQL function"),
        (
            Field(
                "x", "long", metadata={"delta.invariants": '{"expression":{"expression":"y>1"}}'}
            ),
            "no column 'y'",
        ),
    ],
)
def test_declarations_that_no_writer_could_keep(field: Field, message: str) -> None:
    with pytest.raises(DeltaError, match=message):
        table(columns(field))


@pytest.mark.protocol("GEN-04", "D-40")
def test_a_generated_column_cannot_use_another() -> None:
    one = Field("g", "long", metadata={"delta.generationExpression": "id + 1"})
    two = Field("h", "long", metadata={"delta.generationExpression": "g + 1"})
    with pytest.raises(InvalidInputError, match="cannot use g"):
        table(columns(one, two))


@pytest.mark.protocol("B-58")
@pytest.mark.parametrize("default", ["NULL", "3", "current_timestamp()", "'2020-01-01'"])
def test_defaults_that_fit(default: str) -> None:
    kind = {"3": "byte", "NULL": "byte", "'2020-01-01'": "string"}.get(default, "timestamp")
    made = table(columns(Field("d", kind, metadata={"CURRENT_DEFAULT": default})))
    assert made.schema.fields[1].metadata["CURRENT_DEFAULT"] == default


def test_declarations_of_before_are_not_looked_at_again() -> None:
    theirs = Field("g", "string", metadata={"delta.generationExpression": "their_function(id)"})
    made = table(columns(Field("x", "long")))
    metadata = Metadata(
        id="1",
        schema_string=encode_schema(columns(theirs, Field("x", "long"))),
        configuration={"delta.constraints.c": "their_function(id) > 1"},
    )
    before = TableConfiguration(
        changed_table(made, features=["generatedColumns"]).protocol, metadata
    )
    after = changed_table(before, schema=StructType([*before.schema.fields, Field("y", "long")]))
    assert after.schema.names[-1] == "y"


def test_the_columns_with_statistics_are_there() -> None:
    with pytest.raises(InvalidInputError, match="no column 'nope'"):
        table(configuration={"delta.dataSkippingStatsColumns": "id,nope"})
    made = table(NESTED, configuration={"delta.dataSkippingStatsColumns": "ID, s.x"})
    assert made.properties.data_skipping_stats_columns == (("ID",), ("s", "x"))


def test_a_table_that_a_catalog_manages_goes_on_through_it() -> None:
    lists = ("catalogManaged", "vacuumProtocolCheck")
    protocol = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=lists,
        writer_features=(*lists, "inCommitTimestamp"),
    )
    metadata = table(configuration={"delta.enableInCommitTimestamps": "true"}).metadata
    after = with_properties(TableConfiguration(protocol, metadata), appendOnly="true")
    assert after.is_catalog_managed
    assert after.properties.append_only


def test_an_identity_column_cannot_partition() -> None:
    with pytest.raises(InvalidInputError, match="identity column 'i'"):
        table(columns(Field("i", "long", metadata=IDENTITY)), partition_columns=["i"])


@pytest.mark.protocol("B-53")
@pytest.mark.parametrize(
    ("properties", "schema", "message"),
    [
        ({"enableIcebergCompatV1": "true"}, columns(Field("a", ArrayType("long"))), "array"),
        ({"enableIcebergCompatV1": "true"}, columns(Field("m", MapType("long", "long"))), "map"),
        ({"enableIcebergCompatV2": "true"}, columns(Field("v", "variant")), "variant"),
        ({"enableIcebergCompatV2": "true"}, columns(Field("v", "void")), "void"),
        (
            {"enableIcebergCompatV1": "true", "enableIcebergCompatV2": "true"},
            *(PLAIN, "expected one version"),
        ),
        (
            {"enableIcebergCompatV2": "true", "enableDeletionVectors": "true"},
            *(PLAIN, "deletion vectors"),
        ),
        (
            {"enableIcebergCompatV1": "true", "feature.deletionVectors": "supported"},
            *(PLAIN, "deletion vectors"),
        ),
        (
            {"enableIcebergCompatV2": "true", "columnMapping.mode": "none"},
            *(PLAIN, "needs column mapping"),
        ),
    ],
)
def test_tables_that_iceberg_cannot_follow(
    properties: dict[str, str], schema: StructType, message: str
) -> None:
    configuration = {f"delta.{key}": text for key, text in properties.items()}
    with pytest.raises(InvalidInputError, match=message):
        table(schema, configuration=configuration)


@pytest.mark.protocol("B-53")
def test_iceberg_on_an_existing_table_needs_its_mapping_first() -> None:
    with pytest.raises(InvalidInputError, match="needs column mapping"):
        with_properties(table(), enableIcebergCompatV2="true")
    after = with_properties(
        with_properties(table(), columnMapping__mode="name"), enableIcebergCompatV2="true"
    )
    assert after.supports("icebergCompatV2")
    with pytest.raises(InvalidInputError, match="deletion vectors"):
        with_properties(after, enableDeletionVectors="true")


@pytest.mark.protocol("B-52")
@pytest.mark.parametrize(
    ("columns_", "options", "message"),
    [
        (["flag"], {}, "no minimum and maximum"),
        (["list"], {}, "no minimum and maximum"),
        (["nope"], {}, "no column 'nope'"),
        (["id", "ID"], {}, "given twice"),
        (["id"], {"partition_columns": ["flag"]}, "clustered or partitioned"),
        (["id"], {"configuration": {"delta.dataSkippingStatsColumns": "flag"}}, "no statistics"),
    ],
)
def test_columns_that_cannot_cluster(
    columns_: list[str], options: dict[str, Any], message: str
) -> None:
    schema = columns(Field("flag", "boolean"), Field("list", ArrayType("long")))
    with pytest.raises(InvalidInputError, match=message):
        table(schema, clustering_columns=columns_, **options)


@pytest.mark.protocol("D-44")
def test_columns_of_the_change_feed_are_reserved() -> None:
    schema = columns(Field("_Change_Type", "string"))
    with pytest.raises(InvalidInputError, match="_Change_Type"):
        table(schema, configuration={"delta.enableChangeDataFeed": "true"})
    with pytest.raises(InvalidInputError, match="_Change_Type"):
        with_properties(table(schema), enableChangeDataFeed="true")


@pytest.mark.parametrize(
    "feature", ["catalogManaged", "adaptiveMetadata-preview", "icebergWriterCompatV3", "liquid"]
)
def test_a_change_never_bricks_the_table(feature: str) -> None:
    with pytest.raises(DeltaError) as caught:
        changed_table(table(), features=[feature])
    assert feature in str(caught.value)
    with pytest.raises(UnsupportedFeatureError):
        table(configuration={"delta.enableIcebergWriterCompatV3": "true"})


@pytest.mark.parametrize(
    "feature",
    ["rowTracking", "identityColumns", "domainMetadata", "icebergCompatV1", "deletionVectors"],
)
def test_a_feature_that_was_added_leaves_the_table_writable(feature: str) -> None:
    check_writable(changed_table(table(), features=[feature]), table="t")


def test_who_loses_access() -> None:
    before = table().protocol
    after = table(configuration={"delta.enableTypeWidening": "true"}).protocol
    lost = engines_losing_access(before, after)
    assert {"deltalake 1.6: scan", "Polars 2.1"} <= set(lost)
    assert engines_losing_access(before, before) == ()
    tracked = table(configuration={"delta.enableRowTracking": "true"}).protocol
    assert engines_losing_access(before, tracked) == ()
    assert "deltalake 1.6" in engines_losing_access(before, tracked, writing=True)
