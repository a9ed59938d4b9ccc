"""Integrations with Dask, Ray, Daft, pyarrow file systems, OpenTelemetry and OpenLineage.

Protocol: none
"""

__all__: tuple[str, ...] = ()
