"""The rules of the Delta protocol, without I/O.

- `actions`: the log's actions and table properties. `configuration`: protocol and metadata of a
  table.
- `features`: the registry of table features, and their requirements.
- `table_change`: changes of protocol and metadata. `stats`: statistics and data skipping.
- `column_mapping`, `deletion_vectors`, `partition_values`: the parts of the protocol with these
  names.

Protocol: none
"""

__all__: tuple[str, ...] = ()
