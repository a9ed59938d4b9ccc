"""Settings of Hadoop's file systems, which Delta's class takes and deltalog does not use.

Protocol: none
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.paths import store_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

_OF_A_SCHEME: Final = re.compile(r"(?:spark\.hadoop\.)?fs\.(?:abstractfilesystem\.)?([^.]+)\..*")


def check_hadoop_conf(given: Mapping[str, str], location: object) -> None:
    """Refuse settings of Hadoop that are about the file system of a location.

    Those of other file systems mean nothing there, as in Hadoop.

    Args:
        given: names, such as `fs.s3a.access.key`, and their values.
        location: of the table.

    Raises:
        InvalidInputError: it names the setting, never its value.
    """
    own = _names_of(location)
    for name in given:
        found = _OF_A_SCHEME.fullmatch(name.lower())
        if found is None or found[1] in own:
            raise InvalidInputError(
                f"cannot take the setting {name!r} of hadoopConf for {location!r}: files are not "
                "read through Hadoop; give the store's credentials and settings as storage_options"
            )


def _names_of(location: object) -> set[str]:
    """Return what Hadoop calls the store of a location."""
    kind = store_kind(str(getattr(location, "root", location)))
    return {kind.name, *kind.aliases, *(one.rstrip("_") for one in kind.option_prefixes)}
