"""Pictures: drawn by matplotlib, in the page's colours, whatever names a log holds."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from docs import plots

from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.table.inspect.plot import Plot
from tests.support import logs

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    return plots.make_table(tmp_path_factory.mktemp("plots") / "sales")


@pytest.mark.parametrize("name", plots.PLOTS)
def test_a_plot_is_drawn_in_the_colours_of_its_page(name: str, sales: DeltaTable) -> None:
    plot = plots.PLOTS[name](sales)
    svg = plot.to_svg()
    root = ET.fromstring(svg)  # noqa: S314 - ours
    assert root.tag == f"{SVG}svg"
    assert "currentColor" in svg
    assert "#010203" not in svg
    assert "#000000" not in svg
    assert "<script" not in svg
    assert plot.data.num_rows <= 600
    assert len(svg) < 400_000
    stored = (plots.FOLDER / f"{name}.svg").read_text("utf-8")
    assert len(stored) == pytest.approx(len(svg), rel=0.2), "`make pictures` draws them anew"
    assert _texts(ET.fromstring(stored)) == _texts(root)  # noqa: S314 - as above


def _texts(root: ET.Element) -> list[str]:
    """The words of a picture; numbers at axes may be other ones in another release."""
    found = ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]
    return [text for text in found if any(letter.isalpha() for letter in text) and "B" not in text]


def test_the_page_shows_every_plot() -> None:
    page = (plots.FOLDER.parent / "how-to" / "plotting.md").read_text("utf-8")
    for name in plots.PLOTS:
        assert f"../pictures/{name}.svg" in page


HOSTILE = "_<script>alert('x')</script>$x^2$\n\x00&amp;\N{CJK UNIFIED IDEOGRAPH-6771}"


def test_names_of_a_log_are_only_shown(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path / "t",
        Schema([Field(HOSTILE, "long"), Field("p", "string")]),
        name=HOSTILE,
        partition_by=["p"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    write_deltalake(table, [{HOSTILE: 1, "p": HOSTILE.replace("\x00", "")}], mode="append")
    for plot in (
        table.plot.clustering(),
        table.plot.partition_sizes(),
        table.plot.commits(),
        table.plot.scan(),
    ):
        page = plot._repr_html_()
        assert "<script" not in page
        ET.fromstring(plot.to_svg())  # noqa: S314 - well formed, whatever the names
    assert "$x^2$" in table.plot.partition_sizes().to_svg()


def test_tables_without_anything_have_plots(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", Schema([Field("id", "long")]))
    for name in ("commits", "file_sizes", "clustering", "log", "scan"):
        plot = getattr(table.plot, name)()
        assert isinstance(plot, Plot)
        assert plot.to_svg().startswith("<svg ")


@pytest.mark.parametrize("times", [(0,), (13_850, 13_900, 14_990), (0, 4000), (0, 59_000)])
def test_commits_within_a_minute_have_labels_of_whole_seconds(times: tuple[int, ...]) -> None:
    store = logs.DictStore()
    for version, time_ms in enumerate(times):
        head: list[logs.Json] = [logs.PROTOCOL, logs.metadata()] if version == 0 else []
        info: dict[str, Any] = {"commitInfo": {"operation": "WRITE"}}
        logs.commit(store, version, *head, info, time_ms=time_ms)
    figure = DeltaTable(store).plot.commits().figure()
    figure.canvas.draw()
    (axes,) = figure.axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels
    assert all(re.fullmatch(r"\d\d:\d\d(:\d\d)?|(1970-)?Jan(-01)?", label) for label in labels)
    assert sum(bar.get_height() for bar in axes.patches) == len(times)


def test_plots_are_saved_and_changed(tmp_path: Path, sales: DeltaTable) -> None:
    plot = sales.plot.file_sizes()
    plot.save(tmp_path / "sizes.png", dpi=50)
    assert (tmp_path / "sizes.png").read_bytes().startswith(b"\x89PNG")
    assert [axes.get_title() for axes in plot.figure().axes] == ["files", "bytes"]
    assert repr(plot).startswith("Plot('File sizes of sales, version 120', ")
    assert "partition_sizes" in repr(sales.plot)


def test_arguments_are_checked(sales: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match="at most 200"):
        sales.plot.partition_sizes(1000)
    with pytest.raises(InvalidInputError, match="limit=-1"):
        sales.plot.commits(-1)
    with pytest.raises(InvalidInputError, match="nowhere"):
        sales.plot.scan("nowhere = 1")
    assert sales.plot.clustering("id").data["column"].unique().to_pylist() == ["id"]


WITHOUT = """
import sys
sys.modules["matplotlib"] = None
from deltalog import DeltaTable
plot = DeltaTable(sys.argv[1]).plot.file_sizes()
print(plot.data.num_rows > 5)
try:
    plot.to_svg()
except ValueError as error:
    print(error)
print("matplotlib.pyplot" in sys.modules)
"""


def test_numbers_need_no_matplotlib_and_pictures_say_what_to_install(sales: DeltaTable) -> None:
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT, sales.table_uri], capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines() == [
        "True",
        "cannot use matplotlib: it is not installed; pip install 'deltalog[plot]'",
        "False",
    ]


def test_commits_of_one_second_are_one_narrow_bar(tmp_path: Path) -> None:
    write_deltalake(tmp_path, {"id": [1]})
    plot = DeltaTable(tmp_path).plot.commits()
    (axes,) = plot.figure().axes
    (bar,) = axes.patches
    first, last = axes.get_xlim()
    assert bar.get_width() == pytest.approx((last - first) / 60, rel=0.01)
    assert bar.get_x() + bar.get_width() / 2 == pytest.approx((first + last) / 2, abs=1e-6)
