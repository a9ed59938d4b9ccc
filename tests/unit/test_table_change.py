"""Protocol, metadata and schema after each change of a table."""

from __future__ import annotations

import re
from typing import Any

import pytest

from deltalog.actions import Metadata, Protocol
from deltalog.column_mapping import field_id, physical_name
from deltalog.configuration import TableConfiguration
from deltalog.errors import DeltaError, InvalidInputError, UnsupportedFeatureError
from deltalog.features.registry import OtherEngine
from deltalog.features.support import check_protocol, check_writable
from deltalog.schema import ArrayType, Field, MapType, StructType, encode_schema, find_field
from deltalog.schema.columns import walk
from deltalog.table_change import changed_table, engines_losing_access, new_table

PLAIN = StructType([Field("id", "long"), Field("p", "string"), Field("n", "integer")])
NESTED = StructType(
    [
        Field("id", "long"),
        Field("s", StructType([Field("x", "integer"), Field("y", "string")])),
        Field("a", ArrayType(StructType([Field("z", "short")]))),
    ]
)
IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1}
MAPPED = {"delta.columnMapping.mode": "name"}


def table(schema: StructType = PLAIN, **options: Any) -> TableConfiguration:
    return new_table(schema, created_time_ms=1_700_000_000_000, **options)


def with_properties(before: TableConfiguration, **properties: str) -> TableConfiguration:
    texts = {f"delta.{key.replace('__', '.')}": text for key, text in properties.items()}
    return changed_table(before, configuration={**before.metadata.configuration, **texts})


def versions(protocol: Protocol) -> tuple[int, int]:
    return protocol.min_reader_version, protocol.min_writer_version


def columns(*fields: Field) -> StructType:
    return StructType([Field("id", "long"), *fields])


@pytest.mark.protocol("UPG-03", "UPG-04", "B-08", "B-39", "TF-02", "TF-03", "GEN-03", "IDN-08")
@pytest.mark.parametrize(
    ("schema", "options", "reader", "writer", "readers", "writers"),
    [
        (PLAIN, {}, 1, 2, None, None),
        (PLAIN, {"configuration": {"delta.appendOnly": "true"}}, 1, 2, None, None),
        (PLAIN, {"configuration": {"delta.constraints.c": "id > 0"}}, 1, 3, None, None),
        (
            PLAIN,
            {"configuration": {"delta.enableChangeDataFeed": "true"}},
            *(1, 7, None, {"changeDataFeed"}),
        ),
        (PLAIN, {"configuration": MAPPED}, 2, 7, None, {"columnMapping"}),
        (
            PLAIN,
            {"configuration": {"delta.enableDeletionVectors": "true"}},
            *(3, 7, {"deletionVectors"}, {"deletionVectors"}),
        ),
        (
            PLAIN,
            {"configuration": {"delta.enableRowTracking": "true"}},
            *(1, 7, None, {"rowTracking", "domainMetadata"}),
        ),
        (
            PLAIN,
            {"configuration": {"delta.enableInCommitTimestamps": "true"}},
            *(1, 7, None, {"inCommitTimestamp"}),
        ),
        (
            PLAIN,
            {"configuration": {"delta.checkpointPolicy": "v2"}},
            *(3, 7, {"v2Checkpoint"}, {"v2Checkpoint"}),
        ),
        (
            PLAIN,
            {"configuration": {"delta.enableTypeWidening": "true"}},
            *(3, 7, {"typeWidening"}, {"typeWidening"}),
        ),
        (
            PLAIN,
            {"configuration": {"delta.enableIcebergCompatV2": "true"}},
            *(2, 7, None, {"columnMapping", "icebergCompatV2"}),
        ),
        (
            PLAIN,
            {"configuration": {"delta.feature.vacuumProtocolCheck": "supported"}},
            *(3, 7, {"vacuumProtocolCheck"}, {"vacuumProtocolCheck"}),
        ),
        (
            PLAIN,
            {"clustering_columns": ["id"]},
            *(1, 7, None, {"clustering", "domainMetadata"}),
        ),
        (PLAIN, {"features": ["domainMetadata"]}, 1, 7, None, {"domainMetadata"}),
        (
            PLAIN,
            {"configuration": {"delta.minReaderVersion": "1", "delta.minWriterVersion": "4"}},
            *(1, 4, None, None),
        ),
        (
            PLAIN,
            {"configuration": {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}},
            *(1, 2, None, None),
        ),
        (
            columns(Field("t", "timestamp_ntz")),
            {},
            *(3, 7, {"timestampNtz"}, {"timestampNtz"}),
        ),
        (columns(Field("v", "variant")), {}, 3, 7, {"variantType"}, {"variantType"}),
        (
            columns(Field("g", "long", metadata={"delta.generationExpression": "id + 1"})),
            {},
            *(1, 7, None, {"generatedColumns"}),
        ),
        (columns(Field("i", "long", metadata=IDENTITY)), {}, 1, 7, None, {"identityColumns"}),
        (
            columns(Field("d", "integer", metadata={"CURRENT_DEFAULT": "3"})),
            {},
            *(1, 7, None, {"allowColumnDefaults"}),
        ),
    ],
)
def test_a_new_table_has_the_least_protocol(
    schema: StructType,
    options: dict[str, Any],
    reader: int,
    writer: int,
    readers: set[str] | None,
    writers: set[str] | None,
) -> None:
    made = table(schema, **options)
    protocol = made.protocol
    assert versions(protocol) == (reader, writer)
    assert (None if readers is None else set(protocol.reader_features or ())) == readers
    if writers is not None:
        assert set(protocol.writer_features or ()) == writers | {"appendOnly", "invariants"}
    check_protocol(protocol)


