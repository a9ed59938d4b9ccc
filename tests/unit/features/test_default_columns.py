from __future__ import annotations

import pytest

from deltalog.errors import InvalidMetadataError
from deltalog.features.computed_columns import default_expressions
from deltalog.schema import Field, StructType


@pytest.mark.protocol("B-58")
def test_defaults_of_columns_and_fields() -> None:
    inner = StructType([Field("x", "long", metadata={"CURRENT_DEFAULT": "2"})])
    schema = StructType([Field("a", "long", metadata={"CURRENT_DEFAULT": "1"}), Field("s", inner)])
    assert default_expressions(schema) == {("a",): "1", ("s", "x"): "2"}


def test_a_default_is_a_text() -> None:
    with pytest.raises(InvalidMetadataError, match=r"column 'a'.*found 3"):
        default_expressions(StructType([Field("a", "long", metadata={"CURRENT_DEFAULT": 3})]))
