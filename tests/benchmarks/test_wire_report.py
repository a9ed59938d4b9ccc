from __future__ import annotations

import json

from benchmarks.wire.capacity import Capacity
from benchmarks.wire.operations import WIRE_SIZES
from benchmarks.wire.report import Answered, Asked, render, summary
from benchmarks.wire.traffic import Exchange, counted


def asked(library: str, *times_s: float, requests: int = 1) -> Asked:
    exchanges = [
        Exchange(
            method="GET", target="/b/t/x", start_s=number, end_s=number + 1, bytes_down=2_000_000
        )
        for number in range(requests)
    ]
    return Asked(
        library=library,
        times_s=times_s,
        memory_bytes=5_000_000,
        answer=1,
        traffic=counted(exchanges),
    )


ANSWERED = Answered(
    operation="merge",
    latency_ms=25.0,
    asked=(
        asked("deltalog", 9.0, 0.5, 0.1, 0.4, 0.6, requests=2),
        asked("deltalake", 1.0, 2.0, 3.0, requests=1_200),
    ),
)


def test_the_median_counts() -> None:
    ours, theirs = ANSWERED.asked
    assert (ours.seconds, theirs.seconds) == (0.5, 2.0)
    assert ANSWERED.ratio(theirs) == 4
    assert asked("deltalog", 4, 1, 3, 2).seconds == 2


def test_what_was_found_is_kept() -> None:
    assert Answered.from_json(json.loads(json.dumps(ANSWERED.to_json()))) == ANSWERED
    assert ANSWERED.name == "merge@25"


def test_the_page_has_a_row_for_each_library() -> None:
    quick = Capacity(requests_per_second=5_000.0, bytes_per_second=2e9)
    capacities = {"server": quick, "unbounded": quick, "bounded": quick}
    page = render([ANSWERED], capacities, "small", WIRE_SIZES["small"])
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert [row.split(" | ")[1] for row in rows[2:]] == ["`deltalog`", "`deltalake`"]
    assert "| 500 ms | 2,000 ms |  | 2 (2 GET) | 4.0 MB | 0.0 kB | 2 | 1 | 1 | 5.0 MB |" in rows[2]
    assert "| 4.00 | 1,200 (1,200 GET) |" in rows[3]
    assert "## 25 ms" in page
    assert "2,000 MB/s" in page
    assert "deltalake: 2.000 s (4.00)" in summary(ANSWERED)
