"""deltalog beside its peers: workloads as data, every measurement in a process of its own.

`python -m benchmarks` builds the tables once, measures, and rewrites `docs/benchmarks.md`.
"""

__all__: list[str] = []
