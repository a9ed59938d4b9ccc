"""Definitions of columns: `name TYPE [NOT NULL] [DEFAULT …] [GENERATED …] [COMMENT …]`.

Protocol: Generated Columns, Identity Columns, Default Columns
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog.features.schema_traits import CHAR_VARCHAR_KEY
from deltalog.schema import Field
from deltalog.schema.collations import with_collations
from deltalog.schema.types import (
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_ALLOW_EXPLICIT_INSERT_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
)

if TYPE_CHECKING:
    from deltalog.statements.reader import StatementReader
    from deltalog.statements.slices import WrittenType

CLAUSES: Final = ("NOT NULL", "NULL", "DEFAULT", "GENERATED", "COMMENT", "FIRST", "AFTER")


def read_column(reader: StatementReader) -> Field:
    """Read the definition of a column."""
    return read_definition(reader, reader.name("a column"))


def read_definition(
    reader: StatementReader, name: str, written: WrittenType | None = None
) -> Field:
    """Read the type of a column, if it was not read before, and what follows it."""
    found = reader.type(*CLAUSES) if written is None else written
    metadata: dict[str, Any] = {CHAR_VARCHAR_KEY: found.limited} if found.limited else {}
    is_nullable = True
    while clause := reader.take_one("NOT NULL", "NULL", "DEFAULT", "GENERATED", "COMMENT"):
        match clause:
            case "NOT NULL":
                is_nullable = False
            case "DEFAULT":
                metadata[CURRENT_DEFAULT_KEY] = reader.source(*CLAUSES)
            case "GENERATED":
                metadata |= _read_generator(reader)
            case "COMMENT":
                metadata["comment"] = reader.text("a comment")
    field = Field(name, found.type, nullable=is_nullable, metadata=metadata)
    return with_collations(field, found.collations)


def _read_generator(reader: StatementReader) -> dict[str, Any]:
    is_always = reader.expect_one("ALWAYS AS", "BY DEFAULT AS") == "ALWAYS AS"
    if not reader.take("IDENTITY"):
        if not is_always:
            reader.fail("expected IDENTITY")
        return {GENERATION_EXPRESSION_KEY: reader.bracketed_source()}
    numbers = {"START WITH": 1, "INCREMENT BY": 1}
    if reader.take("("):
        while kind := reader.take_one(*numbers):
            numbers[kind] = reader.integer()
            reader.take(",")
        reader.expect(")")
    return {
        IDENTITY_START_KEY: numbers["START WITH"],
        IDENTITY_STEP_KEY: numbers["INCREMENT BY"],
        IDENTITY_ALLOW_EXPLICIT_INSERT_KEY: not is_always,
    }
