"""From a snapshot to rows: plan, prune, read.

Owns which files a read needs, which rows of them are alive, and how a physical batch becomes a
logical one. Everything that shows rows of a table (pandas, Polars, DuckDB, Spark, Sharing) reads
through this room.
"""
