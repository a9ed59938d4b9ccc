"""Keys that identify the file of each row in Spark's frames.

Owns the choice: a file's length is a number, and joins by it take a fraction of the time of joins
by name. It is used only if no two files have the same length, and the log has the right lengths.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.paths import decode_path
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

    from deltalog.storage.store import Store

KEY: Final = "__deltalog_file"
"""Column that identifies the file of a row."""
MOST_LOOKED_AT: Final = 1000
"""Most files whose lengths are looked up; each takes a request."""
_MOST_NUMBERS: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class FileKey:
    """The key that identifies files.

    Args:
        column: of Spark's `_metadata`.
        modulus: a power of two by which file lengths leave different remainders, so that a row of
            any file is one number; 0 for names.
    """

    column: str
    modulus: int = 0

    @property
    def ddl(self) -> str:
        """Return the type of `KEY`."""
        return "BIGINT" if self.modulus else "STRING"

    def of_row(self, hidden: Column) -> Column:
        """Return `KEY` of a row, from Spark's `_metadata`."""
        return hidden[self.column].alias(KEY)

    def position(self, row: str) -> Column:
        """Return one number that identifies a row of any file.

        Args:
            row: the column with its position in the file.
        """
        bits = self.modulus.bit_length() - 1
        return F.expr(f"shiftleft({row}, {bits}) | ({KEY} & {self.modulus - 1}L)")

    def of_files(self, files: pa.Table) -> pa.ChunkedArray[Any]:
        """Return the value of `KEY` for each file."""
        found: pa.ChunkedArray[Any] = files.column("size" if self.modulus else "name")
        return found


def key_of(store: Store, files: pa.Table) -> FileKey:
    """Choose a key for files of different names.

    Cost: a request per file, up to `MOST_LOOKED_AT` files.
    """
    by_name = FileKey("file_name")
    sizes = files.column("size")
    if files.num_rows > MOST_LOOKED_AT or sizes.null_count:
        return by_name
    modulus = _modulus(sizes.to_pylist())
    if not modulus:
        return by_name
    paths = [decode_path(str(path)) for path in files.column("path").to_pylist()]
    true = map_in_pool(lambda path: store.stat(path).size_bytes, paths)
    return FileKey("file_size", modulus) if true == sizes.to_pylist() else by_name


def _modulus(sizes: list[Any]) -> int:
    """Return the least power of two modulo which all sizes differ; 0 if it is too large."""
    if len(set(sizes)) < len(sizes):
        return 0
    modulus = 1
    while modulus <= _MOST_NUMBERS:
        if len({size % modulus for size in sizes}) == len(sizes):
            return modulus
        modulus *= 2
    return 0
