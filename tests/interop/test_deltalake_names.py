"""deltalake's names mean here what they mean there: the same calls on the same tables.

What differs on purpose is in `docs/from-deltalake.md`, and tested where it belongs.
"""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

import deltalog
from deltalog.table.alter import TableAlterer
from deltalog.table.merge import TableMerger
from deltalog.table.optimize import TableOptimizer
from tests.support.raw_tables import RawTable

# deltalake's own deprecations are part of what is compared.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

DAY = dt.date(2024, 1, 1)
Ask = Callable[[Any], Any]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four versions: a write, an append, a delete, an update."""
    path = tmp_path_factory.mktemp("tables") / "parity"
    data = pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "p": ["a", "b", "a", None],
            "d": [DAY, dt.date(2024, 1, 2), DAY, None],
            "x": [1.5, None, 2.5, 3.0],
            "s": [{"a": 1, "b": "u"}, {"a": 2, "b": None}, None, {"a": 4, "b": "z"}],
            "l": [[1], [2, 3], None, []],
            "ts": pa.array(
                [dt.datetime(2024, 1, 1, 1, 2, 3, tzinfo=dt.UTC)] * 4, pa.timestamp("us", "UTC")
            ),
            "dec": pa.array([decimal.Decimal("1.10")] * 4, pa.decimal128(10, 2)),
            "bin": [b"x", b"y", None, b"z"],
            "name": ["é", "it's", "", None],
        }
    )
    write_deltalake(
        path,
        data,
        partition_by=["p", "d"],
        name="parity",
        description="compared",
        configuration={"delta.enableChangeDataFeed": "true"},
        commit_properties=CommitProperties(
            custom_metadata={"who": "us"}, app_transactions=[Transaction("app", 7, 123)]
        ),
    )
    write_deltalake(path, data.slice(0, 2), mode="append")
    deltalake.DeltaTable(path).delete("id = 2")
    deltalake.DeltaTable(path).update({"x": "x + 1"}, predicate="id = 1")
    return path


def both(path: Path, ask: Ask) -> tuple[Any, Any]:
    """The answers of deltalog and of deltalake."""
    return ask(deltalog.DeltaTable(path)), ask(deltalake.DeltaTable(path))


def _rows(table: Any) -> list[dict[str, Any]]:
    """The rows of anything that gives Arrow data, in an order of their own."""
    rows: list[dict[str, Any]] = pa.table(table).to_pylist()
    return sorted(rows, key=repr)


def _parts(partitions: list[dict[str, Any]]) -> list[list[tuple[str, Any]]]:
    """Partitions, whatever the order of their columns."""
    return sorted((sorted(partition.items()) for partition in partitions), key=repr)


QUESTIONS: dict[str, Ask] = {
    "version": lambda t: t.version(),
    "schema as JSON": lambda t: t.schema().to_json(),
    "schema as Arrow": lambda t: pa.schema(t.schema().to_arrow()),
    "schema as large types": lambda t: pa.schema(t.schema().to_arrow(as_large_types=True)),
    "fields": lambda t: [(f.name, str(f.nullable), f.metadata) for f in t.schema().fields],
    "id": lambda t: t.metadata().id,
    "name": lambda t: t.metadata().name,
    "description": lambda t: t.metadata().description,
    "partition columns": lambda t: list(t.metadata().partition_columns),
    "created time": lambda t: t.metadata().created_time,
    "configuration": lambda t: t.metadata().configuration,
    "reader version": lambda t: t.protocol().min_reader_version,
    "writer version": lambda t: t.protocol().min_writer_version,
    "reader features": lambda t: t.protocol().reader_features,
    "writer features": lambda t: t.protocol().writer_features,
    "count": lambda t: t.count(),
    "transaction version": lambda t: t.transaction_version("app"),
    "transaction version of nobody": lambda t: t.transaction_version("nobody"),
    "scan": lambda t: _rows(t.scan()),
    "scan with SQL": lambda t: _rows(t.scan(columns=["name", "id"], predicate="id > 1")),
    "no deletion vectors": lambda t: pa.table(t.deletion_vectors()).num_rows,
    "add actions": lambda t: _rows(t.get_add_actions()),
    "flat add actions": lambda t: _rows(t.get_add_actions(flatten=True)),
    "Arrow schema": lambda t: t.to_pyarrow_table().schema,
    "Arrow rows": lambda t: _rows(t.to_pyarrow_table()),
    "columns in order": lambda t: t.to_pyarrow_table(columns=["x", "id"]).schema,
    "no column": lambda t: t.to_pyarrow_table(columns=[]).shape,
    "dataset's schema": lambda t: t.to_pyarrow_dataset().schema,
    "large dataset's schema": lambda t: t.to_pyarrow_dataset(as_large_types=True).schema,
    "large dataset's rows": lambda t: _rows(t.to_pyarrow_dataset(as_large_types=True).to_table()),
    "dataset's filter": lambda t: (
        t.to_pyarrow_dataset().to_table(columns=["id"], filter=pc.field("id") > 2).num_rows
    ),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_answers_are_the_same(table: Path, ask: Ask) -> None:
    ours, theirs = both(table, ask)
    assert ours == theirs


PRUNING: list[Any] = [
    None,
    [],
    [("p", "=", "a")],
    [("p", "!=", "a")],
    [("p", "in", ["a", "b"])],
    [("p", "not in", ["a"])],
    [("p", "=", "")],
    [("p", "!=", "")],
    [("d", "=", "")],
    [("d", "=", "2024-01-01")],
    [("d", "=", DAY)],
    [("d", ">", DAY)],
    [[("p", "=", "a")], [("p", "=", "")]],
    [("id", "=", 1)],
    [("id", ">", "3")],
    "p = 'a' and id < 2",
    "p is null or id in (1, 2)",
]


@pytest.mark.parametrize("predicate", PRUNING, ids=repr)
def test_files_and_partitions_are_the_same(table: Path, predicate: Any) -> None:
    ours, theirs = both(table, lambda t: sorted(t.file_uris(file_pruning_predicate=predicate)))
    assert ours == theirs
    ours, theirs = both(table, lambda t: _parts(t.partitions(file_pruning_predicate=predicate)))
    assert ours == theirs


def test_partition_filters_are_positional(table: Path) -> None:
    chosen = [("p", "=", "a")]
    ours, theirs = both(table, lambda t: (t.file_uris(chosen), _parts(t.partitions(chosen))))
    assert ours == theirs


FILTERS: list[Any] = [
    [("id", ">", 1)],
    [("p", "=", "a")],
    [[("id", "=", 1)], [("p", "in", {"b"})]],
    [("d", "=", DAY)],
    [("x", "==", 2.5)],
    pc.field("id") == 3,
]


@pytest.mark.parametrize("filters", FILTERS, ids=repr)
def test_filters_give_the_same_rows(table: Path, filters: Any) -> None:
    ours, theirs = both(table, lambda t: _rows(t.to_pyarrow_table(filters=filters)))
    assert ours == theirs


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"columns": ["name", "id"]},
        {"partitions": [("p", "=", "a")]},
        {"partitions": [("p", "=", "")], "columns": ["id"]},
        {"filters": [("id", ">", 1)], "columns": ["x"]},
        {"types_mapper": {pa.int64(): pd.Int64Dtype()}.get},
    ],
    ids=["all", "columns", "partitions", "null-partition", "filters", "types_mapper"],
)
def test_pandas_gives_the_same_frame(table: Path, options: dict[str, Any]) -> None:
    ours, theirs = both(table, lambda t: t.to_pandas(**options))
    assert list(ours.dtypes.items()) == list(theirs.dtypes.items())
    order = list(ours.columns[:1])
    ours, theirs = (
        frame.sort_values(order).reset_index(drop=True).to_string() for frame in (ours, theirs)
    )
    assert ours == theirs


def test_history_tells_the_same(table: Path) -> None:
    def told(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        # Ours are the times that time travel goes by; theirs are what writers noted.
        return [{k: v for k, v in entry.items() if k != "timestamp"} for entry in entries]

    ours, theirs = both(table, lambda t: told(t.history()))
    assert ours == theirs
    ours, theirs = both(table, lambda t: told(t.history(2)))
    assert ours == theirs
    ours, theirs = both(table, lambda t: t.history(1)[0]["timestamp"])
    assert abs(ours - theirs) < 60_000


CHANGES: list[dict[str, Any]] = [
    {},
    {"starting_version": 1, "ending_version": 2},
    {"starting_version": 2, "columns": ["id", "_change_type"]},
    {"predicate": "id = 1"},
    {"starting_timestamp": "2020-01-01T00:00:00Z"},
    {"starting_version": 9, "allow_out_of_range": True},
]


@pytest.mark.parametrize("options", CHANGES, ids=repr)
def test_the_change_feed_gives_the_same_rows(table: Path, options: dict[str, Any]) -> None:
    def changes(found: deltalake.DeltaTable | deltalog.DeltaTable) -> list[dict[str, Any]]:
        rows = pa.table(found.load_cdf(**options)).to_pylist()
        # Theirs are without a zone, and from the writers' notes.
        for row in rows:
            row.pop("_commit_timestamp", None)
        return sorted((dict(sorted(row.items())) for row in rows), key=repr)

    ours, theirs = both(table, changes)
    assert ours == theirs


def test_the_change_feed_takes_its_arguments_by_position(table: Path) -> None:
    ours, theirs = both(
        table, lambda t: pa.table(t.load_cdf(1, 2, None, None, ["id"], "id = 1", True)).to_pylist()
    )
    assert ours == theirs == [{"id": 1}]


@pytest.mark.parametrize("version", [0, 2])
def test_travel_is_the_same(table: Path, version: int) -> None:
    def travelled(found: deltalake.DeltaTable | deltalog.DeltaTable) -> tuple[int, int]:
        found.load_as_version(version)
        return found.version(), found.count()

    ours, theirs = both(table, travelled)
    assert ours == theirs
    assert ours[0] == version


def test_update_incremental_goes_on(table: Path) -> None:
    def updated(kind: type[deltalake.DeltaTable | deltalog.DeltaTable]) -> int:
        found = kind(table, version=1)
        found.update_incremental()
        return found.version()

    assert updated(deltalog.DeltaTable) == updated(deltalake.DeltaTable) == 3


def test_is_deltatable(table: Path) -> None:
    places: list[str | Path] = [table, table / "p=a", table.parent / "nothing", str(table)]
    ours = [deltalog.DeltaTable.is_deltatable(place) for place in places]
    assert ours == [deltalake.DeltaTable.is_deltatable(place) for place in places]
    assert ours == [True, False, False, True]


def test_sql_gives_the_same_rows(table: Path) -> None:
    def rows(library: Any) -> list[dict[str, Any]]:
        query = library.QueryBuilder().register("t", library.DeltaTable(table))
        return _rows(query.execute("select id, sum(x) as total from t group by id"))

    assert rows(deltalog) == rows(deltalake)


READING = [
    "__init__",
    "is_deltatable",
    "version",
    "schema",
    "metadata",
    "protocol",
    "history",
    "file_uris",
    "partitions",
    "get_add_actions",
    "count",
    "deletion_vectors",
    "scan",
    "to_pyarrow_dataset",
    "to_pyarrow_table",
    "to_pandas",
    "load_cdf",
    "load_as_version",
    "update_incremental",
    "transaction_version",
]


@pytest.mark.parametrize("name", READING)
def test_arguments_have_the_same_names_and_places(name: str) -> None:
    ours, theirs = (
        list(inspect.signature(getattr(kind, name)).parameters.values())
        for kind in (deltalog.DeltaTable, deltalake.DeltaTable)
    )
    by_name = {parameter.name: parameter for parameter in ours}
    for place, parameter in enumerate(theirs):
        assert by_name[parameter.name].kind is parameter.kind
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            assert ours[place].name == parameter.name
    required = {p.name for p in ours if p.default is p.empty}
    assert required <= {p.name for p in theirs}


def _methods(kind: type, *names: str) -> dict[str, Callable[..., Any]]:
    chosen = names or tuple(name for name in vars(kind) if not name.startswith("_"))
    return {name: getattr(kind, name) for name in chosen}


VERBS = (
    "create", "delete", "update", "merge", "vacuum", "restore", "repair", "generate",
    "create_checkpoint", "cleanup_metadata", "compact_logs",
)  # fmt: skip
PAIRS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (ours[name], theirs[name])
    for ours, theirs in (
        (_methods(deltalog.DeltaTable, *VERBS), _methods(deltalake.DeltaTable, *VERBS)),
        (_methods(TableMerger), _methods(deltalake.table.TableMerger)),
        (_methods(TableOptimizer), _methods(deltalake.table.TableOptimizer)),
        (_methods(TableAlterer), _methods(deltalake.table.TableAlterer)),
    )
    for name in theirs
] + [
    (deltalog.write_deltalake, deltalake.write_deltalake),
    (deltalog.convert_to_deltalake, deltalake.convert_to_deltalake),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda verb: verb.__qualname__)
def test_verbs_take_the_same_arguments(
    ours: Callable[..., Any], theirs: Callable[..., Any]
) -> None:
    """By name everywhere, and by place where the peer does not warn of it."""
    mine = list(inspect.signature(ours).parameters.values())
    by_name = {parameter.name: parameter for parameter in mine}
    wanted = [p for p in inspect.signature(theirs).parameters.values() if p.name != "args"]
    for place, parameter in enumerate(wanted):
        assert repr(by_name[parameter.name].default) == repr(parameter.default), parameter.name
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            assert mine[place].name == parameter.name
            assert mine[place].kind is parameter.kind
    required = {p.name for p in mine if p.default is p.empty}
    assert required <= {p.name for p in wanted}


def test_deletion_vectors_are_the_same(tmp_path: Path) -> None:
    table = RawTable(tmp_path)
    table.create()
    _, vector = table.deletion_vector([0, 3])
    table.commit(1, [table.add(range(5), 1, vector), table.add([9], 2)])
    ours, theirs = both(tmp_path, lambda t: pa.table(t.deletion_vectors()).to_pylist())
    assert ours == [{**row, "filepath": row["filepath"].removeprefix("file://")} for row in theirs]
    assert ours[0]["filepath"] in deltalog.DeltaTable(tmp_path).file_uris()
    assert ours[0]["selection_vector"] == [False, True, True, False, True]
    ours, theirs = both(tmp_path, lambda t: _rows(t.scan(columns=["id"])))
    assert ours == theirs
    ours, theirs = both(tmp_path, lambda t: _rows(t.get_add_actions(flatten=True)))
    assert ours == theirs


def test_lists_of_features_are_the_same(tmp_path: Path) -> None:
    RawTable(tmp_path).create()
    ours, theirs = both(
        tmp_path, lambda t: (list(t.protocol().reader_features), list(t.protocol().writer_features))
    )
    assert ours == theirs == (["deletionVectors"], ["deletionVectors"])