@pytest.mark.protocol("META-01", "META-04", "META-06", "UPG-06")
def test_metadata_of_a_new_table() -> None:
    made = table(
        partition_columns=["P"],
        configuration={
            "delta.appendonly": "true",
            "mine": "kept",
            "delta.feature.domainMetadata": "supported",
            "delta.minWriterVersion": "3",
        },
        name="t",
        description="about t",
    )
    metadata = made.metadata
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata.id)
    assert metadata.partition_columns == ("p",)
    assert metadata.configuration == {"delta.appendOnly": "true", "mine": "kept"}
    assert (metadata.name, metadata.description) == ("t", "about t")
    assert metadata.created_time_ms == 1_700_000_000_000
    assert (metadata.format.provider, metadata.format.options) == ("parquet", {})
    assert table(table_id="x").metadata.id == "x"


@pytest.mark.protocol("CM-03", "CM-06", "CM-07", "CM-10")
def test_a_new_mapped_table_has_random_physical_names() -> None:
    made = table(NESTED, configuration=MAPPED)
    fields = [field for _, field in walk(made.schema)]
    assert [field_id(field) for field in fields] == [1, 2, 3, 4, 5, 6]
    names = [physical_name(field) for field in fields]
    assert all(re.fullmatch(r"col-[0-9a-f-]{36}", name) for name in names)
    assert len(set(names)) == len(names)
    assert made.metadata.configuration["delta.columnMapping.maxColumnId"] == "6"


