"""The key index of a table (a preview): hashes of keys, packs of hashes, and looking keys up.

`hashing` defines the key of a table and the hash of a key, `packs` finds and writes the packs of a
table, and `lookup` finds the rows that may match a predicate. `storage.key_packs` knows the format.

Protocol: none (delta-io/delta #7435 proposes record-level indexes)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

# The other modules need NumPy; workers that unpickle tasks with this class do not.


@dataclass(frozen=True, slots=True)
class IndexedRows:
    """The rows of a file that may have the keys of a predicate, by the key index.

    Args:
        positions: the physical positions of the rows, ascending.
        num_rows: the number of rows of the file, according to the index.
    """

    positions: pa.Int64Array
    num_rows: int
