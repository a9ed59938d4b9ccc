"""The only door to bytes: stores, atomic creation, Parquet files."""
