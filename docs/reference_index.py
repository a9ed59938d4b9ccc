"""The index of the reference: each name that its pages document, linked, with its first line."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_REFERENCE = Path(__file__).parent / "reference"
_TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_FIRST_PART = re.compile(r"^(?:## |```\{eval-rst\})", re.MULTILINE)
_MANY = 4
"""The fewest names of a page that lists them at its beginning."""
_DIRECTIVE = re.compile(r"^\.\. auto(?:class|function|module):: (\S+)$", re.MULTILINE)
_EXCLUDED = re.compile(r"^   :exclude-members: (.+)$", re.MULTILINE)


def reference_index() -> str:
    """One Markdown table per page of the reference: name, and what its docstring says first."""
    return "\n".join(_table(page) for page in reference_pages())


def reference_pages() -> list[Path]:
    """The pages in the order of the index's table of contents."""
    found = _TOCTREE.search((_REFERENCE / "index.md").read_text("utf-8"))
    assert found, "docs/reference/index.md has no toctree"
    names = [line for line in found[1].splitlines() if line and not line.startswith(":")]
    return [_REFERENCE / f"{name}.md" for name in names]


def documented_names(page: Path) -> list[str]:
    """The full names that a page documents, those of whole modules one by one."""
    text = page.read_text("utf-8")
    names = [one for name in _DIRECTIVE.findall(text) for one in _members(name)]
    excluded = {name for line in _EXCLUDED.findall(text) for name in line.split(", ")}
    return [name for name in names if name.rpartition(".")[2] not in excluded]


def with_contents(page: Path, text: str) -> str:
    """The text of a page of the reference, with links to its names below the introduction.

    Args:
        page: the page.
        text: its text; it is returned unchanged if the page has few names, or a table of them.
    """
    names = documented_names(page)
    if len(names) < _MANY or "<!-- generated: " in text.partition("```{eval-rst}")[0]:
        return text
    links = " · ".join(f"[`{short}`](#{name})" for name, short in _short_names(names))
    found = _FIRST_PART.search(text)
    assert found, f"{page.name} has neither a section nor a directive"
    return f"{text[: found.start()]}On this page: {links}\n\n{text[found.start() :]}"


def _short_names(names: list[str]) -> Iterator[tuple[str, str]]:
    """Each name, and its last part; `dask.read` and `ray.read` keep the part before it."""
    last = Counter(name.rpartition(".")[2] for name in names)
    for name in names:
        parts = name.split(".")
        yield name, ".".join(parts[-2:] if last[parts[-1]] > 1 else parts[-1:])


def _members(name: str) -> Iterator[str]:
    value = _load(name)
    if not inspect.ismodule(value):
        yield name
        return
    own = [
        key
        for key, one in vars(value).items()
        if not key.startswith("_") and getattr(one, "__module__", None) == name
    ]
    yield from (f"{name}.{key}" for key in own)


def _load(name: str) -> object:
    """A module, or a name of the deepest module that can be imported."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return getattr(_load(module), last)


def _table(page: Path) -> str:
    title = _TITLE.search(page.read_text("utf-8"))
    assert title, f"{page.name} has no title"
    rows = [_row(name, short) for name, short in _short_names(documented_names(page))]
    return f"## [{title[1]}]({page.name})\n\n| name | |\n|---|---|\n" + "".join(rows)


def _row(name: str, short: str) -> str:
    value = _load(name)
    first = (inspect.getdoc(value) or "").partition("\n")[0].replace("|", "\\|")
    return f"| [`{short}`](#{name}) | {first} |\n"
