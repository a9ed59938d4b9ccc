"""The page of the benchmarks: sections of workloads, and a chart of the common operations."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from benchmarks.chart import Bar, draw
from benchmarks.report import DRAWN, GROUPS, Measured, Result, picture, render, tables
from benchmarks.workloads import SIZES, WORKLOADS

_SVG = "{http://www.w3.org/2000/svg}"
_LETTER = 7.0  # the most that a digit of the chart is wide


def _result(name: str, ratio: float) -> Result:
    def measured(subject: str, seconds: float) -> Measured:
        answer = {"bytes per row": 8.0}
        return Measured(subject=subject, turns=6, seconds=seconds, memory_bytes=1, answer=answer)

    workload = next(one for one in WORKLOADS if one.name == name)
    return Result(workload=workload, ours=measured("ours", 1), other=measured("other", ratio))


RESULTS = [_result(one.name, 2.0) for one in WORKLOADS]


def test_each_workload_is_in_one_section() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(one.name for one in WORKLOADS)
    assert set(DRAWN) <= set(listed)


def test_the_page_has_a_table_for_each_section_with_results() -> None:
    page = render(RESULTS, SIZES["full"])
    assert re.findall(r"^## (.*)$", page, re.MULTILINE)[: len(GROUPS)] == list(GROUPS)
    assert page.count("| yes |\n") + page.count("| no |\n") == len(WORKLOADS)
    assert page.index("benchmarks.svg") < page.index(f"## {next(iter(GROUPS))}")
    some = tables([_result("open", 9.0), _result("scan", 9.0)], SIZES["full"])
    assert re.findall(r"^## (.*)$", some, re.MULTILINE) == ["Open and plan", "Read"]


def test_the_chart_has_about_a_dozen_bars_in_the_order_of_the_page() -> None:
    chart = ET.fromstring(picture(RESULTS, SIZES["full"]))  # noqa: S314 - ours
    assert len(list(chart.iter(f"{_SVG}rect"))) == len(DRAWN) < 20


@pytest.mark.parametrize("ratio", [0.3, 0.95, 1.8, 2.0, 4.9, 30.0, 150.0])
def test_no_grid_line_strikes_through_a_title_or_a_number(ratio: float) -> None:
    bars = [Bar("a title " * 8, ratio, 1.0, is_met=True), Bar("b", 120.0, 1.0, is_met=False)]
    chart = ET.fromstring(draw(bars))  # noqa: S314 - ours
    lines = [{key: float(one.get(key, "")) for key in ("x1", "y1", "y2")} for one in _grid(chart)]
    assert lines
    for text in chart.iter(f"{_SVG}text"):
        left, base = float(text.get("x", "")), float(text.get("y", ""))
        width = _LETTER * len(text.text or "")
        left -= width / 2 if text.get("text-anchor") == "middle" else 0
        for line in lines:
            beside = not left <= line["x1"] <= left + width
            assert beside or line["y2"] <= base - 10 or line["y1"] >= base + 2, text.text


def _grid(chart: ET.Element) -> list[ET.Element]:
    return [one for one in chart.iter(f"{_SVG}line") if one.get("stroke") == "var(--dl-line)"]
