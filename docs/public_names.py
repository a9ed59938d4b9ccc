"""The names of the reference as a program writes them, instead of the modules that define them.

`deltalog.data.scan.Scan` is what autodoc documents, but nobody imports it from there: its heading
is `Scan`. What a public module exports is shown with that module: `deltalog.sharing.SharedTable`.
"""

from __future__ import annotations

import importlib
import re
from types import ModuleType
from typing import Final

from docutils import nodes
from sphinx import addnodes

PUBLIC_MODULES: Final = tuple(
    f"deltalog{module}"
    for module in (
        *("", ".errors", ".expressions", ".catalogs", ".spark", ".sharing", ".sharing.server"),
        *(".polars", ".dask", ".ray", ".daft", ".fs", ".testing", ".telemetry"),
    )
)
"""The modules that users import from, the best first."""
_COST: Final = re.compile(r"(\s*)(?:Cost|Protocol): \S")


def public_module(module: str, name: str) -> str:
    """The public module that exports what another module defines, or an empty string.

    Args:
        module: that defines it.
        name: its name in it.
    """
    wanted = getattr(importlib.import_module(module), name)
    exporting = (
        public for public in PUBLIC_MODULES if getattr(_imported(public), name, None) is wanted
    )
    return next(exporting, "")


def _imported(module: str) -> ModuleType | None:
    try:
        return importlib.import_module(module)
    except ImportError:  # its package is not installed
        return None


def shorten_headings(doctree: nodes.document) -> None:
    """Show the documented objects of a page with their public modules."""
    for signature in doctree.findall(addnodes.desc_signature):
        module, name = signature.get("module"), signature.get("fullname", "")
        if not module or "." in name:
            continue
        for prefix in signature.findall(addnodes.desc_addname):
            public = public_module(module, name)
            shown = f"{public}." if public else ""
            prefix.children = [nodes.Text(shown)] if shown else []


def join_costs(lines: list[str]) -> None:
    """Remove the hanging indent of `Cost: …`, which would make a definition of it.

    Args:
        lines: of a docstring; they are changed.
    """
    indent: str | None = None
    for number, line in enumerate(lines):
        found = _COST.match(line)
        if found:
            indent = found[1]
        elif not line.strip():
            indent = None
        elif indent is not None:
            lines[number] = indent + line.lstrip()
