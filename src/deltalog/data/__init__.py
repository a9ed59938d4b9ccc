"""Rows and data files: scan, write, rewrite.

Protocol: none
"""

__all__: tuple[str, ...] = ()
