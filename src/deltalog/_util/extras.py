"""Errors of modules whose libraries are not installed.

Protocol: none
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def needing(libraries: str, extra: str, importer: str, *modules: str) -> Iterator[None]:
    """Make an error about a missing library in the `with` block name the extra to install.

    Args:
        libraries: what the package needs, for the error.
        extra: the extra of deltalog that installs it.
        importer: the `__name__` of the module that imports them; the error names its package.
        modules: the names under which Python imports the libraries.

    Raises:
        ModuleNotFoundError: one of the libraries is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in modules:
            raise
        package = ".".join(importer.split(".")[:2])
        raise ModuleNotFoundError(
            f"{package} needs {libraries}; pip install 'deltalog[{extra}]'", name=error.name
        ) from error
