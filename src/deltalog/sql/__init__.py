"""SQL statements over tables by their names, and a PEP 249 connection."""
