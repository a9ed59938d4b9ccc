"""Helpers that do not depend on tables: clock, JSON, paths, kernels, progress.

Protocol: none
"""

__all__: tuple[str, ...] = ()
