"""Properties in a statement: `('key' = 'value', …)`.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltalog.statements.reader import StatementReader


def read_properties(reader: StatementReader) -> dict[str, str]:
    """Read `('key' = 'value', …)`; a key may be a name with dots."""

    def read() -> tuple[str, str]:
        key = read_key(reader)
        if not reader.take("="):
            reader.take("==")
        value = reader.constant()
        return key, str(value).lower() if isinstance(value, bool) else str(value)

    return dict(reader.listed(read))


def read_key(reader: StatementReader) -> str:
    """Read the key of a property: a text, or a name with dots."""
    return reader.text() if reader.word.kind == "text" else ".".join(reader.path("a key"))
