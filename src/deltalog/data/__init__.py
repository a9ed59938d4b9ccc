"""Rows and data files: scan and write.

- `scan`: reads the rows of a snapshot.
- `write`: writes rows to data files, and returns add actions for the files.

Protocol: none
"""

__all__: tuple[str, ...] = ()
