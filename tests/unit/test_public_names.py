"""What `deltalog` offers: every name is there, loads when it is used, and is documented."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import deltalog
from deltalog import DeltaTable

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", deltalog.__all__)
def test_a_public_name_is_there(name: str) -> None:
    value = getattr(deltalog, name)
    assert name in dir(deltalog)
    assert value is getattr(deltalog, name)
    if name != "__version__":
        assert value.__doc__


def test_names_are_sorted_and_lazy_ones_are_listed() -> None:
    assert deltalog.__all__ == sorted(deltalog.__all__)
    listed = [name for names in deltalog._ORIGINS.values() for name in names]
    assert sorted(listed) == deltalog.__all__


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'deltalog' has no attribute 'Tables'"):
        getattr(deltalog, "Tables")  # noqa: B009


def test_star_gives_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from deltalog import *", names)  # noqa: S102 - that is what is tested
    assert set(deltalog.__all__) <= set(names)


def test_importing_loads_no_package() -> None:
    code = "import deltalog, sys; print(*(n for n in sys.modules if n.startswith('deltalog.')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == [
        "deltalog._util",
        "deltalog._util.lazy_names",
        "deltalog._util.moved",
    ]


@pytest.mark.parametrize("name", deltalog.__all__)
def test_a_public_name_is_in_the_reference(name: str) -> None:
    text = "\n".join(page.read_text("utf-8") for page in REFERENCE.glob("*.md"))
    assert re.search(
        rf"^\.\. auto\w+:: (deltalog\.)?{name}$|`(deltalog\.)?{name}`", text, re.MULTILINE
    )


def test_every_method_of_a_table_says_what_it_gives() -> None:
    bare = [
        name
        for name, value in inspect.getmembers(DeltaTable)
        if not name.startswith("__") and not inspect.getdoc(value)
    ]
    assert not [name for name in bare if not name.startswith("_") or name == "_repr_html_"]


def test_help_reads_well() -> None:
    text = inspect.getdoc(DeltaTable) or ""
    for argument in inspect.signature(DeltaTable.__init__).parameters:
        assert argument == "self" or f"{argument}:" in text
