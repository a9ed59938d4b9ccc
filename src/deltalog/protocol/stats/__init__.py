"""Statistics of data files: schema, JSON form, collection, and data skipping.

Core: no I/O.

- `schema`: the columns with statistics, and the Arrow schema of statistics.
- `parse`: JSON strings to columns.
- `ranges`, `rewrite`, `skipping`: data skipping.
- `collect`: statistics of new files.

Protocol: Per-file Statistics
"""

__all__: tuple[str, ...] = ()
