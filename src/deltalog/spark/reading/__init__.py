"""Read tables on Spark.

Spark's own Parquet reader reads all files that it reads correctly; Python workers read the other
files. `scan` plans a read, and `native` converts the plan to a dataframe. `by_options` plans
reads, including change feeds, from the options of the format. `batch_source` is the format's reader
in Python.
"""

from __future__ import annotations

__all__: list[str] = []
