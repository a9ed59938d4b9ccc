"""The version of this library, for those who say who they are."""

from __future__ import annotations

__version__ = "0.2.0"
