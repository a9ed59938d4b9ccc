"""Generate symlink manifests: lists of live files for engines that cannot read the log.

A manifest is a plain text file with the location of one data file per line. Each partition has a
manifest below `_symlink_format_manifest`. Each call rewrites all of them; with the property
`delta.compatibility.symlinkFormatManifest.enabled`, each commit does so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.paths import decode_path, join
from deltalog.errors import InvalidInputError
from deltalog.protocol.features.support import check_readable
from deltalog.protocol.partition_values import extract, hive_directory
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from deltalog.log.snapshot import Snapshot

_DIRECTORY: Final = "_symlink_format_manifest"


def generate_symlink_manifest(snapshot: Snapshot) -> list[str]:
    """Write the manifests of a version, and delete manifests of partitions that no longer exist.

    Returns:
        The paths of the manifests, relative to the root.

    Raises:
        InvalidInputError: files have deletion vectors, which readers of manifests would ignore.

    Cost: writes one small file per partition, and lists the existing manifests.
    """
    configuration, store = snapshot.configuration, snapshot.store
    check_readable(
        configuration,
        table=store.root,
        version=snapshot.version,
        has_log_tail=snapshot.log_tail is not None,
    )
    files = snapshot.files(["path", "partitionValues", "deletionVector"])
    vectors: Any = files.column("deletionVector")
    if vectors.null_count < len(vectors):
        raise InvalidInputError(
            f"cannot generate a manifest of {store.root}: files have deletion vectors, and readers "
            "of the manifest would return the deleted rows; run optimize.purge() first"
        )
    manifests = _manifests(snapshot, files)
    stale = {info.path for info in store.list_all(_DIRECTORY)} - manifests.keys()
    map_in_pool(lambda path: store.put(path, manifests[path]), list(manifests))
    store.delete_many(sorted(path for path in stale if path.endswith("/manifest")))
    return sorted(manifests)


def _manifests(snapshot: Snapshot, files: pa.Table) -> dict[str, bytes]:
    """Return the manifests to write: path → content."""
    configuration = snapshot.configuration
    keys = configuration.physical_partition_columns
    if not keys:
        return {f"{_DIRECTORY}/manifest": _content(snapshot.store.root, files.column("path"))}
    values = files.column("partitionValues")
    texts: list[Any] = [extract(values, key) for key in keys]
    names = configuration.partition_columns
    columns = [f"p{number}" for number in range(len(keys))]
    table = pa.Table.from_arrays([files.column("path"), *texts], ["path", *columns])
    groups = table.group_by(columns, use_threads=False).aggregate([("path", "list")])
    found: dict[str, bytes] = {}
    for row in groups.to_pylist():
        partition = {name: row[column] for name, column in zip(names, columns, strict=True)}
        directory = hive_directory(names, partition)
        found[f"{_DIRECTORY}/{directory}/manifest"] = _content(
            snapshot.store.root, pa.array(row["path_list"], pa.string())
        )
    return found


def _content(root: str, paths: Any) -> bytes:
    """Return the manifest of some files: one decoded location per line.

    A local path is written as `file:/x`, as in Hadoop.
    """
    texts: list[str] = paths.to_pylist()
    places = [join(root, decode_path(text)) for text in texts]
    lines = [f"file:{place}\n" if place.startswith("/") else f"{place}\n" for place in places]
    return "".join(lines).encode()
