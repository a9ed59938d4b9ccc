"""Table features: the registry, and a module for the rules of each feature.

Core: no I/O. Names that many packages use can also be imported from this package.

Protocol: Table Features
"""

from __future__ import annotations

from deltalog.protocol.features.clustering import clustering_columns, logical_clustering_columns
from deltalog.protocol.features.protocol_change import supported_features, with_features
from deltalog.protocol.features.registry import (
    FEATURES,
    Kind,
    Support,
    canonical_name,
    find_feature,
)
from deltalog.protocol.features.support import check_deletion_vectors, check_readable

__all__ = [
    "FEATURES",
    "Kind",
    "Support",
    "canonical_name",
    "check_deletion_vectors",
    "check_readable",
    "clustering_columns",
    "find_feature",
    "logical_clustering_columns",
    "supported_features",
    "with_features",
]
