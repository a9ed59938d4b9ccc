"""Read tables on Spark: by its Parquet reader where that is exact, else by Python workers.

`scan` is a read that is planned, `native` makes its frame, `native_changes` that of a change feed;
`by_options` begins with the options of the format. `batch_source` is the format's Python reader.
"""

from __future__ import annotations

__all__: list[str] = []
