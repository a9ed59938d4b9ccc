"""Settings that are refused, and those of its session that a task knows.

A format's reader and writer have no session, but their tasks do: Spark hands a session's settings
to the tasks of its jobs, so a task that finds one follows it, or refuses it before anything is
committed. Workers load this module, and nothing of what a driver needs.

Protocol: none
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext

from deltalog.actions.properties import PROPERTIES
from deltalog.errors import InvalidInputError
from deltalog.spark.session.known_settings import (
    DELTA,
    FOLLOWED,
    REFUSED,
    WITHOUT_EFFECT,
    full_name,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULTS: Final = f"{DELTA}properties.defaults."
TIME_ZONE: Final = "spark.sql.session.timeZone"
_NAMES: Final = frozenset(
    spelt
    for name in (*FOLLOWED, *REFUSED, *(one for many in WITHOUT_EFFECT.values() for one in many))
    for spelt in (full_name(name), DELTA + name)
)


def task_settings() -> dict[str, str]:
    """Return the settings of the session whose job this task belongs to, as far as they are known.

    Spark passes on only what was set. An unset time zone is that of the machine, as Java's.
    """
    context = TaskContext.get()
    if context is None:
        return {}
    names = _NAMES.union(f"{DEFAULTS}{key.removeprefix('delta.')}" for key in PROPERTIES)
    asked = {name: context.getLocalProperty(name) for name in names}
    found = {name: text for name, text in asked.items() if text is not None}
    return {TIME_ZONE: _machine_zone(), **found}


def refuse_unfollowed(given: Mapping[str, str], *, writes: bool) -> None:
    """Refuse settings that change what is written or read, and that deltalog does not follow.

    Args:
        given: the settings of a session.
        writes: whether something is written, and not only read.

    Raises:
        InvalidInputError: it names the setting.
    """
    for name, refusal in REFUSED.items():
        full = full_name(name)
        text = given.get(full)
        concerns = refusal.writes if writes else refusal.reads
        if text is None or not concerns or text.strip().lower() in refusal.accepted:
            continue
        expected = " or ".join(refusal.accepted)
        raise _not_followed(full, text, f"expected {expected}", refusal.instead)
    for full, text in given.items():
        if full.startswith(DELTA) and not full.startswith(DEFAULTS) and full not in _NAMES:
            raise _not_followed(full, text, "expected none of this name, which Delta's list lacks")


def _not_followed(
    name: str, text: str, expected: str, instead: str | None = None
) -> InvalidInputError:
    do = f"{instead}, and unset it" if instead else "unset it"
    return InvalidInputError(
        f"cannot work in a session with the setting {name}={text!r}, which deltalog does not "
        f"follow: {expected}; {do} with spark.conf.unset({name!r})"
    )


def _machine_zone() -> str:
    """Return the name of the machine's time zone as Java finds it, UTC where it has none."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named:
        return named
    _, found, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    return name if found else "UTC"
