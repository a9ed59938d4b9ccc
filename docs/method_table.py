"""The overview of `DeltaTable`: its methods by purpose, with what their docstrings say first."""

from __future__ import annotations

import inspect
from typing import Final

from deltalog import DeltaTable

GROUPS: Final[dict[str, str]] = {
    "Open, create, choose a version": (
        "create is_deltatable load_as_version update_incremental version is_pinned table_uri"
    ),
    "Read rows": (
        "scan to_pandas to_polars to_duckdb to_arrow to_pyarrow_table to_pyarrow_dataset sql "
        "head count"
    ),
    "Read changes": "load_cdf follow diff",
    "Change rows": "delete update merge upsert truncate appender transaction",
    "Change the table": "alter set_domain_metadata remove_domain_metadata",
    "Inspect": (
        "schema metadata protocol properties history detail describe doctor plot partitions "
        "file_uris get_add_actions deletion_vectors domain_metadata transaction_version"
    ),
    "Maintain": (
        "optimize vacuum vacuum_report restore clone repair generate sync_iceberg "
        "create_checkpoint cleanup_metadata compact_logs"
    ),
    "Branches (a preview)": "branch branches audit publish discard drop_branch",
    "Write on many machines, commit on one": "write_spec commit create_write_transaction",
    "For extensions of deltalog": "from_context if_any snapshot engine do execute run",
}
"""A heading → the names of methods and properties below it."""


def method_table() -> str:
    """One Markdown table: a row for each group, with linked names; the text is in the page."""
    rows = [
        f"| {title} | {', '.join(map(_linked, names.split()))} |\n"
        for title, names in GROUPS.items()
    ]
    return "| to | use |\n|---|---|\n" + "".join(rows)


def public_members() -> set[str]:
    """The names of all public methods and properties of a table."""
    return {name for name, _ in inspect.getmembers(DeltaTable) if not name.startswith("_")}


def _linked(name: str) -> str:
    return f"[`{name}`](#deltalog.DeltaTable.{name})"
