"""Statistics of data files: schema, JSON form, collection, and data skipping.

Core: no I/O. Reading: `schema`, `parse` (JSON column → structs). Skipping: `ranges`, `rewrite`,
`skipping`. Writing: `collect`.

Protocol: Per-file Statistics
"""

__all__: tuple[str, ...] = ()
