from __future__ import annotations

import pytest

from deltalog.errors import InvalidMetadataError
from deltalog.protocol.features.declarations import default_expressions, generation_expressions
from deltalog.schema import Field, StructType

KEY = "delta.generationExpression"


@pytest.mark.protocol("B-58")
def test_defaults_of_columns_and_fields() -> None:
    inner = StructType([Field("x", "long", metadata={"CURRENT_DEFAULT": "2"})])
    schema = StructType([Field("a", "long", metadata={"CURRENT_DEFAULT": "1"}), Field("s", inner)])
    assert default_expressions(schema) == {("a",): "1", ("s", "x"): "2"}


def test_a_default_is_a_text() -> None:
    with pytest.raises(InvalidMetadataError, match=r"column 'a'.*found 3"):
        default_expressions(StructType([Field("a", "long", metadata={"CURRENT_DEFAULT": 3})]))


@pytest.mark.protocol("GEN-01")
def test_expressions_come_in_the_order_of_the_schema() -> None:
    schema = StructType(
        [Field("b", "long", metadata={KEY: "a + 1"}), Field("a", "long"),
         Field("c", "long", metadata={KEY: "a"})]
    )  # fmt: skip
    assert list(generation_expressions(schema).items()) == [("b", "a + 1"), ("c", "a")]


def test_an_expression_is_a_text() -> None:
    with pytest.raises(InvalidMetadataError, match=r"column 'a'.*found 3"):
        generation_expressions(StructType([Field("a", "long", metadata={KEY: 3})]))
