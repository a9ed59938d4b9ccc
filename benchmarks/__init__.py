"""Comparisons of deltalog with its peers: workloads as data, each measurement in its own process.

`python -m benchmarks` builds the tables once, measures, and rewrites `docs/benchmarks.md`.
"""

__all__: list[str] = []
