"""Delta Lake tables in pure Python."""
