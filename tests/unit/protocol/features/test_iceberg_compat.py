from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.features.iceberg_compat import (
    check,
    check_formats,
    check_partitioning,
    format_version,
    with_nested_ids,
    with_required_properties,
)
from deltalog.protocol.features.type_widening import (
    record_type_changes,
)
from deltalog.schema import ArrayType, Field, MapType, StructType, VariantType


def properties(**texts: str) -> TableProperties:
    return TableProperties({f"delta.{key}": text for key, text in texts.items()})


@pytest.mark.protocol("B-53")
def test_elements_keys_and_values_get_the_next_ids() -> None:
    lists = ArrayType(MapType("string", "long"))
    schema = StructType([Field("a", lists, metadata={"delta.columnMapping.id": 12})])
    once, highest = with_nested_ids(schema, 7)
    ids = once.fields[0].metadata["delta.columnMapping.nested.ids"]
    assert ids == {"a.element": 13, "a.element.key": 14, "a.element.value": 15}
    assert highest == 15
    assert with_nested_ids(once, highest) == (once, 15)
    both = StructType([*once.fields, Field("b", ArrayType("long"))])
    more, highest = with_nested_ids(both, 20)
    assert more.fields[0] == once.fields[0]
    assert more.fields[1].metadata["delta.columnMapping.nested.ids"] == {"b.element": 21}
    assert highest == 21


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
        with pytest.raises(InvalidInputError, match="does not allow the type change"):
            check((), on, StructType([field]))


def test_formats_are_refused_when_they_are_asked_for() -> None:
    hudi = TableProperties({"delta.universalFormat.enabledFormats": "hudi"})
    iceberg = TableProperties({"delta.universalFormat.enabledFormats": "iceberg"})
    both = TableProperties(
        {"delta.universalFormat.enabledFormats": "Iceberg", "delta.enableIcebergCompatV2": "true"}
    )
    with pytest.raises(InvalidInputError, match="cannot write Hudi metadata"):
        check_formats(hudi, None)
    with pytest.raises(InvalidInputError, match=r"enableIcebergCompatV2 = true"):
        check_formats(iceberg, None)
    with pytest.raises(InvalidInputError, match=r"enableIcebergCompatV2 = true"):
        check_formats(iceberg, both)
    check_formats(hudi, hudi)  # of another engine, which sees to it
    check_formats(iceberg, iceberg)
    check_formats(both, None)


V3 = TableProperties(
    with_required_properties(
        {"delta.enableIcebergCompatV3": "true"}, properties(enableIcebergCompatV3="true")
    )
)


@pytest.mark.protocol("B-53")
def test_v3_has_row_ids_and_takes_deletion_vectors_and_variants() -> None:
    assert V3.column_mapping_mode == "name"
    assert V3.enable_row_tracking
    assert (format_version(V3), format_version(properties())) == (3, None)
    assert format_version(properties(enableIcebergCompatV2="true")) == 2
    vectors = TableProperties({**V3.configuration, "delta.enableDeletionVectors": "true"})
    check(("deletionVectors",), vectors, StructType([Field("v", VariantType())]))
    with pytest.raises(InvalidInputError, match="needs row tracking"):
        check(
            (),
            TableProperties({**V3.configuration, "delta.enableRowTracking": "false"}),
            StructType(),
        )
    with pytest.raises(InvalidInputError, match="does not allow the type void"):
        check((), V3, StructType([Field("v", "void")]))


@pytest.mark.protocol("B-53")
@pytest.mark.parametrize(
    ("default", "is_literal"),
    [("1", True), ("-1", True), ("'x'", True), ("NULL", True), ("1 + 1", False),
     ("current_date()", False)],
)  # fmt: skip
def test_defaults_of_v3_are_literals(default: str, *, is_literal: bool) -> None:
    schema = StructType([Field("c", "string", metadata={"CURRENT_DEFAULT": default})])
    if is_literal:
        check((), V3, schema)
    else:
        with pytest.raises(InvalidInputError, match="expected a literal"):
            check((), V3, schema)


@pytest.mark.protocol("B-53")
@pytest.mark.parametrize("version", ["V1", "V2", "V3"])
def test_partitioned_tables_keep_their_partition_columns(version: str) -> None:
    on = properties(**{f"enableIcebergCompat{version}": "true"})
    check_partitioning(on, ["a"], ["A"])
    check_partitioning(on, [], ["a"])
    check_partitioning(properties(), ["a"], ["b"])
    for other in (["b"], [], ["a", "b"]):
        with pytest.raises(InvalidInputError, match="does not allow changes of partition columns"):
            check_partitioning(on, ["a"], other)
