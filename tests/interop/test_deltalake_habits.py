"""What deltalake's users do by habit is answered in the same way: warnings, the history."""

from __future__ import annotations

import ast
import datetime as dt
import decimal
import importlib
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import deltalog
from deltalog import table_defaults

LIBRARIES = (deltalake, deltalog)
BY_P = [("p", "=", "a")]


def _made(library: Any, place: Path, **options: Any) -> Any:
    place = place / library.__name__
    library.write_deltalake(place, pa.table({"id": [1, 2], "p": ["a", "b"]}), **options)
    return library.DeltaTable(place)


def _deprecated(ask: Callable[[], object]) -> list[str]:
    """What is said of deprecated arguments of a call."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ask()
    return [str(one.message) for one in seen if one.category is DeprecationWarning]


@pytest.mark.parametrize(
    ("argument", "value"), [("without_files", True), ("log_buffer_size", 1), ("skip_stats", True)]
)
def test_arguments_without_effect_are_deprecated(
    argument: str, value: object, tmp_path: Path
) -> None:
    for library in LIBRARIES:
        made: Any = _made(library, tmp_path)
        place = made.table_uri
        (told,) = _deprecated(lambda: library.DeltaTable(place, **{argument: value}))  # noqa: B023
        assert argument in told
        assert "ignored" in told
        assert _deprecated(lambda: library.DeltaTable(place)) == []  # noqa: B023


def test_the_caller_is_warned(tmp_path: Path) -> None:
    table = _made(deltalog, tmp_path, partition_by="p")
    with pytest.warns(DeprecationWarning, match="partition_filters") as seen:
        table.file_uris(BY_P)
    assert [one.filename for one in seen] == [__file__]


@pytest.mark.parametrize(
    ("argument", "ask"),
    [
        ("partition_filters", lambda table: table.file_uris(BY_P)),
        ("partition_filters", lambda table: table.partitions(partition_filters=BY_P)),
        ("partitions", lambda table: table.to_pyarrow_dataset(BY_P)),
        ("partitions", lambda table: table.to_pyarrow_table(partitions=BY_P)),
        ("partitions", lambda table: table.to_pandas(partitions=BY_P)),
    ],
)
def test_filters_under_their_old_names_are_deprecated(
    argument: str, ask: Callable[[Any], Any], tmp_path: Path
) -> None:
    for library in LIBRARIES:
        table = _made(library, tmp_path, partition_by="p")
        (told,) = _deprecated(lambda: ask(table))  # noqa: B023
        assert argument in told


@pytest.mark.parametrize(
    "features", ["ChangeDataFeed", ["DeletionVectors", "ColumnMapping"]], ids=str
)
def test_an_added_feature_is_told_as_there(features: Any, tmp_path: Path) -> None:
    told = []
    for library in LIBRARIES:
        table = _made(library, tmp_path)
        known = library.TableFeatures
        wanted = (
            getattr(known, features)
            if isinstance(features, str)
            else [getattr(known, name) for name in features]
        )
        table.alter.add_feature(wanted, allow_protocol_versions_increase=True)
        entry = table.history(1)[0]
        told.append((entry["operation"], entry["operationParameters"]))
    assert told[0] == told[1]
    assert told[0][0] == "ADD FEATURE"


def test_spaces_in_names_need_column_mapping(tmp_path: Path) -> None:
    rows = pa.table({"first name": ["x"]})
    with pytest.raises(deltalog.errors.InvalidInputError, match=r"delta\.columnMapping\.mode"):
        deltalog.write_deltalake(tmp_path / "t", rows)
    with table_defaults({"delta.columnMapping.mode": "name"}):
        deltalog.write_deltalake(tmp_path / "t", rows)
    assert deltalog.DeltaTable(tmp_path / "t").to_pyarrow_table().equals(rows)


def test_a_new_column_of_the_data_is_not_generated(tmp_path: Path) -> None:
    """Rows that are there have NULL in it, which is another value than the expression's."""
    fields = [pa.field("id", pa.int64()), pa.field("g", pa.int32())]
    fields[1] = fields[1].with_metadata({"delta.generationExpression": "5"})
    rows = pa.table({"id": [3], "g": [5]}, schema=pa.schema(fields))
    for library in LIBRARIES:
        table = _made(library, tmp_path)
        with pytest.raises(library.exceptions.SchemaMismatchError):
            library.write_deltalake(table, rows, mode="append", schema_mode="merge")
        merger = table.merge(rows, "s.id = t.id", "s", "t", merge_schema=True)
        with pytest.raises(library.exceptions.SchemaMismatchError):
            merger.when_not_matched_insert_all().execute()


