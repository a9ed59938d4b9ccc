"""One primitive type, as a row of the table: what follows from its other columns."""

from __future__ import annotations

import pyarrow as pa

from deltalog.schema.primitives.row import Bounds, Family, Primitive, ValueCodec


def row(name: str = "tiny", bits: int = 0, **columns: str) -> Primitive:
    words = tuple(columns.pop("words", "").split())
    return Primitive(
        name=name,
        arrow=pa.int8,
        codec=ValueCodec(),
        takes=(pa.int8(), pa.uint8(), pa.int8()),
        bits=bits,
        sql_words=words,
        spark_name=columns.pop("spark_name", ""),
    )


def test_a_type_is_called_as_the_log_calls_it_unless_it_says_otherwise() -> None:
    plain = row()
    assert (plain.sql_words, plain.spark_name) == (("TINY",), "tiny")
    other = row(words="SMALL TEENY", spark_name="small")
    assert (other.sql_words, other.spark_name) == (("SMALL", "TEENY"), "small")


def test_what_it_takes_is_known_by_arrows_numbers() -> None:
    assert row().kinds == {pa.int8().id, pa.uint8().id}


def test_digits_of_so_many_bits() -> None:
    assert [row(bits=bits).digits for bits in (8, 16, 32, 64)] == [3, 5, 10, 19]
    assert [row(bits=bits).decimal_digits for bits in (8, 16, 32, 64)] == [10, 10, 10, 20]


def test_a_type_without_rules_has_none() -> None:
    found = row()
    assert (found.family, found.has_zone, found.feature) == (Family.OTHER, None, "")
    assert found.widens_to == found.stored_in == frozenset()
    assert (found.literal, found.canonical, found.parameters_of) == (None, None, None)
    assert Bounds().stored(7, pa.int64()) == 7
