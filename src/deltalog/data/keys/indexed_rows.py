"""The rows of a file that the key index finds, as a part of a read task.

Workers unpickle tasks, so this module does not need NumPy.

Protocol: none (delta-io/delta #7435 proposes record-level indexes)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class IndexedRows:
    """The rows of a file that may have the keys of a predicate, by the key index.

    Args:
        positions: the physical positions of the rows, ascending.
        num_rows: the number of rows of the file, according to the index.
    """

    positions: pa.Int64Array
    num_rows: int
