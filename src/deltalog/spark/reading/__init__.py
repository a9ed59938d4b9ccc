"""Read tables on Spark: with its own Parquet reader where that is exact, else in Python workers.

`scan` plans a read and `native` makes its frame. `by_options` starts from the format's options, and
also makes the frame of a change feed. `batch_source` is the format's Python reader.
"""

from __future__ import annotations

__all__: list[str] = []
