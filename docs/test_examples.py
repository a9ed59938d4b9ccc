"""Runs every Python block of the README and of these pages, beside a small table `flights`.

Pages that name the profile `flights.share` have a server that shares it.

Blocks of one page share their names, as a reader would type them one after the other. A block that
is not run says why: `<!-- not run: reason -->` stands before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltalog.sharing.server import app
from tests.support.asgi import serving
from tests.support.sharing import config_of, write_profile

DOCS = Path(__file__).resolve().parent
PAGES = [
    DOCS.parent / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts),
]
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<why>.+?) -->\n)?^```python\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL
)


def _make_flights() -> None:
    months = pa.array([1, 1, 1, 2, 2, 3], pa.int32())
    table = pa.table(
        {
            "month": months,
            "carrier": ["UA", "AA", "DL", "UA", "B6", "AA"],
            "dep_delay": [2.0, 75.0, None, 130.0, -5.0, 61.0],
        }
    )
    properties = {"delta.enableChangeDataFeed": "true"}
    write_deltalake("flights", table, partition_by=["month"], configuration=properties)
    write_deltalake("flights", table.slice(0, 2), mode="append")
    DeltaTable("flights").delete("carrier = 'DL'")


@contextmanager
def _sharing() -> Iterator[None]:
    """The table as `travel.default.flights` of the profile `flights.share`."""
    table = {"location": "flights", "historyShared": True}
    with serving(app(config_of({"travel.default.flights": table}))) as url:
        write_profile(Path("flights.share"), f"{url}/delta-sharing/")
        yield


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS.parent).as_posix())
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page does what it shows."""
    monkeypatch.chdir(tmp_path)
    _make_flights()
    text = page.read_text("utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    with _sharing() if "flights.share" in text else nullcontext():
        for block in BLOCK.finditer(text):
            if not block["why"]:
                line = text.count("\n", 0, block.start("code"))
                # Line numbers of a traceback are the page's.
                code = compile("\n" * line + block["code"], str(page), "exec")
                exec(code, names)  # noqa: S102 - running the page is the test
