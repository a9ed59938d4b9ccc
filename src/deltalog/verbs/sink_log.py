"""The log of a streaming sink of Spark, which says which files of its directory are whole.

A sink of Parquet files notes each batch in `_spark_metadata`; files of batches that were cut off,
and of those that ran a second time, lie beside the others and must not be read.

Protocol: none; Spark's FileStreamSinkLog, version 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog._json import JsonObject, loads
from deltalog.errors import InvalidInputError, MalformedLogError
from deltalog.paths import canonical_path, decode_path, is_absolute

if TYPE_CHECKING:
    from deltalog.storage.store import Store

SINK_LOG: Final = "_spark_metadata"
_VERSION: Final = "v1"
_COMPACT: Final = ".compact"


def files_of_sink(store: Store) -> frozenset[str] | None:
    """Return the paths of all files that a sink has committed; None if no sink wrote here.

    Args:
        store: of the directory.

    Raises:
        InvalidInputError: the log cannot be read, or it is of another directory.

    Cost: one listing, and the batches since the last compaction of the log.
    """
    names = [info.name for info in store.list_from(SINK_LOG, "")]
    batches = {int(name): name for name in names if name.isdecimal()}
    ends = {int(name.removesuffix(_COMPACT)): name for name in names if _is_compact(name)}
    if not batches and not ends:
        return None
    last = max(ends, default=-1)
    used = [ends[last]] if ends else []
    used += [name for batch, name in sorted(batches.items()) if batch > last]
    found: set[str] = set()
    for name, data in zip(used, store.read_many([f"{SINK_LOG}/{n}" for n in used]), strict=True):
        _apply(found, f"{SINK_LOG}/{name}", data, store.root)
    return frozenset(found)


def _is_compact(name: str) -> bool:
    return name.endswith(_COMPACT) and name.removesuffix(_COMPACT).isdecimal()


def _apply(found: set[str], path: str, data: bytes, root: str) -> None:
    """Add the files of one batch, and take out those that it removed."""
    version, *lines = data.decode("utf-8", "replace").splitlines() or [""]
    if version != _VERSION:
        raise InvalidInputError(
            f"cannot convert {root}: {path} begins with {version[:20]!r}, and {_VERSION!r} is what "
            "deltalog knows of the logs of streaming sinks"
        )
    for line in lines:
        try:
            node = JsonObject(loads(line, path), path)
            location = canonical_path(decode_path(node.required("path", str)), root)
            action = node.required("action", str)
        except MalformedLogError as error:
            raise InvalidInputError(f"cannot convert {root}: {error}") from error
        if is_absolute(location):
            raise InvalidInputError(
                f"cannot convert {root}: its {path} names {location!r}, which is elsewhere; a "
                "directory of a streaming sink that was moved has no list of its whole files"
            )
        if action == "delete":
            found.discard(location)
        else:
            found.add(location)