@pytest.mark.protocol("CM-05", "CM-06", "UPG-09")
def test_switching_column_mapping_on_keeps_the_names_in_files() -> None:
    before = table(NESTED)
    asked = {**MAPPED, "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    after = changed_table(before, configuration=asked)
    assert [physical_name(field) for _, field in walk(after.schema)] == [
        field.name for _, field in walk(NESTED)
    ]
    assert after.column_mapping_mode == "name"
    assert versions(after.protocol) == (2, 5)
    assert after.metadata.configuration == {**MAPPED, "delta.columnMapping.maxColumnId": "6"}


@pytest.mark.protocol("CM-07", "CM-17")
def test_a_dropped_column_never_comes_back() -> None:
    before = table(configuration=MAPPED)
    gone = changed_table(before, schema=StructType(before.schema.fields[:2]))
    again = changed_table(gone, schema=StructType([*gone.schema.fields, Field("n", "integer")]))
    old, new = before.schema.fields[2], again.schema.fields[2]
    assert (field_id(old), field_id(new)) == (3, 4)
    assert physical_name(old) != physical_name(new)
    assert again.metadata.configuration["delta.columnMapping.maxColumnId"] == "4"


@pytest.mark.protocol("CM-16")
def test_a_column_is_known_by_its_id_and_else_by_its_name() -> None:
    before = table(configuration=MAPPED)
    id_, p, n = before.schema.fields
    renamed = Field("m", n.type, metadata=n.metadata)
    after = changed_table(before, schema=StructType([id_, Field("p", "string"), renamed]))
    assert [physical_name(field) for field in after.schema] == [
        physical_name(field) for field in (id_, p, n)
    ]


@pytest.mark.protocol("CM-17")
def test_a_name_that_was_renamed_away_is_a_new_column() -> None:
    before = table(configuration=MAPPED)
    id_, p, n = before.schema.fields
    moved = Field("q", "string", metadata=p.metadata)
    after = changed_table(before, schema=StructType([id_, moved, n, Field("p", "string")]))
    assert [field_id(field) for field in after.schema] == [1, 2, 3, 4]
    assert physical_name(after.schema.fields[3]) != physical_name(p)


def test_ids_of_another_table_are_left_out() -> None:
    other = table(configuration=MAPPED)
    assert all(
        not field.metadata for _, field in walk(table(other.schema, configuration={}).schema)
    )
    before = table(configuration=MAPPED)
    stranger = Field("new", "long", metadata=other.schema.fields[0].metadata)
    after = changed_table(before, schema=StructType([*before.schema.fields, stranger]))
    assert field_id(after.schema.fields[3]) == 4
    assert physical_name(after.schema.fields[3]) != physical_name(stranger)


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


@pytest.mark.protocol("UPG-05", "UPG-07", "B-09", "TF-06")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [((1, 3), (1, 3)), ((1, 1), (1, 2)), ((2, 5), (2, 5)), ((1, 2), (1, 2)), ((3, 7), (1, 2))],
)
def test_versions_only_rise(asked: tuple[int, int], expected: tuple[int, int]) -> None:
    reader, writer = asked
    after = with_properties(table(), minReaderVersion=str(reader), minWriterVersion=str(writer))
    assert versions(after.protocol) == expected
    assert after.metadata.configuration == {}


@pytest.mark.protocol("B-08", "B-10")
def test_a_protocol_that_says_the_same_in_other_words_stays() -> None:
    listed = Protocol(
        min_reader_version=1,
        min_writer_version=7,
        writer_features=("appendOnly", "columnInvariants"),
    )
    theirs = TableConfiguration(listed, table().metadata)
    assert with_properties(theirs, appendOnly="true").protocol == listed
    more = with_properties(theirs, enableChangeDataFeed="true").protocol
    assert more.writer_features == ("appendOnly", "changeDataFeed", "columnInvariants")


@pytest.mark.protocol("TF-04", "TF-06", "TF-07")
def test_a_feature_stays_when_it_is_no_longer_used() -> None:
    before = table(configuration={"delta.minReaderVersion": "1", "delta.minWriterVersion": "4"})
    on = with_properties(before, enableChangeDataFeed="true")
    off = changed_table(on, configuration={})
    upgraded = changed_table(off, features=["deletionVectors"])
    assert set(upgraded.features) == {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "deletionVectors",
    }


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


@pytest.mark.protocol("META-08")
def test_what_is_not_said_stays() -> None:
    before = table(partition_columns=["p"], name="t", description="d")
    after = with_properties(before, appendOnly="true")
    assert after.metadata.id == before.metadata.id
    assert after.metadata.schema_string == before.metadata.schema_string
    assert after.metadata.partition_columns == ("p",)
    assert (after.metadata.name, after.metadata.description) == ("t", "d")


@pytest.mark.protocol("SCH-05")
def test_unknown_column_metadata_stays() -> None:
    schema = columns(Field("x", "long", metadata={"theirs": {"a": [1]}, "comment": "c"}))
    after = with_properties(table(schema), columnMapping__mode="name")
    assert after.schema.fields[1].metadata["theirs"] == {"a": [1]}


@pytest.mark.protocol("B-50")
def test_a_wider_type_is_remembered_once() -> None:
    before = table(NESTED, configuration={"delta.enableTypeWidening": "true"})
    wider = StructType(
        [
            NESTED.fields[0],
            Field("s", StructType([Field("x", "long"), Field("y", "string")])),
            Field("a", ArrayType(StructType([Field("z", "integer")]))),
        ]
    )
    after = changed_table(before, schema=wider)
    entry = {"toType": "long", "fromType": "integer"}
    assert find_field(after.schema, "s.x").metadata == {"delta.typeChanges": [entry]}
    assert len(find_field(after.schema, "a.element.z").metadata["delta.typeChanges"]) == 1
    assert changed_table(after, schema=after.schema).schema == after.schema


