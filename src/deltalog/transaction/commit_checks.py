"""The final check of a commit: refuse what contradicts itself or the table.

Protocol: Action Reconciliation, Append-only Tables
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog import column_mapping
from deltalog.actions.commit_rules import check_commit
from deltalog.errors import InternalError, InvalidInputError
from deltalog.features import row_ids
from deltalog.features.guards import check_may_remove
from deltalog.features.support import check_column_types
from deltalog.kernels import compute
from deltalog.paths import encode_path
from deltalog.replay import file_keys
from deltalog.replay.keys import SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deltalog.actions import Action
    from deltalog.configuration import TableConfiguration
    from deltalog.transaction.pending import PendingTransaction


def check_parts(
    pending: PendingTransaction,
    configuration: TableConfiguration,
    actions: Sequence[Action],
    rows: pa.Table,
    *,
    before: TableConfiguration | None,
) -> None:
    """Refuse a commit that would make the table invalid.

    Args:
        pending: the content of the commit.
        configuration: protocol and metadata after it.
        actions: its actions, except existing files.
        rows: existing files that it adds again, `FILE_SCHEMA`.
        before: protocol and metadata of the version below it; None for a new table.

    Raises:
        InvalidInputError: two actions are about the same thing, the table is append-only, it does
            not support metadata domains, or its rows would get a second row id.
        InvalidProtocolError: it adds rows of a type that needs a feature which the protocol lacks.
        InvalidMetadataError: two columns have one name or one id in the files.
        InternalError: one of our operations staged something impossible.

    Cost: one hash aggregation over the paths of the commit.
    """
    check_commit(actions)
    if pending.domains and not configuration.supports("domainMetadata"):
        raise InvalidInputError(
            f"cannot set metadata domains of {pending.store.root}: the protocol lacks the table "
            "feature domainMetadata; add it first"
        )
    # What stands decides: a commit must not lift the prohibition for itself, as a replaced, cloned
    # or restored table would.
    if before is not None and any(changed for _, changed in pending.removes):
        check_may_remove(
            before.features,
            before.properties,
            table=pending.store.root,
            operation=pending.operation,
        )
    if pending.adds or pending.changes_metadata:
        column_mapping.check_distinct(
            configuration.schema,
            configuration.column_mapping_mode,
            table=pending.store.root,
            operation=pending.operation,
        )
    if pending.adds:
        check_column_types(configuration, table=pending.store.root, operation=pending.operation)
    row_ids.check_change(
        configuration.features,
        configuration.properties,
        before=None if before is None else before.features,
        was_enabled=before is not None and before.row_ids_enabled,
        table=pending.store.root,
        operation=pending.operation,
    )
    has_vectors = rows.column("deletionVector").null_count < rows.num_rows or any(
        add.deletion_vector is not None for add in pending.adds
    )
    if has_vectors and not configuration.may_have_deletion_vectors:
        raise InternalError("cannot commit deletion vectors: the table lacks the feature")
    _check_files(pending, rows)


def _check_files(pending: PendingTransaction, rows: pa.Table) -> None:
    """Refuse a path twice among adds or among removes, and a logical file in both."""
    removed = [files for files, _ in pending.removes]
    if not removed and not rows.num_rows:
        return  # `check_commit` has covered the rest
    root = pending.store.root
    new_paths = _keys(_texts(encode_path(add.path) for add in pending.adds), None, root)
    new_keys = _texts(
        path if add.deletion_vector is None else f"{path}{SEPARATOR}{add.deletion_vector.unique_id}"
        for path, add in zip(new_paths.to_pylist(), pending.adds, strict=True)
    )
    added_paths = _join([new_paths, _keys(rows.column("path"), None, root)])
    removed_paths = _join([_keys(files.column("path"), None, root) for files in removed])
    _refuse_twice("add", added_paths)
    _refuse_twice("remove", removed_paths)
    added = _join([new_keys, _keys(rows.column("path"), rows.column("deletionVector"), root)])
    gone = _join(
        [_keys(files.column("path"), files.column("deletionVector"), root) for files in removed]
    )
    both = gone.filter(compute.is_in(gone, value_set=added))
    if len(both):
        path = str(both[0]).partition(SEPARATOR)[0]
        raise InvalidInputError(f"cannot add and remove the same file in one commit: {path!r}")


def _keys(paths: Any, vectors: Any, root: str) -> Any:
    return file_keys(paths, vectors, root)


def _texts(values: Iterable[str]) -> Any:
    return pa.chunked_array([pa.array(list(values), pa.string())])


def _join(columns: Sequence[Any]) -> Any:
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())


def _refuse_twice(what: str, keys: Any) -> None:
    counts = compute.value_counts(keys)
    twice = counts.filter(compute.greater(compute.struct_field(counts, "counts"), 1))
    if len(twice):
        path = twice[0].as_py()["values"]
        raise InvalidInputError(f"cannot {what} the file {path!r} twice in one commit")
