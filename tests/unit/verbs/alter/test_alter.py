"""Changes of a table's metadata, staged and committed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog._json import loads
from deltalog.actions import DomainMetadata
from deltalog.context import utc_context
from deltalog.engine import LocalEngine
from deltalog.errors import ConstraintViolationError, InvalidInputError
from deltalog.schema import ArrayType, Field, StructType, find_field
from deltalog.snapshot import Snapshot, load_snapshot
from deltalog.transaction import PendingTransaction
from deltalog.verbs import alter
from deltalog.verbs.do import do
from deltalog.verbs.verb import Operation, Verb
from tests.support.raw_tables import DataTable

INNER = {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True}]}
ROWS: dict[str, Any] = {"id": [1, 2, 3], "v": ["a", None, "c"], "s": [{"x": 1}, None, {"x": None}]}


def make(configuration: dict[str, str] | None = None, **options: Any) -> DataTable:
    table = DataTable([("id", "long"), ("v", "string"), ("s", INNER)], **options)
    table.commit(table.add(ROWS))
    if configuration:
        apply(table, alter.SetTableProperties(configuration))
    return table


def mapped() -> DataTable:
    return make({"delta.columnMapping.mode": "name"})


def apply(table: DataTable, verb: Verb[Any]) -> Snapshot:
    done = do(verb, lambda: load_snapshot(utc_context(table.store)), LocalEngine())
    return done.committed.snapshot


def last(table: DataTable) -> dict[str, Any]:
    """The newest commit: kind of action → the action, or a list of several."""
    snapshot = load_snapshot(utc_context(table.store))
    lines = table.store.read(f"_delta_log/{snapshot.version:020d}.json").splitlines()
    found: dict[str, Any] = {}
    for line in lines:
        ((kind, action),) = loads(line, "commit").items()
        found[kind] = action
    return found


def told(table: DataTable) -> tuple[str, dict[str, Any]]:
    """Operation and parameters of the newest commit."""
    info = last(table)["commitInfo"]
    parameters = {
        key: loads(text, key) if isinstance(text, str) and text.startswith(("[", "{")) else text
        for key, text in info["operationParameters"].items()
    }
    return info["operation"], parameters


def names(snapshot: Snapshot) -> tuple[str, ...]:
    return snapshot.configuration.schema.names


@pytest.mark.protocol("META-08")
def test_columns_are_added_where_they_are_wanted() -> None:
    table = make()
    new = [Field("w", "integer", metadata={"comment": "cc"}), Field("u", "long")]
    after = apply(table, alter.AddColumns(new, where=("after", "ID")))
    assert names(after) == ("id", "w", "u", "v", "s")
    operation, parameters = told(table)
    assert operation == "ADD COLUMNS"
    assert parameters["columns"][0] == {
        "column": {"name": "w", "type": "integer", "nullable": True, "metadata": {"comment": "cc"}},
        "position": "AFTER ID",
    }
    assert set(last(table)) == {"commitInfo", "metaData"}
    assert table.rows(columns=["id", "w"]) == [(1, None), (2, None), (3, None)]
    after = apply(table, alter.AddColumns([Field("y", "string")], parent="s"))
    assert find_field(after.configuration.schema, "s.y").type == Field("", "string").type
    assert told(table)[1]["columns"][0]["column"]["name"] == "s.y"


@pytest.mark.protocol("B-58")
@pytest.mark.parametrize(
    ("field", "message"),
    [
        (Field("w", "integer", nullable=False), "NOT NULL"),
        (Field("w", "integer", metadata={"CURRENT_DEFAULT": "1"}), "default"),
        (Field("w", "long", metadata={"delta.generationExpression": "id"}), "generation"),
        (Field("w", "long", metadata={"delta.identity.step": 1}), "identity"),
        (Field("ID", "long"), "there is one already"),
    ],
)
def test_columns_that_cannot_be_added(field: Field, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        apply(make(), alter.AddColumns([field]))


@pytest.mark.protocol("CM-16")
def test_a_renamed_column_keeps_its_values() -> None:
    table = mapped()
    after = apply(table, alter.RenameColumn("V", "vv"))
    assert told(table) == ("RENAME COLUMN", {"oldColumnPath": "v", "newColumnPath": "vv"})
    assert set(last(table)) == {"commitInfo", "metaData"}
    assert names(after) == ("id", "vv", "s")
    assert table.rows(columns=["vv"]) == ["a", None, "c"]
    apply(table, alter.RenameColumn("s.x", "xx"))
    assert told(table)[1] == {"oldColumnPath": "s.x", "newColumnPath": "s.xx"}


@pytest.mark.protocol("CM-16", "CM-17")
def test_a_dropped_column_hides_its_values_for_good() -> None:
    table = mapped()
    after = apply(table, alter.DropColumns(["v"]))
    assert told(table) == ("DROP COLUMNS", {"columns": ["v"]})
    assert set(last(table)) == {"commitInfo", "metaData"}
    assert names(after) == ("id", "s")
    apply(table, alter.AddColumns([Field("v", "string")]))
    assert table.rows(columns=["v"]) == [None, None, None]


@pytest.mark.parametrize(
    "verb",
    [
        alter.RenameColumn("v", "vv"),
        alter.DropColumns(["v"]),
    ],
)
def test_names_in_files_need_column_mapping(verb: Verb[Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"delta\.columnMapping\.mode = name"):
        apply(make(), verb)


def test_the_columns_with_statistics_follow() -> None:
    table = mapped()
    properties = {"delta.dataSkippingStatsColumns": "id,v,s.x"}
    apply(table, alter.SetTableProperties(properties))
    key = "delta.dataSkippingStatsColumns"
    after = apply(table, alter.RenameColumn("s", "a b"))
    assert after.metadata.configuration[key] == "id,v,`a b`.x"
    after = apply(table, alter.DropColumns(["v"]))
    assert after.metadata.configuration[key] == "id,`a b`.x"
    after = apply(table, alter.DropColumns(["id"]))
    after = apply(table, alter.RenameColumn(("a b",), "s"))
    assert after.metadata.configuration[key] == "s.x"


def test_a_column_moves() -> None:
    table = make()
    assert names(apply(table, alter.MoveColumn("v", "first"))) == ("v", "id", "s")
    operation, parameters = told(table)
    assert (operation, parameters["position"]) == ("CHANGE COLUMN", "FIRST")
    assert parameters["column"]["name"] == "v"
    after = apply(table, alter.MoveColumn("v", ("after", "id")))
    assert names(after) == ("id", "v", "s")
    assert table.rows(columns=["id", "v"]) == [(1, "a"), (2, None), (3, "c")]


@pytest.mark.protocol("B-50")
def test_a_type_becomes_wider() -> None:
    table = make({"delta.enableTypeWidening": "true"})
    after = apply(table, alter.SetColumnType("s.x", "long"))
    entry = {"toType": "long", "fromType": "integer"}
    assert find_field(after.configuration.schema, "s.x").metadata["delta.typeChanges"] == [entry]
    assert table.rows(columns=["s"]) == [{"x": 1}, None, {"x": None}]
    with pytest.raises(InvalidInputError, match="no widening"):
        apply(table, alter.SetColumnType("s.x", "string"))
    with pytest.raises(InvalidInputError, match="enableTypeWidening"):
        apply(make(), alter.SetColumnType("s.x", "long"))


def test_comments_and_other_metadata_of_columns() -> None:
    table = make()
    apply(table, alter.SetColumnComment("v", "hi"))
    after = apply(table, alter.SetColumnMetadata("v", {"mine": 1}))
    assert find_field(after.configuration.schema, "v").metadata == {"comment": "hi", "mine": 1}
    assert told(table)[0] == "CHANGE COLUMN"
    after = apply(table, alter.SetColumnComment("v", None))
    assert find_field(after.configuration.schema, "v").metadata == {"mine": 1}
    for key in ("delta.generationExpression", "CURRENT_DEFAULT", "__CHAR_VARCHAR_TYPE_STRING"):
        with pytest.raises(InvalidInputError, match=key):
            apply(table, alter.SetColumnMetadata("v", {key: "1"}))


@pytest.mark.protocol("B-58")
def test_defaults_come_and_go() -> None:
    table = make()
    after = apply(table, alter.SetColumnDefault("v", "'x'"))
    assert after.configuration.supports("allowColumnDefaults")
    assert find_field(after.configuration.schema, "v").metadata == {"CURRENT_DEFAULT": "'x'"}
    after = apply(table, alter.SetColumnDefault("v", None))
    assert find_field(after.configuration.schema, "v").metadata == {}
    assert after.configuration.supports("allowColumnDefaults")
    with pytest.raises(InvalidInputError, match="a default is a constant"):
        apply(table, alter.SetColumnDefault("v", "id"))


@pytest.mark.protocol("INV-04")
def test_not_null_is_checked_against_the_rows() -> None:
    table = make()
    after = apply(table, alter.SetColumnNotNull("id"))
    assert not find_field(after.configuration.schema, "id").nullable
    with pytest.raises(ConstraintViolationError, match="1 row breaks") as caught:
        apply(table, alter.SetColumnNotNull("v"))
    assert caught.value.num_rows == 1
    assert caught.value.examples == ({"v": None},)
    # A struct that is NULL misses none of its fields; one that is there does.
    with pytest.raises(ConstraintViolationError, match="1 row breaks"):
        apply(table, alter.SetColumnNotNull("s.x"))
    after = apply(table, alter.DropColumnNotNull("id"))
    assert find_field(after.configuration.schema, "id").nullable


def test_not_null_inside_lists_is_refused() -> None:
    kind = {"type": "array", "elementType": INNER, "containsNull": True}
    table = DataTable([("id", "long"), ("a", kind)])
    with pytest.raises(InvalidInputError, match="inside lists and maps"):
        apply(table, alter.SetColumnNotNull("a.element.x"))


@pytest.mark.protocol("CON-02", "CON-03", "CON-04", "CON-05")
def test_constraints_are_checked_against_the_rows() -> None:
    table = make()
    after = apply(table, alter.AddConstraints({"Big": "id > 0"}))
    assert after.metadata.configuration == {"delta.constraints.big": "id > 0"}
    assert (after.protocol.min_reader_version, after.protocol.min_writer_version) == (1, 3)
    assert told(table) == ("ADD CONSTRAINT", {"name": "Big", "expr": "id > 0"})
    assert last(table)["commitInfo"]["isBlindAppend"] is False
    with pytest.raises(InvalidInputError, match="there is one of that name"):
        apply(table, alter.AddConstraints({"BIG": "id > 1"}))
    with pytest.raises(ConstraintViolationError, match="2 rows break it") as caught:
        apply(table, alter.AddConstraints({"c": "v > 'a'"}))
    assert (caught.value.constraint, caught.value.num_rows) == ("c", 2)
    assert caught.value.examples == ({"v": "a"}, {"v": None})
    with pytest.raises(InvalidInputError, match="no column 'nope'"):
        apply(table, alter.AddConstraints({"c": "nope > 1"}))
    assert load_snapshot(utc_context(table.store)).version == after.version


@pytest.mark.protocol("CON-05")
def test_a_constraint_is_dropped() -> None:
    table = make()
    apply(table, alter.AddConstraints({"c": "id > 0"}))
    after = apply(table, alter.DropConstraint("C"))
    assert after.metadata.configuration == {}
    assert told(table) == ("DROP CONSTRAINT", {"name": "C", "expr": "id > 0", "existed": "true"})
    with pytest.raises(InvalidInputError, match="does not have it"):
        apply(table, alter.DropConstraint("c"))


def test_rules_are_checked_before_rows_of_the_same_commit_are_there() -> None:
    table = make()

    def both(tx: PendingTransaction) -> None:
        assert tx.snapshot is not None
        tx.add_rows(tx.snapshot.files())
        alter.AddConstraints({"c": "id > 0"}).stage(tx, LocalEngine())

    with pytest.raises(InvalidInputError, match="commit them first"):
        apply(table, Operation(name="TEST", plan=both))

    def column_first(tx: PendingTransaction) -> None:
        alter.AddColumns([Field("w", "long")]).stage(tx, LocalEngine())
        alter.AddConstraints({"c": "w > 0"}).stage(tx, LocalEngine())

    with pytest.raises(InvalidInputError, match="changes the schema"):
        apply(table, Operation(name="TEST", plan=column_first))


@pytest.mark.protocol("UPG-06", "APP-03")
def test_properties_are_set_and_unset() -> None:
    table = make()
    asked = {"foo": "bar", "delta.appendonly": "true", "delta.minWriterVersion": "3"}
    after = apply(table, alter.SetTableProperties(asked))
    assert after.metadata.configuration == {"foo": "bar", "delta.appendOnly": "true"}
    assert after.protocol.min_writer_version == 3
    assert told(table) == ("SET TBLPROPERTIES", {"properties": asked})
    after = apply(table, alter.UnsetTableProperties(["FOO", "delta.appendOnly"]))
    assert after.metadata.configuration == {}
    operation, parameters = told(table)
    assert operation == "UNSET TBLPROPERTIES"
    assert parameters["properties"] == ["FOO", "delta.appendOnly"]
    with pytest.raises(InvalidInputError, match="does not have it"):
        apply(table, alter.UnsetTableProperties(["foo"]))


def test_properties_that_nobody_knows() -> None:
    table = make()
    with pytest.raises(InvalidInputError, match=r"no table property 'delta\.nope'"):
        apply(table, alter.SetTableProperties({"delta.nope": "1"}))
    asked = {"delta.nope": "1", "delta.enableRowTracking": "true"}
    after = apply(table, alter.SetTableProperties(asked, raise_if_not_exists=False))
    assert after.metadata.configuration["delta.nope"] == "1"
    assert after.configuration.row_ids_enabled


@pytest.mark.protocol("CON-07")
def test_constraints_are_no_properties_to_set() -> None:
    asked = {"delta.constraints.c": "id > 5"}
    with pytest.raises(InvalidInputError, match="add_constraint"):
        apply(make(), alter.SetTableProperties(asked))
    with pytest.raises(InvalidInputError, match="drop the constraint"):
        apply(make(), alter.UnsetTableProperties(list(asked)))


def test_name_and_description() -> None:
    table = make()
    apply(table, alter.SetTableName("t"))
    after = apply(table, alter.SetTableDescription("about t"))
    assert (after.metadata.name, after.metadata.description) == ("t", "about t")
    assert told(table) == ("SET TBLPROPERTIES", {"properties": {"comment": "about t"}})
    after = apply(table, alter.SetTableProperties({"comment": "more"}))
    assert (after.metadata.description, after.metadata.configuration) == ("more", {})


@pytest.mark.protocol("TF-01", "TF-06", "CM-05")
def test_features_are_added() -> None:
    table = make()
    with pytest.raises(
        InvalidInputError, match=r"\(1, 2\) to \(3, 7\), and deltalake .* cannot write"
    ):
        apply(table, alter.AddFeature("deletionVectors"))
    after = apply(
        table,
        alter.AddFeature(["deletionVectors"], allow_protocol_versions_increase=True),
    )
    assert set(after.configuration.features) == {"appendOnly", "invariants", "deletionVectors"}
    operation, parameters = told(table)
    assert operation == "UPGRADE PROTOCOL"
    assert parameters["newProtocol"]["readerFeatures"] == ["deletionVectors"]
    assert set(last(table)) == {"commitInfo", "protocol"}
    apply(table, alter.AddFeature("changeDataFeed"))


@pytest.mark.protocol("UPG-05", "UPG-07")
def test_the_protocol_is_upgraded() -> None:
    table = make()
    after = apply(table, alter.UpgradeProtocol(1, 3))
    assert after.protocol.min_writer_version == 3
    after = apply(table, alter.UpgradeProtocol(1, 2))
    assert after.protocol.min_writer_version == 3
    bad: Any = "3"
    with pytest.raises(InvalidInputError, match="whole numbers"):
        apply(table, alter.UpgradeProtocol(1, bad))
    with pytest.raises(InvalidInputError, match="expected 1 to 7"):
        apply(table, alter.UpgradeProtocol(1, 8))


@pytest.mark.protocol("DOM-03", "DOM-06", "DOM-07")
def test_domains_of_users() -> None:
    table = make()
    with pytest.raises(InvalidInputError, match="domainMetadata"):
        apply(table, alter.SetDomainMetadata("mine", "{}"))
    apply(
        table,
        alter.AddFeature("domainMetadata", allow_protocol_versions_increase=True),
    )
    after = apply(table, alter.SetDomainMetadata("mine", '{"a":1}'))
    assert after.domain_metadata == {"mine": DomainMetadata(domain="mine", configuration='{"a":1}')}
    after = apply(table, alter.RemoveDomainMetadata("mine"))
    assert after.domain_metadata == {}
    assert last(table)["domainMetadata"] == {
        "domain": "mine",
        "configuration": '{"a":1}',
        "removed": True,
    }
    for name in ("delta.clustering", "DELTA.x", ""):
        with pytest.raises(InvalidInputError, match="domain"):
            apply(table, alter.SetDomainMetadata(name, "{}"))
    with pytest.raises(InvalidInputError, match="there is none"):
        apply(table, alter.RemoveDomainMetadata("mine"))


@pytest.mark.protocol("B-52")
def test_clustering_columns() -> None:
    table = mapped()
    apply(table, alter.RenameColumn("v", "w"))
    after = apply(table, alter.SetClusteringColumns(["W", "s.x"]))
    assert after.configuration.supports("clustering")
    domain = loads(str(after.domain_metadata["delta.clustering"].configuration), "domain")
    assert domain == {
        "clusteringColumns": [["v"], ["s", "x"]],
        "domainName": "delta.clustering",
    }
    assert told(table) == (
        "CLUSTER BY",
        {"oldClusteringColumns": "", "newClusteringColumns": "w,s.x"},
    )
    for path in ("w", "s", "s.x"):
        with pytest.raises(InvalidInputError, match="clustered by it"):
            apply(table, alter.DropColumns([path]))
    apply(table, alter.SetClusteringColumns(None))
    assert told(table)[1] == {"oldClusteringColumns": "w,s.x", "newClusteringColumns": ""}


@pytest.mark.protocol("ROWID-05", "ROWID-11", "B-77")
def test_row_tracking_is_enabled_in_one_commit() -> None:
    table = make()
    table.commit(table.add({"id": [4, 5]}))
    asked = {"delta.enableRowTracking": "true"}
    after = apply(table, alter.SetTableProperties(asked))
    assert after.configuration.row_ids_enabled
    bases: list[Any] = after.files(["baseRowId"]).column("baseRowId").to_pylist()
    assert sorted(bases) in ([0, 2], [0, 3])
    assert after.row_id_high_water_mark == 4
    assert last(table)["add"]["dataChange"] is False
    assert after.num_files == 2


@pytest.mark.protocol("ROWID-11", "B-77")
def test_a_backfill_goes_batch_by_batch() -> None:
    table = make()
    table.commit(table.add({"id": [4, 5]}))
    with pytest.raises(InvalidInputError, match="rowTracking first"):
        apply(table, alter.BackfillRowIds())
    apply(
        table,
        alter.AddFeature("rowTracking", allow_protocol_versions_increase=True),
    )
    left = apply(table, alter.BackfillRowIds(max_files=1))
    assert left.files(["baseRowId"]).column("baseRowId").null_count == 1
    assert told(table)[0] == "ROW TRACKING BACKFILL"
    done = apply(table, alter.BackfillRowIds())
    assert done.files(["baseRowId"]).column("baseRowId").null_count == 0
    assert done.row_id_high_water_mark == 4
    asked = {"delta.enableRowTracking": "true"}
    apply(table, alter.SetTableProperties(asked))
    assert set(last(table)) == {"commitInfo", "metaData"}


@pytest.mark.protocol("B-53")
def test_iceberg_compatibility_needs_files_without_deletion_vectors() -> None:
    table = DataTable(
        [("id", "long")],
        features=["deletionVectors", "columnMapping"],
    )
    table.commit(table.add({"id": [1, 2]}, deletionVector=table.vector(0)))
    asked = {"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": "true"}
    with pytest.raises(InvalidInputError, match="deletion vectors"):
        apply(table, alter.SetTableProperties(asked))


def test_nested_types_in_the_history_are_named_only() -> None:
    table = make()
    new = [Field("l", ArrayType(StructType([Field("x", "long")])))]
    apply(table, alter.AddColumns(new))
    assert told(table)[1]["columns"][0]["column"]["type"] == "array"


@pytest.mark.protocol("IDN-06", "IDN-07")
@pytest.mark.parametrize(
    ("start", "step", "values", "mark"),
    [
        (10, 3, [9], None),
        (1, 2, [2, 4, None], 5),
        (0, -5, [-7, 3], -10),
        (1, 10, [11], 11),
        (1, 1, [None], None),
    ],
)
def test_an_identity_column_goes_on_after_the_data(
    start: int, step: int, values: list[int | None], mark: int | None
) -> None:
    metadata = {
        "delta.identity.start": start,
        "delta.identity.step": step,
        "delta.identity.allowExplicitInsert": True,
    }
    field = {"name": "i", "type": "long", "nullable": True, "metadata": metadata}
    table = DataTable([("id", "long"), field], features=["identityColumns"])
    table.commit(table.add(pa.table({"i": pa.array(values, pa.int64())})))
    after = apply(table, alter.SyncIdentity("I"))
    found = find_field(after.configuration.schema, "i").metadata
    assert found.get("delta.identity.highWaterMark") == mark
    if mark is not None:
        assert told(table) == ("SYNC IDENTITY", {"column": "i"})
    with pytest.raises(InvalidInputError, match="no identity column"):
        apply(table, alter.SyncIdentity("id"))


def test_who_loses_access_is_told(caplog: pytest.LogCaptureFixture) -> None:
    table = make()
    apply(table, alter.SetTableProperties({"delta.enableTypeWidening": "true"}))
    (record,) = [entry for entry in caplog.records if entry.levelname == "WARNING"]
    assert "deltalake 1.6 cannot read it any more" in record.getMessage()
    caplog.clear()
    apply(table, alter.SetTableProperties({"delta.enableTypeWidening": "false"}))
    assert not [entry for entry in caplog.records if entry.levelname == "WARNING"]


def test_what_writers_keep_cannot_be_unset() -> None:
    with pytest.raises(InvalidInputError, match="set by writers themselves"):
        apply(
            mapped(),
            alter.UnsetTableProperties(["delta.columnMapping.maxColumnId"]),
        )


def test_a_table_without_clusters_needs_no_feature_to_stay_so() -> None:
    table = make()
    snapshot = load_snapshot(utc_context(table.store))
    pending = PendingTransaction(snapshot.context, snapshot, operation="")
    alter.SetClusteringColumns(None).stage(pending, LocalEngine())
    assert pending.is_empty


def test_a_list_that_a_rule_names_keeps_its_type() -> None:
    kind = {"type": "array", "elementType": "integer", "containsNull": True}
    generated = {
        "name": "g",
        "type": "integer",
        "nullable": True,
        "metadata": {"delta.generationExpression": "size(a)"},
    }
    table = DataTable(
        [("a", kind), generated],
        features=["typeWidening", "generatedColumns"],
        configuration={"delta.enableTypeWidening": "true"},
    )
    with pytest.raises(InvalidInputError, match="generated column 'g'"):
        apply(table, alter.SetColumnType("a.element", "long"))


@pytest.mark.protocol("B-70", "B-72", "B-74", "B-78")
@pytest.mark.parametrize("enabled", ["true", "false"])
def test_row_ids_of_the_draft_become_those_of_today(enabled: str) -> None:
    draft = {"delta.enableRowIds": enabled, "delta.rowIds.physicalColumnName": "_ids"}
    table = DataTable([("id", "long")], features=["rowIds"], configuration=draft)
    hidden = pa.table({"id": [1, 2], "_ids": pa.array([7, None], pa.int64())})
    mark = {"rowIdHighWaterMark": {"highWaterMark": 101, "preservedRowIds": True}}
    table.commit(table.add(hidden, baseRowId=100), mark)
    after = apply(table, alter.UpgradeRowIds())
    assert after.configuration.features.keys() == {"rowTracking", "domainMetadata"}
    assert after.configuration.row_id_column == "_ids"
    assert after.configuration.row_ids_enabled is (enabled == "true")
    assert not [key for key in after.metadata.configuration if "RowIds" in key or "rowIds" in key]
    domain = loads(str(after.domain_metadata["delta.rowTracking"].configuration), "domain")
    assert domain["rowIdHighWaterMark"] == 101
    assert last(table)["add"]["baseRowId"] == 100
    assert last(table)["add"]["defaultRowCommitVersion"] == after.version
    if enabled == "true":
        assert sorted(table.rows(columns=["id", "_metadata.row_id"])) == [(1, 7), (2, 101)]
    with pytest.raises(InvalidInputError, match="does not have it"):
        apply(table, alter.UpgradeRowIds())