@pytest.mark.protocol("B-50")
def test_types_stay_where_widening_is_off_or_is_none() -> None:
    wider = StructType([*PLAIN.fields[:2], Field("n", "long")])
    with pytest.raises(InvalidInputError, match=r"delta\.enableTypeWidening"):
        changed_table(table(), schema=wider)
    on = table(configuration={"delta.enableTypeWidening": "true"})
    for other in ("short", "string", "boolean"):
        narrower = StructType([*PLAIN.fields[:2], Field("n", other)])
        with pytest.raises(InvalidInputError, match="no widening"):
            changed_table(on, schema=narrower)
    with pytest.raises(InvalidInputError, match="no widening"):
        changed_table(on, schema=StructType([*PLAIN.fields[:2], Field("n", ArrayType("long"))]))


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (StructType(PLAIN.fields[:2]), "cannot drop or rename the column 'n'"),
        (StructType([*PLAIN.fields[:2], Field("m", "integer")]), "cannot drop or rename"),
        (StructType([*PLAIN.fields[:2], Field("N", "integer")]), "cannot drop or rename"),
        (columns(*PLAIN.fields[1:], Field("x", "long", nullable=False)), "NOT NULL"),
        (columns(*PLAIN.fields[1:], Field("ID", "long")), "there twice"),
        (columns(*PLAIN.fields[1:], Field("a b", "long")), "column mapping"),
    ],
)
def test_schemas_that_files_cannot_follow(after: StructType, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        changed_table(table(), schema=after)


@pytest.mark.protocol("UPG-10")
def test_column_mapping_allows_any_name() -> None:
    before = table(configuration=MAPPED)
    after = changed_table(before, schema=StructType([*before.schema.fields, Field("a b", "long")]))
    assert after.schema.names == ("id", "p", "n", "a b")


def test_nested_null_cannot_be_forbidden_while_files_stay() -> None:
    schema = columns(Field("a", ArrayType("long")), Field("m", MapType("string", "long")))
    after = columns(
        Field("a", ArrayType("long", contains_null=False)), Field("m", MapType("string", "long"))
    )
    with pytest.raises(InvalidInputError, match="NULL inside 'a'"):
        changed_table(table(schema), schema=after)


def test_partitioning_changes_only_with_the_data() -> None:
    before = table(partition_columns=["p"])
    with pytest.raises(InvalidInputError, match="partition columns"):
        changed_table(before, partition_columns=["n"])
    after = changed_table(
        before, schema=StructType([Field("p", "integer"), Field("q", "long")]),
        partition_columns=["q"], replaces_data=True,
    )  # fmt: skip
    assert after.partition_columns == ("q",)


@pytest.mark.parametrize("mode", ["none", "name"])
def test_replaced_data_keeps_its_partitioning_by_name(mode: str) -> None:
    before = table(partition_columns=["p"], configuration={"delta.columnMapping.mode": mode})
    schema = StructType([Field("P", "integer"), Field("x", "long")])
    assert changed_table(before, schema=schema, replaces_data=True).partition_columns == ("P",)
    with pytest.raises(InvalidInputError, match="no column 'p'"):
        changed_table(before, schema=StructType([Field("x", "long")]), replaces_data=True)


def test_replaced_data_gets_columns_of_its_own() -> None:
    before = table(configuration=MAPPED)
    after = changed_table(before, schema=StructType([Field("id", "string")]), replaces_data=True)
    assert field_id(after.schema.fields[0]) == 4
    same = changed_table(before, schema=before.schema, replaces_data=True)
    assert same.schema == before.schema


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


def test_a_renamed_partition_column_stays_one_and_cannot_be_dropped() -> None:
    before = table(configuration=MAPPED, partition_columns=["p"])
    id_, p, n = before.schema.fields
    renamed = StructType([id_, Field("q", "string", metadata=p.metadata), n])
    assert changed_table(before, schema=renamed).partition_columns == ("q",)
    with pytest.raises(InvalidInputError, match="partition column"):
        changed_table(before, schema=StructType([id_, n]))


@pytest.mark.protocol("GEN-04", "D-40", "IDN-01", "IDN-08", "B-58", "B-59", "INV-03", "CON-04")
@pytest.mark.parametrize(
    ("field", "message"),
    [
        (Field("g", "long", metadata={"delta.generationExpression": "g + 1"}), "generated itself"),
        (Field("g", "string", metadata={"delta.generationExpression": "id"}), "declared as string"),
        (Field("g", "long", metadata={"delta.generationExpression": "nope"}), "no column 'nope'"),
        (
            Field("g", "double", metadata={"delta.generationExpression": "rand()"}),
            "no SQL function",
        ),
        (Field("g", "long", metadata={"delta.generationExpression": "my_udf(id)"}), "no SQL func"),
        (Field("g", "long", metadata={"delta.generationExpression": "sum(id)"}), "no SQL function"),
        (
            Field("g", "timestamp", metadata={"delta.generationExpression": "current_timestamp()"}),
            "differs from moment to moment",
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


def test_high_water_marks_of_another_table_are_left_out() -> None:
    field = Field("i", "long", metadata={**IDENTITY, "delta.identity.highWaterMark": 7})
    assert table(columns(field)).schema.fields[1].metadata == IDENTITY


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
            *(PLAIN, "only one version"),
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


@pytest.mark.protocol("B-53")
def test_parts_of_lists_and_maps_have_ids_for_iceberg() -> None:
    schema = StructType(
        [
            Field("a", ArrayType(StructType([Field("x", "integer")]))),
            Field("m", MapType("string", ArrayType("integer"))),
        ]
    )
    made = table(schema, configuration={"delta.enableIcebergCompatV2": "true"})
    (a, m), x = made.schema.fields, find_field(made.schema, "a.element.x")
    key = "delta.columnMapping.nested.ids"
    assert a.metadata[key] == {f"{physical_name(a)}.element": 4}
    assert m.metadata[key] == {
        f"{physical_name(m)}.key": 5,
        f"{physical_name(m)}.value": 6,
        f"{physical_name(m)}.value.element": 7,
    }
    assert x.metadata[key] == {}
    assert made.metadata.configuration["delta.columnMapping.maxColumnId"] == "7"
    more = changed_table(
        made, schema=StructType([*made.schema.fields, Field("b", ArrayType("long"))])
    )
    assert more.schema.fields[0] == a
    b = more.schema.fields[2]
    assert (field_id(b), b.metadata[key]) == (8, {f"{physical_name(b)}.element": 9})


@pytest.mark.protocol("B-52")
@pytest.mark.parametrize(
    ("columns_", "options", "message"),
    [
        (["flag"], {}, "no minimum and maximum"),
        (["list"], {}, "no minimum and maximum"),
        (["nope"], {}, "no column 'nope'"),
        (["id", "ID"], {}, "there twice"),
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
    "feature", ["catalogManaged", "collations", "geospatial", "icebergCompatV3", "liquid"]
)
def test_a_change_never_bricks_the_table(feature: str) -> None:
    with pytest.raises(DeltaError) as caught:
        changed_table(table(), features=[feature])
    assert feature in str(caught.value)
    with pytest.raises(UnsupportedFeatureError):
        table(configuration={"delta.enableIcebergCompatV3": "true"})


@pytest.mark.parametrize(
    "feature",
    ["rowTracking", "identityColumns", "domainMetadata", "icebergCompatV1", "deletionVectors"],
)
def test_a_feature_that_was_added_leaves_the_table_writable(feature: str) -> None:
    check_writable(changed_table(table(), features=[feature]), table="t")


def test_deletion_vectors_bring_no_other_feature() -> None:
    made = table(configuration={"delta.enableDeletionVectors": "true"})
    assert made.protocol.reader_features == ("deletionVectors",)


def test_who_loses_access() -> None:
    before = table().protocol
    after = table(configuration={"delta.enableTypeWidening": "true"}).protocol
    assert engines_losing_access(before, after) == (OtherEngine.DELTALAKE,)
    assert engines_losing_access(before, before) == ()
    tracked = table(configuration={"delta.enableRowTracking": "true"}).protocol
    assert engines_losing_access(before, tracked) == ()
    assert OtherEngine.DELTALAKE in engines_losing_access(before, tracked, writing=True)
