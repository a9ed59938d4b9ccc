"""Table features: what they are, when they are on, and what a protocol change makes of them.

Core: no I/O. Files import only those before them: schema_traits, registry, protocol_change,
row_ids, in_commit_timestamps, clustering, support.

Protocol: Table Features
"""

from __future__ import annotations

from deltalog.features.clustering import CLUSTERING_DOMAIN, clustering_action, clustering_columns
from deltalog.features.in_commit_timestamps import InCommitTimestamps, next_timestamp_ms
from deltalog.features.protocol_change import (
    denormalise,
    implied_features,
    least_protocol,
    merge,
    normalise,
    supported_features,
    with_features,
    without_feature,
)
from deltalog.features.registry import (
    FEATURES,
    Engine,
    Kind,
    Support,
    TableFeature,
    canonical_name,
    find_feature,
)
from deltalog.features.row_ids import (
    ROW_TRACKING_DOMAIN,
    Dialect,
    high_water_mark,
    high_water_mark_action,
)
from deltalog.features.support import (
    check_deletion_vectors,
    check_protocol,
    check_readable,
    check_types,
    check_writable,
    engines_for,
)

__all__ = [
    "CLUSTERING_DOMAIN",
    "FEATURES",
    "ROW_TRACKING_DOMAIN",
    "Dialect",
    "Engine",
    "InCommitTimestamps",
    "Kind",
    "Support",
    "TableFeature",
    "canonical_name",
    "check_deletion_vectors",
    "check_protocol",
    "check_readable",
    "check_types",
    "check_writable",
    "clustering_action",
    "clustering_columns",
    "denormalise",
    "engines_for",
    "find_feature",
    "high_water_mark",
    "high_water_mark_action",
    "implied_features",
    "least_protocol",
    "merge",
    "next_timestamp_ms",
    "normalise",
    "supported_features",
    "with_features",
    "without_feature",
]
