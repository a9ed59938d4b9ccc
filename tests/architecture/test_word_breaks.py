"""Long names of the documentation break at dots, underscores and capital letters."""

from __future__ import annotations

import pytest

pytest.importorskip("sphinx", reason="the group docs is not installed")

from docs.reference_index import documented_names, reference_pages, with_contents
from docs.word_breaks import with_breaks


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("TableNotFoundError", ["Table", "Not", "Found", "Error"]),
        ("to_pyarrow_dataset()", ["to_", "pyarrow_", "dataset()"]),
        ("delta.enableChangeDataFeed", ["delta.", "enable", "Change", "Data", "Feed"]),
        ("_delta_log/_last_checkpoint", ["_delta_", "log/", "_last_", "checkpoint"]),
        ("deltalog.DeltaTable", ["deltalog.", "Delta", "Table"]),
        ("&lt;directory&gt;", ["&lt;directory&gt;"]),
        ("DeltaTable", ["DeltaTable"]),
        ("uninterrupted", ["uninterrupted"]),
    ],
)
def test_names_break_between_their_words(name: str, pieces: list[str]) -> None:
    assert with_breaks(name).split("<wbr>") == pieces


def test_a_page_of_the_reference_with_many_names_begins_with_links_to_them() -> None:
    listed = 0
    for page in reference_pages():
        text = page.read_text("utf-8")
        found = with_contents(page, text)
        if found == text:
            continue
        listed += 1
        line = next(line for line in found.splitlines() if line.startswith("On this page: "))
        assert line.count("](#") == len(documented_names(page))
        assert found.replace(f"{line}\n\n", "") == text
    assert listed > len(reference_pages()) / 2