def test_only_columns_that_get_statistics_are_reported(tmp_path: Path) -> None:
    for library in LIBRARIES:
        table = _made(library, tmp_path, configuration={"delta.dataSkippingStatsColumns": "id"})
        found = pa.table(table.get_add_actions(flatten=True))
        assert {"null_count.id", "min.id", "max.id"} <= set(found.column_names)
        assert not [name for name in found.column_names if name.endswith(".p")]


def test_modules_are_attributes_without_an_import_of_their_own() -> None:
    names = ("exceptions", "query", "schema", "table", "transaction", "writer")
    for library in LIBRARIES:
        asked = [f"print(library.{name})" for name in names]
        code = "\n".join([f"import {library.__name__} as library", *asked])
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert all(f"{library.__name__}.{name}" in run.stdout.decode() for name in names)


MOMENT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
GOOD: dict[str, Any] = {
    "homeTeam": 1,
    "s": {"a": 1},
    "at": MOMENT,
    "noon": MOMENT.replace(tzinfo=None),
    "name": "abc",
    "price": decimal.Decimal("1.50"),
}


def _rows_of(values: dict[str, Any]) -> pa.Table:
    return pa.table({name: [value] for name, value in values.items()})


@pytest.mark.parametrize(
    ("condition", "bad"),
    [
        ("homeTeam > 0", {"homeTeam": 0}),
        ('"homeTeam" > 0', {"homeTeam": 0}),
        ("`homeTeam` IN (1, 2)", {"homeTeam": 3}),
        ("s.a > 0", {"s": {"a": 0}}),
        ("at >= '2024-01-01T00:00:00Z'", {"at": MOMENT - dt.timedelta(microseconds=1)}),
        ("noon < '2025-01-01'", {"noon": dt.datetime(2025, 1, 1)}),  # noqa: DTZ001  # it has none
        ("name LIKE 'a%' AND name <> 'it''s'", {"name": "it's"}),
    ],
)
def test_constraints_hold_in_both_directions(
    condition: str, bad: dict[str, Any], tmp_path: Path
) -> None:
    """Each stores them in words of its own, which the other one reads."""
    for maker in LIBRARIES:
        place = tmp_path / maker.__name__
        maker.write_deltalake(place, _rows_of(GOOD))
        maker.DeltaTable(place).alter.add_constraint({"c": condition})
        for library in LIBRARIES:
            library.write_deltalake(place, _rows_of(GOOD), mode="append")
            with pytest.raises(library.exceptions.DeltaError):
                library.write_deltalake(place, _rows_of({**GOOD, **bad}), mode="append")
        assert deltalog.DeltaTable(place).count() == 3


def test_the_doctor_says_how_spark_can_write_a_table_of_deltalake(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, _rows_of(GOOD))
    deltalake.DeltaTable(tmp_path).alter.add_constraint({"c": "homeTeam > 0 AND s.a > 0"})
    table = deltalog.DeltaTable(tmp_path)
    (warning,) = (one for one in table.doctor().findings if one.severity == "warning")
    assert "Delta Spark 4.4 cannot write it: the CHECK constraint 'c'" in warning.message
    assert warning.advice is not None
    table.alter.drop_constraint("c")
    added = warning.advice.partition("then alter.add_constraint(")[2].removesuffix(")")
    table.alter.add_constraint(ast.literal_eval(added))
    assert table.doctor().is_healthy
    for library in LIBRARIES:
        library.write_deltalake(tmp_path, _rows_of(GOOD), mode="append")
        with pytest.raises(library.exceptions.DeltaError):
            library.write_deltalake(tmp_path, _rows_of({**GOOD, "homeTeam": 0}), mode="append")


