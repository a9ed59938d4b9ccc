"""The key index of a table (a preview): hashes of keys, packs of hashes, and looking keys up.

`hashing` defines the key of a table and the hash of a key, `packs` finds and writes the packs of a
table, and `lookup` finds the rows that may match a predicate. `storage.key_packs` knows the format.

Protocol: none (delta-io/delta #7435 proposes record-level indexes)
"""

from __future__ import annotations

__all__: list[str] = []
