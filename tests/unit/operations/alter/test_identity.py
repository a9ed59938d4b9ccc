"""Identity columns go on after the data."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.operations import alter
from deltalog.schema import find_field
from tests.support.altering import apply, told
from tests.support.raw_tables import DataTable


@pytest.mark.protocol("IDN-06", "IDN-07")
@pytest.mark.parametrize(
    ("start", "step", "values", "mark"),
    [
        (10, 3, [9], None),
        (1, 2, [2, 4, None], 5),
        (0, -5, [-7, 3], -10),
        (1, 10, [11], 11),
        (1, 1, [None], None),
    ],
)
def test_an_identity_column_goes_on_after_the_data(
    start: int, step: int, values: list[int | None], mark: int | None
) -> None:
    metadata = {
        "delta.identity.start": start,
        "delta.identity.step": step,
        "delta.identity.allowExplicitInsert": True,
    }
    field = {"name": "i", "type": "long", "nullable": True, "metadata": metadata}
    table = DataTable([("id", "long"), field], features=["identityColumns"])
    table.commit(table.add(pa.table({"i": pa.array(values, pa.int64())})))
    after = apply(table, alter.SyncIdentity("I"))
    found = find_field(after.configuration.schema, "i").metadata
    assert found.get("delta.identity.highWaterMark") == mark
    if mark is not None:
        assert told(table) == ("SYNC IDENTITY", {"column": "i"})
    with pytest.raises(InvalidInputError, match="not an identity column"):
        apply(table, alter.SyncIdentity("id"))
