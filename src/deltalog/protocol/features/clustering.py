"""Clustering: the columns by which the rows of a table are clustered.

The domain's configuration has two forms: a list of names, as in the protocol's example, and a list
of paths, as in Delta Spark (requirement D-55). Names are physical.

Protocol: Clustered Table
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog._util.json import JsonObject, dumps, loads
from deltalog.errors import InvalidInputError, MalformedLogError
from deltalog.protocol.actions.model import DomainMetadata
from deltalog.protocol.column_mapping import Mode, physical_path
from deltalog.protocol.stats.schema import has_bounds, indexed_columns
from deltalog.schema.columns import canonical_path_of, find_field, walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.protocol.actions.properties import TableProperties
    from deltalog.schema.types import StructType

CLUSTERING_DOMAIN: Final = "delta.clustering"
_MAX_COLUMNS: Final = 4  # as in Delta Spark


def clustering_columns(domains: Mapping[str, DomainMetadata]) -> tuple[tuple[str, ...], ...] | None:
    """Return the physical paths of the clustering columns; None if the table is not clustered.

    After `CLUSTER BY NONE`, the result is empty.

    Raises:
        MalformedLogError: the domain's configuration is malformed.
    """
    domain = domains.get(CLUSTERING_DOMAIN)
    if domain is None or domain.removed:
        return None
    # The protocol specifies a map of strings, but writers store a JSON string. Accept both.
    text = domain.configuration
    values = loads(text, CLUSTERING_DOMAIN) if isinstance(text, str) else dict(text)
    node = JsonObject(values, CLUSTERING_DOMAIN)
    columns = node.required("clusteringColumns", list)
    return tuple(_path(column) for column in columns)


def logical_clustering_columns(
    domains: Mapping[str, DomainMetadata], schema: StructType, mode: Mode
) -> tuple[tuple[str, ...], ...]:
    """Return the logical paths of the clustering columns; empty if the table is not clustered.

    Raises:
        MalformedLogError: see `clustering_columns`.
    """
    known = {tuple(physical_path(schema, path, mode)): path for path, _ in walk(schema)}
    return tuple(known.get(path, path) for path in clustering_columns(domains) or ())


def clustering_action(columns: Sequence[Sequence[str]]) -> DomainMetadata:
    """Return the action that sets the clustering columns, in the form of Delta Spark."""
    values = {
        "clusteringColumns": [list(path) for path in columns],
        "domainName": CLUSTERING_DOMAIN,
    }
    return DomainMetadata(domain=CLUSTERING_DOMAIN, configuration=dumps(values).decode())


def check_clustering_columns(
    columns: Sequence[str | tuple[str, ...]],
    schema: StructType,
    partition_columns: Sequence[str],
    properties: TableProperties,
) -> tuple[tuple[str, ...], ...]:
    """Return the logical paths of the columns to cluster by, spelled as in the schema.

    Raises:
        InvalidInputError: a column does not exist, is repeated, or has no minimum and maximum; the
            table is partitioned; or there are too many columns.

    Protocol: Writer Requirements for Clustered Table
    """
    if partition_columns:
        raise InvalidInputError(
            f"a table is clustered or partitioned, not both: it is partitioned by "
            f"{', '.join(map(repr, partition_columns))}; write the rows to a new table"
        )
    paths = [canonical_path_of(schema, column) for column in columns]
    if len(set(paths)) < len(paths):
        raise InvalidInputError("a clustering column is given twice")
    if len(paths) > _MAX_COLUMNS:
        raise InvalidInputError(
            f"cannot cluster by {len(paths)} columns: expected at most {_MAX_COLUMNS}"
        )
    indexed = indexed_columns(
        schema,
        num_indexed_columns=properties.data_skipping_num_indexed_cols,
        columns=properties.data_skipping_stats_columns,
    )
    with_stats = {path for path, _ in indexed}
    for path in paths:
        field = find_field(schema, path)
        if not has_bounds(field):
            raise InvalidInputError(
                f"cannot cluster by {'.'.join(path)!r}: values of type {field.type} have no "
                "minimum and maximum in statistics"
            )
        if path not in with_stats:
            raise InvalidInputError(
                f"cannot cluster by {'.'.join(path)!r}: the column has no statistics; add it to "
                "delta.dataSkippingStatsColumns or raise delta.dataSkippingNumIndexedCols"
            )
    return tuple(paths)


def _path(column: Any) -> tuple[str, ...]:
    parts = [column] if isinstance(column, str) else column
    if not isinstance(parts, list) or not parts or not all(isinstance(part, str) for part in parts):
        raise MalformedLogError(
            f"{CLUSTERING_DOMAIN}: expected a column name or a list of names, found {column!r}"
        )
    return tuple(parts)
