"""Read tables on Spark: by its Parquet reader where that is exact, else by Python workers."""

from __future__ import annotations

__all__: list[str] = []
