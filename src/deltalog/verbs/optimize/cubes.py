"""ZCUBEs: groups of files that were clustered together, marked with Delta Spark's tags.

Owns the tags, and which files an incremental clustering rewrites: those without a cube, and those
of cubes that are not full yet.

Protocol: Clustered Table; the tags are Delta Spark's
"""

from __future__ import annotations

import re
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._json import dumps, loads
from deltalog.column_mapping import physical_path
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.features.clustering import clustering_columns
from deltalog.kernels import compute
from deltalog.partition_values import extract
from deltalog.rows.external_sort import one_piece
from deltalog.schema.columns import walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.schema.columns import Path
    from deltalog.snapshot import Snapshot
    from deltalog.write.written import WrittenFiles

PROVIDER: Final = "liquid"
_ID: Final = "ZCUBE_ID"
_BY: Final = "ZCUBE_ZORDER_BY"
_CUBE: Final = "cube"
_PLAIN: Final = re.compile(r"(?!\d+$)[A-Za-z0-9_]+")


def clustered_by(snapshot: Snapshot) -> tuple[Path, ...]:
    """Return the logical paths of the clustering columns; empty if the table is not clustered.

    Raises:
        InvalidInputError: the table has no column for a physical name in the domain.
    """
    wanted = clustering_columns(snapshot.domain_metadata) or ()
    if not wanted:
        return ()
    configuration = snapshot.configuration
    mode = configuration.column_mapping_mode
    known = {
        physical_path(configuration.schema, path, mode): path
        for path, _ in walk(configuration.schema)
    }
    for path in wanted:
        if path not in known:
            raise InvalidInputError(
                f"cannot cluster {snapshot.store.root} by {'.'.join(path)!r}: there is no such "
                "column; set the clustering columns anew"
            )
    return tuple(known[path] for path in wanted)


def quoted(path: Path) -> str:
    """Return a column as Spark writes it, with backticks around parts that need them."""
    return ".".join(
        part if _PLAIN.fullmatch(part) else f"`{part.replace('`', '``')}`" for part in path
    )


def cube_tags(columns: Sequence[Path]) -> dict[str, str | None]:
    """Return the tags of a new cube."""
    names = [quoted(path) for path in columns]
    return {_ID: str(uuid.uuid4()), _BY: dumps(names).decode()}


def tagged(
    written: WrittenFiles, tags: Mapping[str, str | None], provider: str | None
) -> WrittenFiles:
    """Return new files with the tags of a cube."""
    adds = [
        replace(add, tags={**(add.tags or {}), **tags}, clustering_provider=provider)
        for add in written.adds
    ]
    return replace(written, adds=tuple(adds))


def with_cubes(files: pa.Table) -> pa.Table:
    """Return the files with the id of their cube, ordered by it; NULL comes first: no cube."""
    tags = files.column("tags")
    ids, names = (one_piece(extract(tags, key)) for key in (_ID, _BY))
    cubes = compute.if_else(names.is_valid(), ids, pa.scalar(None, pa.string()))
    found = files.append_column(_CUBE, cubes)
    order = compute.array_sort_indices(one_piece(compute.fill_null(cubes, "")))
    return found.take(order)


def cubes_of(files: pa.Table) -> Any:
    """Return the cube ids of files from `with_cubes`."""
    return files.column(_CUBE)


def unclustered(files: pa.Table) -> pa.Table:
    """Return the files that are in no cube."""
    found = with_cubes(files)
    return found.filter(compute.is_null(cubes_of(found)))


def files_to_cluster(files: pa.Table, columns: Sequence[Path], min_cube_bytes: int) -> pa.Table:
    """Return the files that an incremental clustering rewrites, ordered by cube.

    These are files without a cube, and files of cubes that are not full. Cubes by other columns,
    and files of another clustering provider, stay until a full clustering.

    Args:
        files: from `considered_files`.
        columns: the clustering columns.
        min_cube_bytes: the size from which a cube is full.
    """
    found = with_cubes(files)
    provider = found.column("clusteringProvider")
    ours = compute.fill_null(compute.equal(provider, PROVIDER), fill_value=True)
    in_cube = compute.is_valid(cubes_of(found))
    matching = compute.or_(compute.invert(in_cube), _same_columns(found, columns))
    found = found.filter(compute.and_(ours, matching))
    by_cube = found.select([_CUBE, "liveSize"]).group_by(_CUBE, use_threads=False)
    sizes = by_cube.aggregate([("liveSize", "sum")])
    full = sizes.filter(compute.greater_equal(sizes.column("liveSize_sum"), min_cube_bytes))
    full_ids = compute.drop_null(full.column(_CUBE))
    is_full = compute.is_in(cubes_of(found), value_set=one_piece(full_ids))
    found = found.filter(compute.invert(is_full))
    # A single cube would be rewritten into the same cube: nothing to gain.
    return found.slice(0, 0) if _is_one_cube(found) else found


def _is_one_cube(files: pa.Table) -> bool:
    cubes = cubes_of(files)
    return cubes.null_count == 0 and len(compute.unique(cubes)) == 1


def _same_columns(files: pa.Table, columns: Sequence[Path]) -> Any:
    """Return a mask of the files that were clustered by these columns.

    Each distinct tag is parsed once, as there are few.
    """
    texts = one_piece(extract(files.column("tags"), _BY))
    wanted = [quoted(path) for path in columns]
    known: list[Any] = compute.drop_null(compute.unique(texts)).to_pylist()
    same = [text for text in known if _names(text) == wanted]
    return compute.is_in(texts, value_set=pa.array(same, pa.string()))


def _names(text: str) -> object:
    try:
        return loads(text, _BY)
    except DeltaError:
        return None
