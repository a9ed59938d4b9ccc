from __future__ import annotations

import pytest

from deltalog.errors import (
    CatalogManagedError,
    InvalidMetadataError,
    InvalidProtocolError,
    MalformedLogError,
    UnsupportedFeatureError,
    UnsupportedProtocolError,
    UnsupportedTypeError,
)
from deltalog.protocol.actions import Metadata, Protocol
from deltalog.protocol.actions.model import Format
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features import (
    FEATURES,
    Kind,
    Support,
    check_deletion_vectors,
    check_readable,
)
from deltalog.protocol.features.support import (
    MAPPED_BY_VERSION,
    asked_features,
    check_writable,
    engine_answers,
    engines_for,
    engines_misled,
    engines_refusing,
    misplaced_reader_features,
    shown_engines,
    writer_blockers,
)

SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'


def table(
    reader: int = 1,
    writer: int = 2,
    readers: tuple[str, ...] | None = None,
    writers: tuple[str, ...] | None = None,
    *,
    schema: str = SCHEMA,
    provider: str = "parquet",
) -> TableConfiguration:
    return TableConfiguration(
        Protocol(
            min_reader_version=reader,
            min_writer_version=writer,
            reader_features=readers,
            writer_features=writers,
        ),
        Metadata(id="1", schema_string=schema, format=Format(provider=provider)),
    )


@pytest.mark.protocol("UPG-01", "VER-02", "B-39", "PROTO-05")
@pytest.mark.parametrize(
    ("reader", "writer"), [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (2, 5), (2, 6)]
)
def test_every_older_protocol_is_readable(reader: int, writer: int) -> None:
    check_readable(table(reader, writer), table="t")


@pytest.mark.protocol("B-61", "B-63", "B-50", "B-51", "B-54")
@pytest.mark.parametrize(
    "name",
    [
        name
        for feature in FEATURES.values()
        if feature.kind is Kind.READER_WRITER and feature.read is Support.FULL
        for name in (feature.name, *feature.aliases)
        if feature.name != "catalogManaged"
    ],
)
def test_reader_features_that_are_honoured(name: str) -> None:
    check_readable(table(3, 7, (name,), (name,)), table="t")


@pytest.mark.protocol("PROTO-02", "UPG-02")
@pytest.mark.parametrize("reader", [4, 99])
def test_a_reader_version_of_the_future(reader: int) -> None:
    with pytest.raises(
        UnsupportedProtocolError, match=f"version 3: it needs reader version {reader}"
    ):
        check_readable(table(reader, 7, (), ()), table="t", version=3)


@pytest.mark.protocol("PROTO-02", "UPG-02", "B-62", "DV-02")
@pytest.mark.parametrize(
    "name",
    ["unheardOf", "redirectReaderWriter-preview", "adaptiveMetadata", "adaptiveMetadata-preview"],
)
def test_other_reader_features_are_refused_by_name(name: str) -> None:
    features = ("deletionVectors", name)
    with pytest.raises(UnsupportedFeatureError, match=name) as raised:
        check_readable(table(3, 7, features, features), table="s3://b/t", version=3)
    assert raised.value.features == (name,)
    assert raised.value.version == 3
    assert "s3://b/t at version 3" in str(raised.value)


@pytest.mark.protocol("PROTO-03", "B-60", "B-62", "B-52", "B-53", "B-55", "B-57", "B-58", "B-59")
@pytest.mark.parametrize(
    "name",
    ["unheardOf", "collations-preview", "liquid", "rowIds", "delta.rowIds"]
    + [name for name, feature in FEATURES.items() if feature.kind is Kind.WRITER],
)
def test_writer_features_do_not_stop_reading(name: str) -> None:
    check_readable(table(1, 7, None, (name,)), table="t")


@pytest.mark.protocol("PROTO-03")
def test_what_is_unknown_stops_writing() -> None:
    with pytest.raises(UnsupportedFeatureError, match="weird"):
        check_writable(table(1, 7, None, ("weird",)), table="t")
    assert "weird" in writer_blockers(table(1, 7, None, ("weird",)).protocol)
    with pytest.raises(UnsupportedProtocolError, match="writer version 8"):
        check_writable(table(1, 8), table="t")
    check_readable(table(1, 8), table="t")


@pytest.mark.protocol("TF-09", "PROTO-03")
def test_a_writer_must_be_able_to_read() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"cannot delete from t.*adaptiveMetadata"):
        check_writable(
            table(3, 7, ("adaptiveMetadata-preview",), ("adaptiveMetadata-preview",)),
            table="t",
            operation="delete from",
        )


@pytest.mark.protocol("B-56")
@pytest.mark.parametrize("name", ["catalogManaged", "catalogOwned", "catalogOwned-preview"])
def test_a_catalog_must_have_spoken(name: str) -> None:
    managed = table(3, 7, (name,), (name, "inCommitTimestamp"))
    with pytest.raises(CatalogManagedError, match="pass its log tail"):
        check_readable(managed, table="t")
    check_readable(managed, table="t", has_log_tail=True)
    with pytest.raises(CatalogManagedError):
        check_writable(managed, table="t")


@pytest.mark.protocol("B-56", "B-62")
def test_a_catalog_is_not_enough_for_other_features() -> None:
    features = ("catalogManaged", "adaptiveMetadata-preview")
    with pytest.raises(UnsupportedFeatureError) as raised:
        check_readable(table(3, 7, features, features), table="t")
    assert not isinstance(raised.value, CatalogManagedError)
    assert raised.value.features == features


