"""The list of columns with statistics follows the columns' names."""

from __future__ import annotations

from deltalog.operations import alter
from deltalog.schema import Field
from tests.support.altering import apply, mapped


def test_the_columns_with_statistics_follow() -> None:
    table = mapped()
    properties = {"delta.dataSkippingStatsColumns": "id,v,s.x"}
    apply(table, alter.SetTableProperties(properties))
    key = "delta.dataSkippingStatsColumns"
    after = apply(table, alter.RenameColumn("s", "a b"))
    assert after.metadata.configuration[key] == "id,v,`a b`.x"
    after = apply(table, alter.DropColumns(["v"]))
    assert after.metadata.configuration[key] == "id,`a b`.x"
    after = apply(table, alter.DropColumns(["id"]))
    after = apply(table, alter.RenameColumn(("a b",), "s"))
    assert after.metadata.configuration[key] == "s.x"
    apply(table, alter.AddColumns([Field("z", "long")]))
    after = apply(table, alter.DropColumns(["s"]))
    assert key not in after.metadata.configuration
    assert after.metadata.configuration["delta.columnMapping.mode"] == "name"
