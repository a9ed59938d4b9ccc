"""Small helpers that are independent of tables: clock, JSON, paths, kernels, progress.

Protocol: none
"""

__all__: tuple[str, ...] = ()
