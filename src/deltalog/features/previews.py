"""Features of proposed texts, which are off until they are switched on.

Such a text may still change, and with it what a table means. Child processes have the same
switches: they stand in the environment, as `DELTALOG_PREVIEWS=geospatial,intervalTypes`.

Protocol: none; the RFCs of delta-io/delta
"""

from __future__ import annotations

import os
from typing import Final

from deltalog.errors import InvalidInputError
from deltalog.features.registry import FEATURES, Support

VARIABLE: Final = "DELTALOG_PREVIEWS"
PREVIEWS: Final = tuple(
    name for name, one in FEATURES.items() if Support.PREVIEW in {one.read, one.write}
)
"""The features that can be switched on, by name."""


def enable_preview(*features: str) -> None:
    """Switch features of proposed texts on, for this process and those that it starts.

    Args:
        features: `geospatial`, `timestampNanos` or `intervalTypes`.

    Raises:
        InvalidInputError: there is no such preview.
    """
    for name in features:
        if name not in PREVIEWS:
            raise InvalidInputError(
                f"cannot switch the preview {name!r} on: expected one of {', '.join(PREVIEWS)}"
            )
    os.environ[VARIABLE] = ",".join(dict.fromkeys((*_enabled(), *features)))


def is_supported(name: str, support: Support) -> bool:
    """Whether a feature is supported here and now.

    Args:
        name: of the feature, as it is called today.
        support: that it has.
    """
    if support is Support.PREVIEW:
        return name in _enabled()
    return support is Support.FULL


def _enabled() -> list[str]:
    return [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]
