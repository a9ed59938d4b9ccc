"""Pieces of HTML for notebooks."""

from __future__ import annotations

import re

import pytest

from deltalog._util.cards import card, folding, grid, plain

HOSTILE = "<script>alert('x')</script>\"&"
ESCAPED = "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&quot;&amp;"


@pytest.mark.parametrize(
    "page",
    [
        card(HOSTILE),
        card("", plain(HOSTILE)),
        card("", grid([[HOSTILE]])),
        card("", grid([], [HOSTILE])),
        card("", folding(HOSTILE, plain(""))),
    ],
    ids=["title", "text", "cell", "name", "summary"],
)
def test_text_is_no_markup(page: str) -> None:
    assert "<script" not in page
    assert ESCAPED in page


def test_empty_columns_are_omitted_if_wanted() -> None:
    rows: list[list[object]] = [[1, None, ""], [0, "", None]]
    names = ["a", "b", "c"]
    page = grid(rows, names, omits_empty=True)
    assert ">a</th>" in page
    assert ">0</td>" in page
    assert ">b</th>" not in page
    assert page.count("<td") == 2
    assert grid(rows, names).count("<td") == 6


def test_null_is_blank_and_nothing_has_a_colour() -> None:
    page = card("t", folding("more", grid([[None, 0]], ["a", "b"])))
    assert "None" not in page
    assert ">0</td>" in page
    assert "#" not in page


def test_short_cells_stay_in_one_line_and_long_cells_are_not_squeezed() -> None:
    page = grid(
        [["SET TBLPROPERTIES", "a sentence that is longer than the words of a name"]], ["a b", "c"]
    )
    styles = re.findall('<t[dh] style="(.*?)">(.*?)</', page)
    assert [text for style, text in styles if "white-space:nowrap" in style] == [
        "a b",
        "c",
        "SET TBLPROPERTIES",
    ]
    assert [text for style, text in styles if "min-width:16em" in style] == [
        "a sentence that is longer than the words of a name"
    ]


def test_only_the_rows_of_the_outer_table_have_stripes() -> None:
    inner = folding("more", grid([("a", 1), ("b", 2)]))
    page = grid([[inner, "x"], [grid([[inner]]), "y"]])
    assert page.count("<tr>") == 2
    assert page.count('<tr style="background:transparent">') == 5
    assert page.count("<table>") == 1
    assert page.count('<table style="margin:0">') == 3


def test_columns_of_numbers_are_aligned_at_the_right() -> None:
    page = grid(
        [("a", 1, "1,200 bytes", "007"), ("b", None, "7 bytes", "12")], ["n", "i", "s", "t"]
    )
    cells = re.findall(r'<t[hd] style="([^"]*)">([^<]*)<', page)
    aligned = [text for style, text in cells if style.endswith("tabular-nums")]
    assert aligned == ["i", "s", "1", "1,200 bytes", "", "7 bytes"]


def test_columns_of_floats_are_aligned_if_some_are_not_finite() -> None:
    shown = grid([[1.5, "nan"], [float("nan"), "of"], [float("-inf"), "x"]], ["f", "s"])
    aligned = re.findall(r'tabular-nums">([^<]*)<', shown)
    assert aligned == ["f", "1.5", "nan", "-inf"]


def test_a_wide_card_has_a_shade_at_its_edge() -> None:
    page = card("t", grid([("a", 1)]))
    assert "container-type:inline-size" in page
    assert page.count("position:sticky;right:0") == 1
