from __future__ import annotations

import pytest

from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.features import FEATURES, Kind, Support, canonical_name, find_feature
from deltalog.protocol.features.protocol_change import needed_features
from deltalog.protocol.features.registry import requested_name
from deltalog.schema import ArrayType, Field, PrimitiveType, StructType, VariantType


@pytest.mark.protocol("TF-08", "B-10", "B-11", "B-12", "B-63")
@pytest.mark.parametrize(
    ("name", "current"),
    [
        ("appendOnly", "appendOnly"),
        ("columnInvariants", "invariants"),
        ("timestampNTZ", "timestampNtz"),
        ("timestampWithoutTimezone", "timestampNtz"),
        ("delta.rowIds", "rowIds"),
        ("typeWidening-preview", "typeWidening"),
        ("variantType-preview", "variantType"),
        ("variantShredding-preview", "variantShredding"),
        ("catalogOwned-preview", "catalogManaged"),
        ("inCommitTimestamp-preview", "inCommitTimestamp"),
        ("nobody", "nobody"),
    ],
)
def test_names_and_aliases(name: str, current: str) -> None:
    assert canonical_name(name) == current


@pytest.mark.protocol("B-11")
def test_case_matters() -> None:
    assert find_feature("deletionvectors") is None


@pytest.mark.protocol("B-11", "D-38")
@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("deletionvectors", "deletionVectors"),
        ("DELETIONVECTORS", "deletionVectors"),
        ("deletionVectors", "deletionVectors"),
        ("timestampNTZ", "timestampNtz"),
        ("TimestampWithoutTimezone", "timestampNtz"),
        ("columninvariants", "invariants"),
        ("TYPEWIDENING-PREVIEW", "typeWidening-preview"),
        ("typewidening", "typeWidening"),
        ("nobody", None),
    ],
)
def test_who_asks_for_a_feature_may_write_it_in_any_case(asked: str, name: str | None) -> None:
    assert requested_name(asked) == name


@pytest.mark.protocol("TF-08", "TF-03")
def test_which_features_readers_must_know() -> None:
    names = {name for name, feature in FEATURES.items() if feature.kind is Kind.READER_WRITER}
    assert names == {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "v2Checkpoint",
        "typeWidening",
        "variantType",
        "variantShredding",
        "vacuumProtocolCheck",
        "catalogManaged",
        "geospatial",
        "timestampNanos",
        "intervalTypes",
        "adaptiveMetadata",
        "redirectReaderWriter-preview",
    }


def test_no_name_belongs_to_two_features() -> None:
    names = [name for feature in FEATURES.values() for name in (feature.name, *feature.aliases)]
    assert len(names) == len(set(names))


def test_what_is_required_exists_and_can_be_listed_there() -> None:
    for feature in FEATURES.values():
        for required in feature.requires:
            assert required in FEATURES
            assert feature.name not in FEATURES[required].requires


@pytest.mark.protocol("B-60", "B-61")
def test_a_writer_feature_never_stops_reading() -> None:
    for feature in FEATURES.values():
        if feature.kind is Kind.WRITER:
            assert feature.read is Support.FULL


NESTED = ArrayType(StructType([Field("x", PrimitiveType("timestamp_ntz"))]))


@pytest.mark.protocol("NTZ-01", "UPG-03")
@pytest.mark.parametrize(
    ("configuration", "fields", "needed"),
    [
        ({}, [Field("a", PrimitiveType("long"))], ()),
        ({"delta.appendOnly": "true"}, [], ("appendOnly",)),
        ({"delta.constraints.c": "a > 1"}, [], ("checkConstraints",)),
        ({"delta.enableChangeDataFeed": "true"}, [], ("changeDataFeed",)),
        ({"delta.columnMapping.mode": "name"}, [], ("columnMapping",)),
        ({"delta.columnMapping.mode": "none"}, [], ()),
        ({"delta.checkpointPolicy": "v2"}, [], ("v2Checkpoint",)),
        ({"delta.enableRowTracking": "true"}, [], ("rowTracking",)),
        ({}, [Field("a", PrimitiveType("timestamp_ntz"))], ("timestampNtz",)),
        ({}, [Field("a", NESTED)], ("timestampNtz",)),
        ({}, [Field("a", VariantType())], ("variantType",)),
        (
            {},
            [Field("a", PrimitiveType("integer"), metadata={"delta.invariants": "{}"})],
            ("invariants",),
        ),
        (
            {},
            [
                Field(
                    "s",
                    StructType(
                        [
                            Field(
                                "a",
                                PrimitiveType("date"),
                                metadata={"delta.generationExpression": "x"},
                            )
                        ]
                    ),
                )
            ],
            ("generatedColumns",),
        ),
        (
            {},
            [Field("a", PrimitiveType("long"), metadata={"delta.identity.step": 1})],
            ("identityColumns",),
        ),
        (
            {},
            [Field("a", PrimitiveType("long"), metadata={"CURRENT_DEFAULT": "1"})],
            ("allowColumnDefaults",),
        ),
    ],
)
def test_what_puts_a_feature_to_use(
    configuration: dict[str, str], fields: list[Field], needed: tuple[str, ...]
) -> None:
    assert needed_features(TableProperties(configuration), StructType(fields)) == needed


def test_plain_timestamps_need_nothing() -> None:
    schema = StructType([Field("a", PrimitiveType("timestamp"))])
    assert needed_features(TableProperties({}), schema) == ()
