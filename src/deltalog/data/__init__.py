"""Rows and data files: reading and writing.

- `scan`: reads the rows of a snapshot.
- `write`: writes rows to data files, and returns add actions for the files.

Protocol: none
"""

__all__: tuple[str, ...] = ()
