"""Clustering: the columns by which rows are kept close.

Owns the two forms of the domain's configuration: a list of names, as the protocol's example has
it, and a list of paths, as writers write it (ledger D-55). Names are physical.

Protocol: Clustered Table
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog._json import JsonObject, dumps, loads
from deltalog.actions.model import DomainMetadata
from deltalog.errors import MalformedLogError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLUSTERING_DOMAIN: Final = "delta.clustering"


def clustering_columns(domains: Mapping[str, DomainMetadata]) -> tuple[tuple[str, ...], ...] | None:
    """Physical paths of the clustering columns, or None if the table is not clustered.

    Empty after `CLUSTER BY NONE`.

    Raises:
        MalformedLogError: the domain's configuration is none of clustering.
    """
    domain = domains.get(CLUSTERING_DOMAIN)
    if domain is None or domain.removed:
        return None
    text = domain.configuration
    values = loads(text, CLUSTERING_DOMAIN) if isinstance(text, str) else dict(text)
    node = JsonObject(values, CLUSTERING_DOMAIN)
    columns = node.required("clusteringColumns", list)
    return tuple(_path(column) for column in columns)


def clustering_action(columns: Sequence[Sequence[str]]) -> DomainMetadata:
    """The action that sets the clustering columns, in the form that other writers write."""
    values = {
        "clusteringColumns": [list(path) for path in columns],
        "domainName": CLUSTERING_DOMAIN,
    }
    return DomainMetadata(domain=CLUSTERING_DOMAIN, configuration=dumps(values).decode())


def _path(column: Any) -> tuple[str, ...]:
    parts = [column] if isinstance(column, str) else column
    if not isinstance(parts, list) or not parts or not all(isinstance(part, str) for part in parts):
        raise MalformedLogError(
            f"{CLUSTERING_DOMAIN}: expected a column name or a list of names, found {column!r}"
        )
    return tuple(parts)
