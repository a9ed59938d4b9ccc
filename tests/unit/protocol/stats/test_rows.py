"""Statistics that are read value by value."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.stats_texts import LONG, bound, minima, read


@pytest.mark.protocol("D-63", "STAT-02")
@pytest.mark.parametrize(
    "odd",
    [
        None,
        "",
        "  ",
        "\n",
        "{bad",
        "[1]",
        "null",
        "{}{}",
        '{"minValues":{"x":1}',
        '{"minValues":[1]}',
        '{"minValues":{"x":{"y":1}}}',
        '{"minValues":{"x":"1"}}',
        '{"minValues":{"x":true}}',
        '{"minValues":{"x":1.5}}',
        '{"minValues":{"x":1e99999999}}',
        '{"minValues":{"x":18446744073709551615}}',
        '{"a":' * 3000,
    ],
)
@pytest.mark.parametrize("rows", [3, 40])
def test_an_odd_row_has_no_statistics_and_shifts_no_other(odd: str | None, rows: int) -> None:
    texts: list[str | None] = [f'{{"minValues":{{"x":{row}}}}}' for row in range(rows)]
    texts[1] = odd
    found = [bound(row) for row in read(texts, *LONG)]
    assert found == [0, None, *range(2, rows)]


def test_two_documents_in_one_row_do_not_make_up_for_an_empty_one() -> None:
    texts: list[str | None] = ['{"minValues":{"x":1}}{"minValues":{"x":2}}', "", '{"minValues":{}}']
    assert [bound(row) for row in read(texts, *LONG)] == [None, None, None]


def test_a_key_that_stands_twice_breaks_no_other_row() -> None:
    texts: list[str | None] = ['{"minValues":{"x":1,"x":2}}', '{"minValues":{"x":3}}']
    first, second = (bound(row) for row in read(texts, *LONG))
    assert first in (2, None)
    assert second == 3


def test_whole_numbers_are_those_of_64_bits() -> None:
    values = ["-5", "-9223372036854775808", "9223372036854775807", "2.0", "9223372036854775808",
              "-9223372036854775809"]  # fmt: skip
    expected = [-5, -(2**63), 2**63 - 1, 2, None, None]
    assert minima(values, pa.int64()) == expected


def test_lone_surrogates_are_no_text() -> None:
    assert minima([r'"\ud800"', r'"\ud83d\ude00"'], pa.string()) == [None, "😀"]
