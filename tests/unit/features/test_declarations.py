from __future__ import annotations

import pytest

from deltalog.features.declarations import dependents
from deltalog.schema import Field, StructType


@pytest.mark.protocol("CON-07")
def test_rules_name_columns_in_any_case_and_depth() -> None:
    schema = StructType(
        [
            Field("S", StructType([Field("x", "long"), Field("y", "long")])),
            Field("g", "long", metadata={"delta.generationExpression": "s.X + 1"}),
            Field("h", "long", metadata={"delta.generationExpression": "no sql at all ("}),
        ]
    )
    (rule,) = dependents({}, schema)
    assert rule.owner == "g"
    assert rule.needs(("S",))
    assert rule.needs(("S", "x"))
    assert not rule.needs(("S", "y"))
    assert not rule.needs(("g",))