def test_columns_of_a_new_table_s_constraints_may_be_in_double_quotes(tmp_path: Path) -> None:
    schema = pa.schema({"homeTeam": pa.int64()})
    table = deltalog.DeltaTable.create(tmp_path, schema, constraints={"c": '"homeTeam" > 0'})
    assert table.properties.constraints == {"c": "`homeTeam` > 0"}


def test_columns_of_another_type_are_cast_where_others_are_added(tmp_path: Path) -> None:
    rows = pa.table({"id": ["3"], "p": [5], "new": [1.5]})
    found = []
    for library in LIBRARIES:
        table = _made(library, tmp_path)
        library.write_deltalake(table, rows, mode="append", schema_mode="merge")
        merger = table.merge(rows, "s.new = t.new + 1", "s", "t", merge_schema=True)
        merger.when_not_matched_insert_all().execute()
        with pytest.raises(library.exceptions.DeltaError if library is deltalog else Exception):
            library.write_deltalake(
                table, pa.table({"id": ["x"]}), mode="append", schema_mode="merge"
            )
        found.append(
            sorted(library.DeltaTable(table.table_uri).to_pyarrow_table().to_pylist(), key=repr)
        )
    assert found[0] == found[1]
    assert found[1][-1] == {"id": 3, "p": "5", "new": 1.5}


def test_options_of_files_have_a_module_of_their_own() -> None:
    for library in LIBRARIES:
        module = importlib.import_module(f"{library.__name__}.writer.properties")
        assert module.WriterProperties is library.WriterProperties


@pytest.mark.parametrize("mode", ["NAME", "Id"])
def test_values_of_properties_in_another_case_mean_the_same_in_both(
    mode: str, tmp_path: Path
) -> None:
    """deltalake compares the values exactly; it reads NULL if it does not know the mode."""
    properties = {"delta.columnMapping.mode": mode}
    deltalog.write_deltalake(tmp_path, pa.table({"a": [1, 2]}), configuration=properties)
    rows = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path))
    assert pa.table(rows.execute("SELECT a FROM t").read_all()).to_pydict() == {"a": [1, 2]}


def test_a_table_that_must_not_change_is_safe_in_both(tmp_path: Path) -> None:
    properties = {"delta.appendOnly": "True"}
    deltalog.write_deltalake(tmp_path, pa.table({"a": [1, 2]}), configuration=properties)
    for library in LIBRARIES:
        with pytest.raises(library.exceptions.DeltaError, match=r"append.only"):
            library.DeltaTable(tmp_path).delete("a = 1")


@pytest.mark.parametrize("given", ["30 days", "INTERVAL 30 DAYS", "interval 10 days 480 hours"])
def test_retention_periods_in_other_forms_bind_both(given: str, tmp_path: Path) -> None:
    properties = {"delta.deletedFileRetentionDuration": given}
    deltalog.write_deltalake(tmp_path, pa.table({"a": [1, 2]}), configuration=properties)
    for library in LIBRARIES:
        with pytest.raises(library.exceptions.DeltaError, match="720"):
            library.DeltaTable(tmp_path).vacuum(retention_hours=480, dry_run=True)


def test_a_table_of_deltalake_is_accepted_as_rows(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    deltalog.write_deltalake(tmp_path / "a", pa.table({"a": [1, 2]}), configuration=properties)
    source: Any = deltalake.DeltaTable(tmp_path / "a")
    deltalog.write_deltalake(tmp_path / "a", pa.table({"a": [3]}), mode="append")
    deltalog.write_deltalake(tmp_path / "b", source)  # at its own version
    table = deltalog.DeltaTable(tmp_path / "b")
    assert table.to_pyarrow_table().to_pydict() == {"a": [1, 2]}
    newest: Any = deltalake.DeltaTable(tmp_path / "a")
    assert table.upsert(newest, "a")["num_target_rows_inserted"] == 1
    merger = table.merge(newest, "s.a = t.a", "s", "t").when_matched_delete()
    assert merger.execute()["num_target_rows_deleted"] == 3
    assert deltalog.sql("SELECT count(*) FROM t", t=newest).to_pylist() == [{"count(1)": 3}]
