"""Small helpers that know no table: clock, JSON, paths, kernels, progress.

Protocol: none
"""

__all__: tuple[str, ...] = ()
