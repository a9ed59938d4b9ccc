"""Where the tests of the core enter it: each entry is put behind `Both` while a case runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable
from deltalog.catalogs.table_uri import open_table_store
from deltalog.log.context import utc_context
from deltalog.log.listing import has_table
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.arguments import as_condition, as_updates
from deltalog.operations.changes.request import ChangeMetrics, ChangeRequest
from deltalog.operations.merge import Merge
from deltalog.operations.optimize import Cluster, Compact, Optimized, ZOrder
from deltalog.operations.restore import Restored
from deltalog.storage.store import Store
from deltalog.table import merge as merging
from tests.spark.parity.both import Both, read_rows
from tests.spark.parity.twin import Numbers, Twin, app_of
from tests.support.aging import AgingTable
from tests.support.optimizing import OptimizedTable
from tests.support.statements import StatedTable

# What a statement may be asked for that Spark's interface has no argument for: it is then left to
# the core, and another one of the case must be compared.
_USUAL = {
    "use_deletion_vectors": None,
    "error_on_type_mismatch": True,
    "dry_run": False,
    "progress": None,
}


def watch(both: Both, patch: pytest.MonkeyPatch, module: ModuleType) -> None:
    """Put what the tests of a module call behind `both`."""
    _watch_stated(both, patch)
    _watch_optimized(both, patch)
    _watch_facade(both, patch)
    if hasattr(module, "restore"):
        patch.setattr(module, "restore", _restoring(both, module.restore))
    if hasattr(module, "write_deltalake"):
        patch.setattr(module, "write_deltalake", _writing(both, module.write_deltalake))


def _is_only_here(options: Mapping[str, Any]) -> bool:
    return any(options.get(name, usual) is not usual for name, usual in _USUAL.items())


def _asked(changes: ChangeRequest) -> dict[str, Any]:
    return {
        "error_on_type_mismatch": changes.error_on_type_mismatch,
        "use_deletion_vectors": changes.use_deletion_vectors,
    }


def _affected(done: ChangeMetrics) -> Numbers:
    deleted = done.rows.deleted_not_matched_by_source
    return {
        "num_affected_rows": None
        if deleted is None
        else deleted + done.rows.updated_not_matched_by_source
    }


# --- tables of statements


def _watch_stated(both: Both, patch: pytest.MonkeyPatch) -> None:
    update, delete, merge = StatedTable.update, StatedTable.delete, StatedTable.run_merge

    def watched_update(
        table: StatedTable, values: Mapping[Any, object], where: Any = None, **options: Any
    ) -> ChangeMetrics:
        if _is_only_here(options):
            return update(table, values, where, **options)
        return both.do(
            table.store,
            lambda: update(table, values, where),
            lambda twin: twin.update(values, where),
            numbers=_affected,
        )

    def watched_delete(table: StatedTable, where: Any = None) -> ChangeMetrics:
        return both.do(
            table.store,
            lambda: delete(table, where),
            lambda twin: twin.delete(where),
            numbers=_affected,
        )

    def watched_merge(
        table: StatedTable, source: object, asked: Merge, **options: Any
    ) -> ChangeMetrics:
        if _is_only_here(_asked(asked.request)):
            return merge(table, source, asked, **options)
        rows, again = read_rows(source)
        return both.do(
            table.store,
            lambda: merge(table, again(), asked, **options),
            lambda twin: twin.merge(rows, asked.request),
            numbers=_merged,
        )

    patch.setattr(StatedTable, "update", watched_update)
    patch.setattr(StatedTable, "delete", watched_delete)
    patch.setattr(StatedTable, "run_merge", watched_merge)


_OPTIMIZATIONS: Mapping[Any, Callable[..., Numbers]] = {
    Compact: Twin.compact,
    Cluster: Twin.compact,  # Spark's one word for both
    ZOrder: Twin.z_order,
}


def _watch_optimized(both: Both, patch: pytest.MonkeyPatch) -> None:
    optimize = OptimizedTable.optimize

    def watched(table: OptimizedTable, verb: Any, *given: Any, **options: Any) -> Optimized:
        said = _OPTIMIZATIONS.get(verb)
        if said is None or options:
            return optimize(table, verb, *given, **options)
        return both.do(
            table.store,
            lambda: optimize(table, verb, *given),
            lambda twin: said(twin, *given),
            numbers=lambda done: {
                "files added": len(done.added_sizes),
                "files removed": len(done.removed_sizes),
            },
        )

    patch.setattr(OptimizedTable, "optimize", watched)


def _restoring(both: Both, original: Any) -> Any:
    def watched(table: AgingTable, version: int, **options: Any) -> Restored:
        if options:
            found: Restored = original(table, version, **options)
            return found
        done: Restored = both.do(
            table.store,
            lambda: original(table, version),
            lambda twin: twin.restore(version),
            gives_numbers=False,
            numbers=lambda done: {
                "num_restored_files": done.num_restored_files,
                "num_removed_files": done.num_removed_files,
            },
        )
        return done

    return watched


def _merged(done: ChangeMetrics) -> Numbers:
    rows = done.rows
    return {
        "num_affected_rows": rows.all_updated + rows.all_deleted + rows.inserted,
        "num_updated_rows": rows.all_updated,
        "num_deleted_rows": rows.all_deleted,
        "num_inserted_rows": rows.inserted,
    }


# --- the facade


def _watch_facade(both: Both, patch: pytest.MonkeyPatch) -> None:
    for name, said in (("delete", _said_delete), ("update", _said_update)):
        patch.setattr(DeltaTable, name, _changing(both, getattr(DeltaTable, name), said))
    execute = merging.TableMerger.execute

    def watched_execute(merger: Any, **options: Any) -> dict[str, Any]:
        request = merger._merge.request
        is_table = isinstance(merger._target, DeltaTable)
        if not is_table or _is_only_here({**options, **_asked(request)}):
            return execute(merger, **options)
        rows, again = read_rows(request.source)
        merger._merge = merger._merge.with_source(again())
        return both.do(
            merger._target.snapshot.store,
            lambda: execute(merger, **options),
            lambda twin: twin.merge(rows, request),
            app=app_of(merger._options.get("commit_properties")),
        )

    patch.setattr(merging.TableMerger, "execute", watched_execute)


Said = Callable[[Twin, DeltaTable, Mapping[str, Any]], Numbers]


def _changing(both: Both, original: Any, said: Said) -> Any:
    signature = inspect.signature(original)

    @wraps(original)
    def watched(table: DeltaTable, *given: Any, **named: Any) -> dict[str, Any]:
        options = signature.bind(table, *given, **named).arguments
        if _is_only_here(options):
            return original(table, *given, **named)  # type: ignore[no-any-return]  # any original
        return both.do(
            table.snapshot.store,
            lambda: original(table, *given, **named),
            lambda twin: said(twin, table, options),
            app=app_of(options.get("commit_properties")),
            numbers=lambda done: {
                "num_affected_rows": done.get("num_deleted_rows", done.get("num_updated_rows", 0))
            },
        )

    return watched


def _said_delete(twin: Twin, table: DeltaTable, options: Mapping[str, Any]) -> Numbers:
    return twin.delete(_condition(table.snapshot.store, options))


def _said_update(twin: Twin, table: DeltaTable, options: Mapping[str, Any]) -> Numbers:
    values: Mapping[Any, object] = options.get("updates") or {}
    if options.get("parameters") or options.get("new_values"):
        values = as_updates(
            options.get("updates"), options.get("new_values"), options.get("parameters")
        )
    return twin.update(values, _condition(table.snapshot.store, options))


def _condition(store: Store, options: Mapping[str, Any]) -> Any:
    """A condition as it is written; with its parameters, if it has some."""
    condition, parameters = options.get("predicate"), options.get("parameters")
    if not parameters or condition is None:
        return condition
    context = utc_context(store)
    schema = load_snapshot(context).configuration.schema
    return as_condition(schema, condition, session=context.session, parameters=parameters)


# --- writes

_WORDS = {
    "partition_by": "partition_by",
    "partition_overwrite": "partition_overwrite",
    "target_file_size": "target_file_size",
    "mode": "mode",
}


def _writing(both: Both, original: Any) -> Any:
    @wraps(original)
    def watched(table_or_uri: Any, data: object, **options: Any) -> None:
        if isinstance(table_or_uri, DeltaTable):
            store = table_or_uri.snapshot.store
        else:
            store, at = open_table_store(table_or_uri, None, None)
            assert at is None
        if data == [] and options.get("schema_mode") == "overwrite":
            original(table_or_uri, data, **options)  # frames have columns
            return
        rows, again = _rows_for(store, data)
        both.do(
            store,
            lambda: original(table_or_uri, again(), **options),
            lambda twin: twin.write(rows, **_said_write(store, options)),
            app=app_of(options.get("commit_properties")),
            apart_from=["name and description"],
        )

    return watched


def _rows_for(store: Store, data: object) -> tuple[pa.Table, Callable[[], object]]:
    """Rows; an empty list has the columns that the table has."""
    if data == [] and has_table(store):
        return load_snapshot(
            utc_context(store)
        ).configuration.arrow_schema.empty_table(), lambda: data
    return read_rows(data)


def _said_write(store: Store, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options in Spark's words."""
    said = {_WORDS[name]: value for name, value in options.items() if name in _WORDS}
    match options.get("schema_mode"):
        case "merge":
            said["merge_schema"] = True
        case "overwrite":
            said["overwrite_schema"] = True
    if options.get("predicate") is not None:
        said["replace_where"] = _condition(store, options)
    if options.get("configuration"):
        said["properties"] = dict(options["configuration"])
    told = getattr(options.get("commit_properties"), "custom_metadata", None) or {}
    if "userMetadata" in told:
        said["user_metadata"] = told["userMetadata"]
    return said
