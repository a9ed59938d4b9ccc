"""The subjects that are measured over the network: functions that return the call to measure.

Calls with the same names in both libraries are written once. A call opens the table by its URL, so
only imports are warm. It returns its result, which must be the same for all libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from benchmarks.loading import load_packages
from benchmarks.writers import append_by_threads

Call = Callable[[], object]
_APPENDED_ROWS = 1_000
_MERGED_ROWS = 1_000
_DELETED_ROWS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The location of a table, and parameters of the call.

    Args:
        url: URL of the table.
        options: storage options.
        needle: an id in the middle of a file.
        file_rows: number of rows of this file and of its neighbours.
        times: number of repetitions, if the call repeats an operation.
    """

    url: str
    options: dict[str, str]
    needle: int
    file_rows: int
    times: int


def _rows(ids: list[int]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "amount": pa.array([float(number) for number in ids]),
            "quantity": pa.array([number % 1_000 for number in ids], pa.int32()),
            "name": pa.array([f"name-{number % 5_000}" for number in ids]),
            "at": pa.array(
                [1_600_000_000_000_000 + number for number in ids], pa.timestamp("us", "UTC")
            ),
        }
    )


def _open(library: Any, place: Place) -> Call:
    return lambda: _table(library, place).version()


def _table(library: Any, place: Place) -> Any:
    return library.DeltaTable(place.url, storage_options=place.options)


def _history(library: Any, place: Place) -> Call:
    return lambda: len(_table(library, place).history())


def _append(library: Any, place: Place) -> Call:
    rows = _rows([-1 - number for number in range(_APPENDED_ROWS)])
    return lambda: library.write_deltalake(
        place.url, rows, mode="append", storage_options=place.options
    )


def _appends(library: Any, place: Place) -> Call:
    row = _rows([-1])

    def call() -> object:
        table = _table(library, place)
        for _ in range(place.times):
            library.write_deltalake(table, row, mode="append")
        return table.version()

    return call


def _appender(place: Place) -> Call:
    row = _rows([-1])
    library = import_module("deltalog")

    def call() -> object:
        table = _table(library, place)
        append_by_threads(table, row, place.times)
        return place.times

    return call


def _one_by_one(place: Place) -> Call:
    appended = _appends(import_module("deltalake"), place)

    def call() -> object:
        appended()
        return place.times

    return call


def _delete(library: Any, place: Place) -> Call:
    """Delete adjacent rows at the end of one file and in the next file."""
    first = place.needle - place.needle % place.file_rows - _DELETED_ROWS // 2
    where = f"id >= {first} and id < {first + _DELETED_ROWS}"
    return lambda: _table(library, place).delete(where)["num_deleted_rows"]


def _merge(library: Any, place: Place) -> Call:
    half = min(_MERGED_ROWS, place.file_rows) // 2
    first = place.needle - place.needle % place.file_rows
    source = _rows([*range(first, first + half), *range(-half, 0)])

    def call() -> object:
        merger = _table(library, place).merge(
            source, "target.id = source.id", source_alias="source", target_alias="target"
        )
        merged = merger.when_matched_update_all().when_not_matched_insert_all().execute()
        return merged["num_target_rows_inserted"], merged["num_target_rows_updated"]

    return call


def _checkpoint(library: Any, place: Place) -> Call:
    return lambda: _table(library, place).create_checkpoint()


def _vacuum(library: Any, place: Place) -> Call:
    return lambda: len(_table(library, place).vacuum(dry_run=False))


def _deltalog_plan(place: Place) -> Call:
    from deltalog import DeltaTable, col

    def call() -> object:
        table = DeltaTable(place.url, storage_options=place.options)
        return len(list(table.scan(predicate=col("id") == place.needle).tasks()))

    return call


def _deltalake_plan(place: Place) -> Call:
    from deltalake import DeltaTable

    def call() -> object:
        table = DeltaTable(place.url, storage_options=place.options)
        return len(table.file_uris(file_pruning_predicate=[("id", "=", place.needle)]))

    return call


def _deltalog_point(place: Place) -> Call:
    from deltalog import DeltaTable, col

    def call() -> object:
        table = DeltaTable(place.url, storage_options=place.options)
        return table.scan(predicate=col("id") == place.needle).to_table().num_rows

    return call


