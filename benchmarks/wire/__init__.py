"""deltalog and its peers over a network: an S3 server behind a proxy that is slow on purpose.

`python -m benchmarks --wire` starts both, measures, and rewrites `docs/benchmarks-wire.md`.
"""

__all__: list[str] = []
