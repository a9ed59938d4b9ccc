"""Which errors the requests of an edge raise: sharing's servers and catalogs have trees of theirs.

Owns the classes, by what a caller does about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltalog.errors import DeltaError


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpFaults:
    """The errors of requests.

    Args:
        refused: the URL may not be requested, or the answer is not taken.
        unavailable: no attempt got an answer, or not in time.
        denied: the server takes no token, or gives none; has an attribute `status`.
        malformed: an answer breaks its protocol.
    """

    refused: type[DeltaError]
    unavailable: type[DeltaError]
    denied: type[DeltaError]
    malformed: type[DeltaError]