def _deltalog_read(columns: list[str] | None, place: Place) -> Call:
    from deltalog import DeltaTable

    def call() -> object:
        table = DeltaTable(place.url, storage_options=place.options)
        return table.scan(columns=columns).to_table().num_rows

    return call


def _deltalake_query(query: str, place: Place) -> Call:
    from deltalake import DeltaTable, QueryBuilder

    def call() -> object:
        table = DeltaTable(place.url, storage_options=place.options)
        result = QueryBuilder().register("t", table).execute(query.format(needle=place.needle))
        return sum(batch.num_rows for batch in result)

    return call


def _deltalake_arrow_point(place: Place) -> Call:
    import pyarrow.compute as pc
    from deltalake import DeltaTable

    def call() -> object:
        table = DeltaTable(place.url, storage_options=place.options)
        return table.to_pyarrow_dataset().to_table(filter=pc.field("id") == place.needle).num_rows

    return call


def _deltalake_arrow_read(columns: list[str] | None, place: Place) -> Call:
    from deltalake import DeltaTable

    def call() -> object:
        table = DeltaTable(place.url, storage_options=place.options)
        return table.to_pyarrow_table(columns=columns).num_rows

    return call


def _pyarrow_read(columns: list[str] | None, place: Place) -> Call:
    """Read the files of a listing: pyarrow does not read the log."""
    import pyarrow.dataset as ds
    from pyarrow import fs

    parts = urlsplit(place.url)

    def call() -> object:
        store = fs.S3FileSystem(
            access_key=place.options["AWS_ACCESS_KEY_ID"],
            secret_key=place.options["AWS_SECRET_ACCESS_KEY"],
            region=place.options["AWS_REGION"],
            endpoint_override=place.options["AWS_ENDPOINT_URL"],
        )
        selector = fs.FileSelector(f"{parts.netloc}{parts.path}")
        found = store.get_file_info(selector)
        files = [one for one in found if one.path.endswith(".parquet")]
        # Told what the listing found, it asks for no file again.
        dataset = ds.dataset(files, filesystem=store, format="parquet")  # type: ignore[call-overload]
        return dataset.to_table(columns=columns).num_rows

    return call


_ALIKE: Mapping[str, Callable[[Any, Place], Call]] = {
    "open": _open,
    "history": _history,
    "append": _append,
    "appends": _appends,
    "delete": _delete,
    "merge": _merge,
    "checkpoint": _checkpoint,
    "vacuum": _vacuum,
}
_OTHERS: Mapping[str, Callable[[Place], Call]] = {
    "deltalog_appender": _appender,
    "deltalake_appender": _one_by_one,
    "deltalog_plan": _deltalog_plan,
    "deltalake_plan": _deltalake_plan,
    "deltalog_point": _deltalog_point,
    "deltalake_point": partial(_deltalake_query, "select * from t where id = {needle}"),
    "deltalake_arrow_point": _deltalake_arrow_point,
    "deltalog_read": partial(_deltalog_read, None),
    "deltalake_read": partial(_deltalake_query, "select * from t"),
    "deltalake_arrow_read": partial(_deltalake_arrow_read, None),
    "pyarrow_read": partial(_pyarrow_read, None),
    "deltalog_column": partial(_deltalog_read, ["amount"]),
    "deltalake_column": partial(_deltalake_query, "select amount from t"),
    "deltalake_arrow_column": partial(_deltalake_arrow_read, ["amount"]),
    "pyarrow_column": partial(_pyarrow_read, ["amount"]),
}


def prepared(library: str, subject: str, place: Place) -> Call:
    """Return the call to measure, with its imports loaded."""
    if library == "deltalog":
        _load_deltalog()
    elif library == "deltalake_arrow":
        import_module("deltalake.fs")
    if subject in _ALIKE:
        return _ALIKE[subject](import_module(library), place)
    return _OTHERS[f"{library}_{subject}"](place)


def _load_deltalog() -> None:
    """Load the modules that operations and stores import at first use: imports are not timed."""
    for client in ("s3fs", "obstore.store", "obstore.exceptions"):
        import_module(client)
    load_packages()
