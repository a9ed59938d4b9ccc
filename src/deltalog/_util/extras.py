"""Errors of modules whose libraries are not installed.

Protocol: none
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def needing(libraries: str, extra: str, package: str, *modules: str) -> Iterator[None]:
    """Make an error about a missing library in the `with` block name the extra to install.

    Args:
        libraries: what the package needs, for the error.
        extra: the extra of deltalog that installs it.
        package: the package of deltalog that imports it.
        modules: the names under which Python imports the libraries.

    Raises:
        ModuleNotFoundError: one of the libraries is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in modules:
            raise
        raise ModuleNotFoundError(
            f"{package} needs {libraries}; pip install 'deltalog[{extra}]'", name=error.name
        ) from error
