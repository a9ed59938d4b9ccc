"""Polars, Dask, Ray, Daft, fsspec, OpenTelemetry, OpenLineage.

Protocol: none
"""

__all__: tuple[str, ...] = ()
