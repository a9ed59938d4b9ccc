"""Benchmarks over a network: an S3 server behind a proxy that delays requests.

`python -m benchmarks --wire` starts both, measures, and rewrites `docs/benchmarks-wire.md`.
"""

__all__: list[str] = []
