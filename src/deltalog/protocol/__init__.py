"""Delta's rules, without I/O.

- `actions`: the log's actions and table properties. `configuration`: protocol and metadata
  together.
- `features`: the table features, one row each, and what they require.
- `table_change`: how protocol and metadata may change. `stats`: statistics and data skipping.
- `column_mapping`, `deletion_vectors`, `partition_values`: one part of the protocol each.

Protocol: none
"""

__all__: tuple[str, ...] = ()
