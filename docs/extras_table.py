"""The extras of the package, from pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

_PYPROJECT: Final = Path(__file__).resolve().parent.parent / "pyproject.toml"
# What each extra is for; a test compares the names with those of pyproject.toml.
PURPOSES: Final = {
    "s3": "Amazon S3 and compatible stores, such as R2 and MinIO",
    "azure": "Azure Blob Storage, ADLS Gen2, OneLake",
    "gcs": "Google Cloud Storage",
    "duckdb": "queries in SQL, DuckDB relations",
    "polars": "Polars frames, including lazy frames",
    "pandas": "pandas frames",
    "cli": "the command `deltalog`",
    "sharing": "Delta Sharing, client and server",
    "catalogs": "Unity Catalog",
    "glue": "AWS Glue",
    "iceberg": "Iceberg metadata for Delta tables, conversion of Iceberg tables",
    "plot": "plots of a table",
    "spark": "PySpark, without a jar",
    "spark-connect": "PySpark with Spark Connect",
    "dask": "Dask dataframes",
    "ray": "Ray data sets",
    "daft": "Daft dataframes",
    "opentelemetry": "spans and metrics",
    "openlineage": "lineage events",
}


def extras() -> dict[str, list[str]]:
    """The requirements of each extra."""
    project = tomllib.loads(_PYPROJECT.read_text("utf-8"))["project"]
    found: dict[str, list[str]] = project["optional-dependencies"]
    return found


def extras_in_all() -> set[str]:
    """The names of the extras that `all` includes."""
    return Requirement(extras()["all"][0]).extras


def extras_table() -> str:
    """One row for each extra but `all`: what it is for, what it installs, whether `all` has it."""
    found, included = extras(), extras_in_all()
    rows = [
        f"| `{name}` | {purpose} | {', '.join(map(_package, found[name]))} "
        f"| {'yes' if name in included else 'no'} |\n"
        for name, purpose in PURPOSES.items()
    ]
    return f"| extra | for | installs | in `all` |\n|---|---|---|---|\n{''.join(rows)}"


def _package(requirement: str) -> str:
    parsed = Requirement(requirement)
    return f"`{parsed.name}`"
