"""Reading of tables on Spark.

Spark's own Parquet reader reads the files that it reads correctly, and Python workers read the
others. `scan` plans a read, and `native` returns its data frame. `by_options` plans a read from the
format's options, including change feeds. `batch_source` is the format's Python reader.
"""

from __future__ import annotations

__all__: list[str] = []
