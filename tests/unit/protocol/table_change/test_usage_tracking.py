"""Whether a column was ever dropped or renamed, kept beside the schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltalog import DeltaTable, Field, Schema
from deltalog.errors import InvalidInputError
from deltalog.protocol.column_mapping import PHYSICAL_NAME_KEY
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.table_change.change import changed_table
from tests.support.table_changes import MAPPED, table

KEY = "delta.columnMapping.hasDroppedOrRenamed"
FEATURE = "columnMappingUsageTracking"
TRACKED = {**MAPPED, f"delta.feature.{FEATURE}": "supported"}


def says(made: TableConfiguration) -> str | None:
    return made.metadata.configuration.get(KEY)


def physical_names(made: TableConfiguration) -> list[str]:
    return [field.metadata[PHYSICAL_NAME_KEY] for field in made.schema]


def test_a_new_table_has_lost_no_name() -> None:
    made = table(configuration=TRACKED)
    assert says(made) == "false"
    assert made.supports(FEATURE)
    assert physical_names(made) == list(made.schema.names)
    assert says(table(configuration=MAPPED)) is None


def test_new_columns_are_stored_by_their_names() -> None:
    before = table(configuration=TRACKED)
    after = changed_table(
        before, schema=Schema([*before.schema, Field("x", "long"), Field("a b", "long")])
    )
    assert physical_names(after)[-2] == "x"
    assert physical_names(after)[-1].startswith("col-")  # what Parquet takes for punctuation
    assert says(after) == "false"


@pytest.mark.parametrize("change", ["drop", "rename", "drop inside"])
def test_a_lost_name_is_remembered(change: str) -> None:
    inner = Schema([Field("p", "long"), Field("q", "long")])
    before = table(
        Schema([Field("a", "long"), Field("b", "long"), Field("s", inner)]), configuration=TRACKED
    )
    fields = list(before.schema)
    if change == "drop":
        fields.pop(1)
    elif change == "rename":
        fields[1] = Field("c", "long", metadata=fields[1].metadata)
    else:
        kept = fields[2].type.fields[:1]  # type: ignore[union-attr]  # a struct
        fields[2] = Field("s", Schema(kept), metadata=fields[2].metadata)
    after = changed_table(before, schema=Schema(fields))
    assert says(after) == "true"
    later = changed_table(after, schema=Schema([*after.schema, Field("b2", "long")]))
    assert says(later) == "true"
    assert physical_names(later)[-1].startswith("col-")


def test_a_table_that_is_there_may_have_lost_names() -> None:
    after = changed_table(table(configuration=MAPPED), features=[FEATURE])
    assert says(after) == "true"
    unmapped = changed_table(table(), configuration=TRACKED)
    assert says(unmapped) == "true"


def test_other_changes_lose_no_name() -> None:
    before = table(configuration=TRACKED)
    fields = [
        Field(f.name, f.type, f.nullable, {**f.metadata, "comment": "x"}) for f in before.schema
    ]
    assert says(changed_table(before, schema=Schema(reversed(fields)))) == "false"  # type: ignore[arg-type]  # any order
    assert (
        says(changed_table(before, configuration={**before.metadata.configuration, "mine": "1"}))
        == "false"
    )


def test_users_do_not_set_it() -> None:
    with pytest.raises(InvalidInputError, match="hasDroppedOrRenamed"):
        table(configuration={**TRACKED, KEY: "false"})


def test_restoring_does_not_forget(tmp_path: Path) -> None:
    shown = DeltaTable.create(
        tmp_path, schema=Schema([Field("a", "long"), Field("b", "long")]), configuration=TRACKED
    )
    shown.alter.rename_column("b", "c")
    assert shown.metadata().configuration[KEY] == "true"
    shown.restore(0)
    assert shown.metadata().configuration[KEY] == "true"
    assert shown.schema().names == ("a", "b")
