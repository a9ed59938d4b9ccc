"""Every change of `table.alter` once, from the call to what another reader then sees."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import CommitProperties, DeltaTable, Field, StructType, Transaction, write_deltalake
from deltalog._util.clock import now_ms
from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    InvalidProtocolError,
)
from deltalog.schema import find_field
from tests.support import logs
from tests.support.facade import (
    NO_VECTORS,
    VECTORS,
    actions,
    fresh_rows,
    last,
    make,
    rows,
    store_of,
    unchanged,
)
from tests.support.raw_tables import DataTable

MAPPED = {"delta.columnMapping.mode": "name"}
DATA = [{"id": 1, "s": {"a": 1, "b": 2}, "t": "x"}, {"id": 2, "s": {"a": 3, "b": 4}, "t": "y"}]


def change(act: Callable[[DeltaTable], object], **configuration: str) -> DeltaTable:
    """A table that was changed; as somebody else opens it."""
    made = make(DATA, configuration=configuration)
    before = made.version()
    act(made)
    assert made.version() == before + 1
    assert "operation" in last(made)
    return DeltaTable(store_of(made))


def names(made: DeltaTable) -> list[str]:
    return list(made.schema().names)


def test_columns_are_added() -> None:
    made = change(lambda t: t.alter.add_columns([Field("x", "long"), Field("y", "string")]))
    assert fresh_rows(made, "id", "x", "y") == [(1, None, None), (2, None, None)]
    made = change(lambda t: t.alter.add_columns(Field("x", "long"), where=("after", "id")))
    assert names(made) == ["id", "x", "s", "t"]
    made = change(lambda t: t.alter.add_columns(Field("c", "long"), parent="s", where="first"))
    assert rows(made, "s")[0] == {"c": None, "a": 1, "b": 2}


def test_a_struct_that_is_there_gets_the_fields_that_it_lacks() -> None:
    more = StructType([Field("A", "long"), Field("c", StructType([Field("d", "long")]))])
    made = change(lambda t: t.alter.add_columns([Field("S", more), Field("x", "long")]))
    assert names(made) == ["id", "s", "t", "x"]
    assert rows(made, "s")[0] == {"a": 1, "b": 2, "c": None}
    more = StructType([Field("c", StructType([Field("d", "long"), Field("e", "string")]))])
    made.alter.add_columns(Field("s", more))
    assert str(made.schema().fields[1].type) == ("struct<a:long,b:long,c:struct<d:long,e:string>>")
    with unchanged(made), pytest.raises(InvalidInputError, match="'s': it exists already"):
        made.alter.add_columns(Field("s", StructType([Field("a", "long")])))


def test_columns_are_renamed_and_dropped_and_moved() -> None:
    made = change(lambda t: t.alter.rename_column("s.a", "z"), **MAPPED)
    assert rows(made, "s")[0] == {"z": 1, "b": 2}
    made = change(lambda t: t.alter.drop_columns(["s.a", "t"]), **MAPPED)
    assert rows(made) == [(1, {"b": 2}), (2, {"b": 4})]
    made = change(lambda t: t.alter.drop_columns("t"), **MAPPED)
    assert names(made) == ["id", "s"]
    made = change(lambda t: t.alter.move_column("t", "first"))
    assert names(made) == ["t", "id", "s"]


@pytest.mark.parametrize(
    "act",
    [lambda t: t.alter.rename_column("t", "u"), lambda t: t.alter.drop_columns("t")],
)
def test_names_are_changed_under_mapping_only(act: Callable[[DeltaTable], None]) -> None:
    plain = make(DATA)
    with unchanged(plain), pytest.raises(InvalidInputError, match="columnMapping"):
        act(plain)


def test_types_are_widened() -> None:
    made = make(
        pa.table({"n": pa.array([1], pa.int32())}),
        configuration={"delta.enableTypeWidening": "true"},
    )
    made.alter.set_column_type("n", "long")
    write_deltalake(made, [{"n": 2**40}], mode="append")
    assert fresh_rows(made) == [1, 2**40]
    with unchanged(made), pytest.raises(InvalidInputError):
        made.alter.set_column_type("n", "string")


def test_columns_are_explained() -> None:
    made = change(lambda t: t.alter.set_column_comment("s.a", "the first"))
    assert find_field(made.schema(), ("s", "a")).metadata == {"comment": "the first"}
    made.alter.set_column_comment("s.a", None)
    assert find_field(made.schema(), ("s", "a")).metadata == {}
    made = change(lambda t: t.alter.set_column_metadata("t", {"unit": "m"}))
    assert made.schema().fields[2].metadata == {"unit": "m"}


def test_each_call_of_add_feature_is_logged() -> None:
    made = make(DATA)
    for version in (1, 2):
        made.alter.add_feature("appendOnly")
        assert made.history(1)[0]["operation"] == "ADD FEATURE"
        assert made.version() == version


def test_columns_get_defaults() -> None:
    made = make(DATA)
    made.alter.add_feature("allowColumnDefaults", allow_protocol_versions_increase=True)
    made.alter.set_column_default("t", "'none'")
    write_deltalake(made, [{"id": 3}], mode="append")
    made.alter.set_column_default("t", None)
    write_deltalake(made, [{"id": 4}], mode="append")
    assert fresh_rows(made, "id", "t") == [(1, "x"), (2, "y"), (3, "none"), (4, None)]


def test_columns_forbid_and_allow_null() -> None:
    made = change(lambda t: t.alter.set_column_not_null("t"))
    with unchanged(made), pytest.raises(ConstraintViolationError, match="t"):
        write_deltalake(made, [{"id": 3, "t": None}], mode="append")
    made.alter.drop_column_not_null("t")
    write_deltalake(made, [{"id": 3, "t": None}], mode="append")
    with unchanged(made), pytest.raises(ConstraintViolationError):
        made.alter.set_column_not_null("t")


@pytest.mark.protocol("CON-01", "CON-04", "CON-05")
def test_constraints_come_and_go() -> None:
    made = change(lambda t: t.alter.add_constraint({"small": "id < 10"}))
    with unchanged(made), pytest.raises(ConstraintViolationError, match="small"):
        write_deltalake(made, [{"id": 10}], mode="append")
    made.alter.drop_constraint("SMALL")
    write_deltalake(made, [{"id": 10}], mode="append")
    with unchanged(made), pytest.raises(ConstraintViolationError, match="1 row"):
        made.alter.add_constraint({"small": "id < 10"})
    with unchanged(made), pytest.raises(InvalidInputError, match="small"):
        made.alter.drop_constraint("small")
    made.alter.drop_constraint("small", raise_if_not_exists=False)


def test_properties_come_and_go() -> None:
    made = change(lambda t: t.alter.set_table_properties({"delta.appendOnly": "true", "a": "b"}))
    assert made.properties.append_only
    made.alter.unset_table_properties(["delta.appendOnly", "a"])
    assert made.metadata().configuration == {}
    with unchanged(made), pytest.raises(InvalidInputError, match=r"delta\.appendOnly"):
        made.alter.set_table_properties({"delta.apendOnly": "true"})
    with unchanged(made), pytest.raises(InvalidInputError):
        made.alter.unset_table_properties("nope")
    made.alter.unset_table_properties("nope", raise_if_not_exists=False)


def test_tables_are_named() -> None:
    made = change(lambda t: t.alter.set_table_name("n"))
    made.alter.set_table_description("d")
    assert (made.metadata().name, made.metadata().description) == ("n", "d")


def test_clustering_begins_and_ends() -> None:
    made = change(lambda t: t.alter.set_clustering_columns(["id", "s.a"]))
    assert '[["id"],["s","a"]]' in str(made.domain_metadata()["delta.clustering"])
    write_deltalake(made, DATA, mode="append")
    made.alter.set_clustering_columns(None)
    assert '"clusteringColumns":[]' in str(made.domain_metadata()["delta.clustering"])


@pytest.mark.protocol("UPG-05", "UPG-07")
def test_the_protocol_rises() -> None:
    made = change(lambda t: t.alter.upgrade_protocol(2, 5))
    protocol = made.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (2, 5)
    made.alter.add_feature(["vacuumProtocolCheck"], allow_protocol_versions_increase=True)
    assert "vacuumProtocolCheck" in (made.protocol().reader_features or ())
    with unchanged(made), pytest.raises(InvalidInputError, match="allow_protocol_versions"):
        make(DATA).alter.add_feature("vacuumProtocolCheck")


@pytest.mark.protocol("B-07")
@pytest.mark.parametrize(
    ("feature", "configuration"),
    [
        ("deletionVectors", VECTORS),
        ("columnMapping", MAPPED),
        ("v2Checkpoint", {"delta.checkpointPolicy": "v2"}),
        ("rowTracking", {**NO_VECTORS, "delta.enableRowTracking": "true"}),
        ("inCommitTimestamp", {"delta.enableInCommitTimestamps": "true"}),
    ],
)
@pytest.mark.parametrize("truncate_history", [False, True])
def test_features_are_dropped(
    feature: str, configuration: dict[str, str], truncate_history: bool
) -> None:
    made = make(DATA, configuration=dict(configuration))
    made.delete("id = 1")
    made.alter.drop_feature(
        feature,
        truncate_history,
        CommitProperties(custom_metadata={"why": "peers"}),
    )
    protocol = DeltaTable(store_of(made)).protocol()
    assert feature not in (*(protocol.reader_features or ()), *(protocol.writer_features or ()))
    assert (last(made)["operation"], last(made)["why"]) == ("DROP FEATURE", "peers")
    assert made.version() == DeltaTable(store_of(made)).version()
    assert fresh_rows(made, "id") == [2]
    write_deltalake(made, [{"id": 3}], mode="append")
    assert fresh_rows(made, "id") == [2, 3]


def test_a_feature_that_is_not_there_is_not_dropped() -> None:
    made = make(DATA)
    for feature in ("deletionVectors", "noSuchFeature"):
        with unchanged(made), pytest.raises(InvalidInputError, match=feature):
            made.alter.drop_feature(feature)


def test_young_history_is_not_cut_off() -> None:
    made = make(DATA, configuration=dict(VECTORS))
    made.delete("id = 1")
    store = store_of(made)
    store.times_ms.update(dict.fromkeys(store.files, now_ms()))
    with pytest.raises(InvalidInputError, match="repeat"):
        made.alter.drop_feature("deletionVectors", truncate_history=True)
    # Nothing needs it any more, and the next try goes on from here.
    assert "deletionVectors" in (made.protocol().writer_features or ())
    assert made.version() == DeltaTable(store).version() == 2
    made.alter.drop_feature("deletionVectors")
    assert fresh_rows(made, "id") == [2]


def test_changes_are_staged_anew_on_a_newer_version() -> None:
    one = make(DATA)
    two = DeltaTable(store_of(one))
    two.alter.add_columns(Field("x", "long"))
    one.alter.add_columns(Field("y", "long"))
    assert names(one) == ["id", "s", "t", "x", "y"]
    with unchanged(one), pytest.raises(DeltaError):
        two.alter.add_columns(Field("Y", "long"))


def test_an_application_alters_once() -> None:
    made = make(DATA)
    step = CommitProperties(app_transactions=[Transaction("app", 1)])
    made.alter.add_columns(Field("x", "long"), step)
    with unchanged(made):
        made.alter.add_columns(Field("x", "long"), step)
    assert any("txn" in action for action in actions(made))


def test_what_changes_nothing_is_no_commit() -> None:
    made: Any = make(DATA, configuration={"a": "b"})
    with unchanged(made):
        made.alter.set_clustering_columns(None)


@pytest.mark.protocol("TF-01")
def test_reader_version_3_without_lists_of_features_is_refused() -> None:
    asked = {"delta.minReaderVersion": "3", "delta.minWriterVersion": "5"}
    made = make(DATA)
    for act in (
        lambda: made.alter.upgrade_protocol(3, 5),
        lambda: made.alter.set_table_properties(asked),
        lambda: make(DATA, configuration=asked),
    ):
        with (
            unchanged(made),
            pytest.raises(InvalidInputError, match="reader version 3 with writer version 5"),
        ):
            act()


@pytest.mark.protocol("D-38", "TF-03", "B-07")
def test_features_are_named_in_any_case() -> None:
    made = make(DATA)
    made.alter.add_feature("DELETIONvectors", allow_protocol_versions_increase=True)
    made.alter.set_table_properties({"Delta.Feature.CHANGEdatafeed": "supported"})
    named = ("appendOnly", "changeDataFeed", "deletionVectors", "invariants")
    assert made.protocol().writer_features == named
    made.alter.drop_feature("deletionVECTORS")
    assert "deletionVectors" not in (made.protocol().writer_features or ())
    with pytest.raises(InvalidInputError, match="there is no table feature 'deletionVector'"):
        made.alter.add_feature("deletionVector")


@pytest.mark.protocol("NTZ-01")
@pytest.mark.parametrize("name", ["timestampWithoutTimezone", "timestampNTZ", "timestampNtz"])
def test_columns_without_zone_are_written_where_the_protocol_has_them(name: str) -> None:
    made = make([{"t": dt.datetime(2024, 1, 1)}])  # noqa: DTZ001  # without a zone
    store = store_of(made)
    line = next(line for line in actions(made) if "protocol" in line)["protocol"]

    def spelled(names: list[str]) -> list[str]:
        return [name if one == "timestampNtz" else one for one in names]

    lists = {key: spelled(line[key]) for key in ("readerFeatures", "writerFeatures")}
    logs.commit(store, 1, {"protocol": {**line, **lists}})
    write_deltalake(store, made.to_pyarrow_table(), mode="append")
    assert DeltaTable(store).to_pyarrow_table().num_rows == 2
    assert set(DeltaTable(store).protocol().reader_features or ()) == {name}


@pytest.mark.protocol("NTZ-01")
def test_a_type_whose_feature_the_protocol_lacks_is_read_and_not_written() -> None:
    made = make([{"t": dt.datetime(2024, 1, 1)}])  # noqa: DTZ001  # without a zone
    store, rows_before = store_of(made), made.to_pyarrow_table()
    logs.commit(store, 1, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
    made.update_incremental()
    assert made.to_pyarrow_table().equals(rows_before)
    for act in (
        lambda: write_deltalake(made, rows_before, mode="append"),
        lambda: write_deltalake(made, rows_before, mode="overwrite"),
        lambda: made.update(updates={"t": "t + interval 1 day"}),
    ):
        with (
            unchanged(made),
            pytest.raises(InvalidProtocolError, match=r"alter\.add_feature\('timestampNtz'"),
        ):
            act()
    made.alter.add_feature("timestampNtz", allow_protocol_versions_increase=True)
    write_deltalake(made, rows_before, mode="append")
    assert DeltaTable(store).to_pyarrow_table().num_rows == 2


@pytest.mark.protocol("CON-01", "CON-06", "GEN-04")
def test_rules_that_depend_on_the_time_are_kept_and_not_made() -> None:
    late = {"delta.constraints.late": "d <= current_date()"}
    raw = DataTable([("d", "date")], configuration=late)
    today = dt.datetime.now(dt.UTC).date()
    write_deltalake(raw.store, [{"d": today - dt.timedelta(days=1)}], mode="append")
    made = DeltaTable(raw.store)
    with unchanged(made), pytest.raises(ConstraintViolationError, match="'late'"):
        write_deltalake(made, [{"d": today + dt.timedelta(days=2)}], mode="append")
    with unchanged(made), pytest.raises(ConstraintViolationError, match="'late'"):
        made.update(updates={"d": "d + interval 3 day"})
    made.alter.set_table_properties({"x": "y"})
    for act in (
        lambda: made.alter.add_constraint({"later": "d > now()"}),
        lambda: DeltaTable.create(logs.DictStore(), made.schema(), configuration=late),
        lambda: made.alter.add_columns(
            Field("g", "date", metadata={"delta.generationExpression": "current_date()"})
        ),
    ):
        with unchanged(made), pytest.raises(InvalidInputError):
            act()


@pytest.mark.parametrize(
    ("key", "value"),
    [("enableChangeDataFeed", True), ("appendOnly", False), ("checkpointInterval", 10)],
)
def test_a_property_without_prefix_and_string_is_suggested_with_both(
    tmp_path: Path, key: str, value: object
) -> None:
    write_deltalake(tmp_path, {"id": [1]})
    alter = DeltaTable(tmp_path).alter
    text = str(value).lower()
    with pytest.raises(InvalidInputError, match=rf"such as \{{'delta\.{key}': '{text}'\}}"):
        alter.set_table_properties({key: value})  # type: ignore[dict-item]
    alter.set_table_properties({f"delta.{key}": text})
