"""What a catalog wants of a new table, and names."""

from __future__ import annotations

import pytest

from deltalog.catalogs import StagedTable, TableType
from deltalog.catalogs.protocol import shown_name
from deltalog.errors import InvalidInputError
from deltalog.log.context import utc_context
from tests.support.logs import DictStore

STAGED = StagedTable(
    name=("s", "t"),
    context=utc_context(DictStore()),
    location="s3://b/t",
    table_type=TableType.MANAGED,
    properties={"delta.checkpointPolicy": "v2"},
    suggested_properties={"delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"},
)


def test_what_is_required_is_set_and_what_is_suggested_may_be_changed() -> None:
    assert STAGED.configuration({"delta.enablerowtracking": None, "team": "blue"}) == {
        "delta.columnMapping.mode": "name",
        "delta.enablerowtracking": None,
        "team": "blue",
        "delta.checkpointPolicy": "v2",
    }
    assert STAGED.configuration({"delta.checkpointPolicy": "v2"})["delta.checkpointPolicy"] == "v2"


@pytest.mark.parametrize("text", ["classic", None])
def test_what_is_required_cannot_be_changed(text: str | None) -> None:
    with pytest.raises(InvalidInputError, match=r"s\.t.*requires 'v2'"):
        STAGED.configuration({"DELTA.checkpointpolicy": text})


def test_names_are_shown_as_sql_has_them() -> None:
    assert shown_name(("a", "b c", "d")) == "a.`b c`.d"
