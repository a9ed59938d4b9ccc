"""Rules of single features about metadata; how they play together is `test_table_change`."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.actions.properties import TableProperties
from deltalog.errors import InvalidInputError
from deltalog.features.clustering import check_clustering_columns
from deltalog.features.declarations import dependents
from deltalog.features.guards import (
    check_may_remove,
    check_user_domain,
    is_append_only,
    is_system_domain,
    protected_before_version,
)
from deltalog.features.iceberg_compat import check, with_required_properties
from deltalog.features.type_widening import (
    has_type_changes,
    record_type_changes,
    without_type_changes,
)
from deltalog.schema import ArrayType, Field, MapType, StructType

TEXTS = StructType([Field(f"c{number}", "string") for number in range(40)])


def properties(**texts: str) -> TableProperties:
    return TableProperties({f"delta.{key}": text for key, text in texts.items()})


@pytest.mark.protocol("APP-01", "APP-03", "APP-04", "TF-05")
@pytest.mark.parametrize(
    ("features", "text", "expected"),
    [
        (["appendOnly"], "true", True),
        (["appendOnly"], "TRUE", True),
        (["appendOnly"], "false", False),
        ([], "true", False),
    ],
)
def test_append_only_needs_feature_and_property(
    features: list[str], text: str, *, expected: bool
) -> None:
    assert is_append_only(features, properties(appendOnly=text)) is expected
    assert not is_append_only(features, properties())
    if expected:
        with pytest.raises(InvalidInputError, match="cannot DELETE t: it is append-only"):
            check_may_remove(features, properties(appendOnly=text), table="t", operation="DELETE")
    else:
        check_may_remove(features, properties(appendOnly=text), table="t", operation="DELETE")


@pytest.mark.protocol("B-55")
def test_protection_counts_with_its_feature_only() -> None:
    protects = properties(requireCheckpointProtectionBeforeVersion="9")
    assert protected_before_version(["checkpointProtection"], protects) == 9
    assert protected_before_version([], protects) == 0
    assert protected_before_version(["checkpointProtection"], properties()) == 0


@pytest.mark.protocol("DOM-03")
@pytest.mark.parametrize("name", ["delta.x", "DELTA.x", "delta."])
def test_domains_of_features_are_not_for_users(name: str) -> None:
    assert is_system_domain(name)
    with pytest.raises(InvalidInputError, match="kept by table features"):
        check_user_domain(name)
    check_user_domain("deltalog.mine")


@pytest.mark.protocol("B-52")
def test_clustering_columns_have_statistics() -> None:
    assert check_clustering_columns(["C31"], TEXTS, (), properties()) == (("c31",),)
    with pytest.raises(InvalidInputError, match="no statistics"):
        check_clustering_columns(["c32"], TEXTS, (), properties())
    more = properties(dataSkippingNumIndexedCols="-1")
    assert check_clustering_columns(["c39"], TEXTS, (), more) == (("c39",),)
    with pytest.raises(InvalidInputError, match="4 at most"):
        check_clustering_columns(["c1", "c2", "c3", "c4", "c5"], TEXTS, (), properties())


@pytest.mark.protocol("B-50")
@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        (ArrayType("integer"), ArrayType("long"), "element"),
        (MapType("byte", "string"), MapType("short", "string"), "key"),
        (
            MapType("byte", ArrayType("float")),
            MapType("byte", ArrayType("double")),
            "value.element",
        ),
    ],
)
def test_changes_inside_lists_and_maps_are_remembered(before: Any, after: Any, path: str) -> None:
    field = record_type_changes("c", Field("c", before), Field("c", after), is_enabled=True)
    (entry,) = field.metadata["delta.typeChanges"]
    assert entry["fieldPath"] == path
    assert has_type_changes(StructType([field]))
    assert without_type_changes(field) == Field("c", after)
    again = record_type_changes("c", Field("c", before), field, is_enabled=True)
    assert again == field


@pytest.mark.protocol("B-50", "B-53")
@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        ("integer", "long", True),
        ("float", "double", True),
        ("decimal(5,2)", "decimal(9,2)", True),
        ("decimal(5,2)", "decimal(9,3)", False),
        ("integer", "double", False),
        ("date", "timestamp_ntz", False),
    ],
)
def test_widenings_that_iceberg_knows(before: str, after: str, *, allowed: bool) -> None:
    field = record_type_changes("c", Field("c", before), Field("c", after), is_enabled=True)
    on = TableProperties(
        with_required_properties(
            {"delta.enableIcebergCompatV2": "true"}, properties(enableIcebergCompatV2="true")
        )
    )
    if allowed:
        check((), on, StructType([field]))
    else:
        with pytest.raises(InvalidInputError, match="whose type was changed"):
            check((), on, StructType([field]))


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
