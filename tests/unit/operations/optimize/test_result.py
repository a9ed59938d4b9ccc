"""What an optimization tells of itself."""

from __future__ import annotations

from deltalog.operations.optimize import Optimized


def test_quantiles_are_delta_sparks() -> None:
    metrics = Optimized(strategy="", added_sizes=(736, 731)).metrics()
    assert [metrics[f"p{share}FileSize"] for share in (25, 50, 75)] == [731, 736, 736]
