"""Rows and data files: scan and write.

- `scan`: from a snapshot to rows.
- `write`: from rows to data files and their add actions.

Protocol: none
"""

__all__: tuple[str, ...] = ()