@pytest.mark.protocol("PROTO-01", "TF-01")
@pytest.mark.parametrize(
    "wrong",
    [
        table(1, 2, ("deletionVectors",), None),
        table(1, 2, None, ("appendOnly",)),
        table(2, 7, ("columnMapping",), ("columnMapping",)),
        table(3, 7),
        table(3, 7, None, ()),
        table(3, 7, (), None),
        table(1, 7),
        table(3, 5, ()),
        table(3, 6, ("columnMapping",)),
        table(0, 2),
    ],
)
def test_protocols_that_contradict_themselves(wrong: TableConfiguration) -> None:
    with pytest.raises(InvalidProtocolError, match="invalid protocol"):
        check_readable(wrong, table="t")


@pytest.mark.protocol("TF-03")
def test_features_in_one_list_only_are_found() -> None:
    assert misplaced_reader_features(table(3, 7, ("a",), ("columnMapping",)).protocol) == (
        "a",
        "columnMapping",
    )
    assert misplaced_reader_features(table(2, 7, None, ("columnMapping",)).protocol) == ()
    assert misplaced_reader_features(table().protocol) == ()


@pytest.mark.protocol("META-04")
@pytest.mark.parametrize("provider", ["csv", "orc", "json"])
def test_other_file_formats_are_refused(provider: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"format {provider}"):
        check_readable(table(provider=provider), table="t")


@pytest.mark.protocol("B-62")
def test_unknown_types_are_refused_by_column() -> None:
    schema = (
        '{"type":"struct","fields":[{"name":"s","type":{"type":"array","elementType":'
        '"interval month to day","containsNull":true},"nullable":true,"metadata":{}}]}'
    )
    with pytest.raises(UnsupportedTypeError, match=r"s \(interval month to day\)"):
        check_readable(table(schema=schema), table="t")


@pytest.mark.protocol("META-05")
@pytest.mark.parametrize("schema", ["", "{", '"long"', "[]"])
def test_a_schema_that_is_none(schema: str) -> None:
    with pytest.raises(InvalidMetadataError):
        check_readable(table(schema=schema), table="t")


def test_opening_shows_what_cannot_be_read() -> None:
    future = table(99, 99, ("x",), ("x",))
    assert future.schema.names == ("a",)
    assert future.supports("x")


def test_the_message_names_engines_that_can() -> None:
    assert engines_for(("typeWidening",)) == ("Delta Spark 4.4", "DuckDB 1.5")
    assert engines_for(("typeWidening", "unheardOf")) == ()
    unheard = ("unheardOf",)
    with pytest.raises(UnsupportedFeatureError, match="use an engine that supports it"):
        check_readable(table(3, 7, unheard, unheard), table="t")
    compat = ("icebergWriterCompatV3",)
    with pytest.raises(UnsupportedFeatureError, match="use an engine that supports it"):
        check_writable(table(1, 7, None, compat), table="t")


def test_who_is_misled() -> None:
    by_name, by_version = ("columnMapping",), (MAPPED_BY_VERSION,)
    assert engines_misled(by_name) == ()
    assert shown_engines(engines_misled(by_version)) == ("deltalake 1.6 (to_pandas, to_pyarrow_*)")
    assert engines_misled((*by_version, "typeWidening")) == ()  # that is refused
    assert engines_misled(by_name, writing=True) == ("DuckDB 1.5",)
    assert {*engines_for(by_name), *engines_refusing(by_name)} == set(engine_answers())


def test_under_which_name_column_mapping_is_asked_for() -> None:
    listed = ("columnMapping",)
    assert asked_features(table(3, 7, listed, listed).protocol) == listed
    assert asked_features(table(2, 7, None, listed).protocol) == (MAPPED_BY_VERSION,)
    assert MAPPED_BY_VERSION in asked_features(table(2, 5).protocol)
    assert MAPPED_BY_VERSION not in asked_features(table(2, 5).protocol, is_mapped=False)
    assert MAPPED_BY_VERSION not in asked_features(table(1, 5).protocol)


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (("QueryBuilder", "scan"), "deltalake 1.6 (QueryBuilder, scan)"),
        (("QueryBuilder", "scan", "to_pandas, to_pyarrow_*"), "deltalake 1.6"),
    ],
)
def test_engines_in_words(chosen: tuple[str, ...], text: str) -> None:
    ways = [f"deltalake 1.6: {way}" for way in chosen]
    assert shown_engines(ways) == text
    assert (
        shown_engines([*ways, "DuckDB 1.5"])
        == f"{text} and DuckDB's delta extension (of DuckDB 1.5.5)"
    )
    assert shown_engines([]) == ""


def widened(from_type: str, to_type: str) -> str:
    change = f'{{"fromType":"{from_type}","toType":"{to_type}"}}'
    metadata = f'{{"delta.typeChanges":[{change}]}}'
    field = f'{{"name":"a","type":"{to_type}","nullable":true,"metadata":{metadata}}}'
    return f'{{"type":"struct","fields":[{field}]}}'


@pytest.mark.protocol("B-50", "B-63")
@pytest.mark.parametrize("name", ["typeWidening", "typeWidening-preview"])
def test_unknown_type_changes_are_refused(name: str) -> None:
    check_readable(table(3, 7, (name,), (name,), schema=widened("short", "long")), table="t")
    narrowed = widened("string", "long")
    with pytest.raises(UnsupportedTypeError, match="from string to long"):
        check_readable(table(3, 7, (name,), (name,), schema=narrowed), table="t")
    # Without the feature the entry is a leftover and every file has today's type.
    check_readable(table(schema=narrowed), table="t")


@pytest.mark.protocol("DV-01")
def test_a_deletion_vector_needs_its_feature() -> None:
    check_deletion_vectors(table(3, 7, ("deletionVectors",), ("deletionVectors",)), table="t")
    for older in (table(1, 2), table(2, 6), table(3, 7, (), ())):
        with pytest.raises(MalformedLogError, match="table feature deletionVectors"):
            check_deletion_vectors(older, table="t")
