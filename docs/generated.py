"""The generated parts of pages: made of registries, docstrings and measurements.

A part is in the page itself, which is therefore complete wherever the Markdown is read:

    <!-- generated: extras_table -->
    | extra | for | …
    <!-- end of extras_table -->

Nobody types that: `python -m docs.generated`, which `make outputs` runs, writes all parts, and a
test compares them with what would be written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from docs.benchmark_rows import rows_against
from docs.error_table import error_index
from docs.extras_table import extras_table
from docs.feature_table import (
    deltalake_table,
    feature_table,
    function_list,
    property_table,
    reading_table,
    refusal_table,
    type_table,
    writing_table,
)
from docs.measured_tables import (
    growing_tables,
    memory_of_operations,
    times_of_appends,
    times_of_operations,
)
from docs.method_table import method_table
from docs.reference_index import reference_index
from docs.settings_table import settings_tables
from docs.unreleased import unreleased_changes

DOCS: Final = Path(__file__).resolve().parent
GENERATED: Final[dict[str, dict[str, Callable[[], str]]]] = {
    "concurrency": {"times_of_appends": times_of_appends},
    "deltalog-and-delta-spark": {"delta_spark_rows": lambda: rows_against("delta_spark_")},
    "deltalog-and-deltalake": {"deltalake_rows": lambda: rows_against("deltalake_")},
    "error-index": {"error_index": error_index},
    "features": {
        "feature_table": feature_table,
        "reading_table": reading_table,
        "writing_table": writing_table,
        "type_table": type_table,
    },
    "install": {"extras_table": extras_table},
    "how-to/from-deltalake": {"deltalake_table": deltalake_table},
    "how-to/spark-settings": {"settings_tables": settings_tables},
    "reference/index": {"reference_index": reference_index},
    "reference/tables": {"method_table": method_table},
    "reference/protocol": {"property_table": property_table},
    "tuning": {
        "growing_tables": growing_tables,
        "memory_of_operations": memory_of_operations,
        "times_of_operations": times_of_operations,
    },
    "sql-functions": {"function_list": function_list, "refusal_table": refusal_table},
}
"""Page → its parts, in their order on the page, and what makes them."""
AT_BUILD: Final[dict[str, dict[str, Callable[[], str]]]] = {
    "changelog": {"unreleased_changes": unreleased_changes}
}
"""Parts that only the build makes: each change adds a line, so the page links to the lines."""
_PART: Final = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)


def filled(page: str, text: str) -> str:
    """The text of a page with its parts as they are now.

    Args:
        page: its name, relative to the documentation and without `.md`.
        text: of the page.
    """
    parts = {**GENERATED, **AT_BUILD}.get(page, {})
    return _PART.sub(lambda found: f"{found[1]}{parts[found[2]]().strip()}\n{found[3]}", text)


def part_names(text: str) -> list[str]:
    """The names of the parts of a page."""
    return [found[2] for found in _PART.finditer(text)]


def main() -> None:
    """Write the parts of all pages."""
    for name in GENERATED:
        page = DOCS / f"{name}.md"
        text = page.read_text("utf-8")
        page.write_text(filled(name, text), "utf-8")


if __name__ == "__main__":
    main()
