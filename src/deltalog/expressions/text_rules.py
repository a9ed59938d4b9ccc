"""By what texts are compared: a choice of those who resolve expressions.

Protocol: Collations
"""

from __future__ import annotations

from enum import Enum


class TextRules(Enum):
    """By what texts are compared."""

    COLLATIONS = "collations"
    """The collation of their column, or that which COLLATE names."""
    VALUES = "values"
    """The same, for a value that is compared by bytes later: no text with a collation."""
    BYTES = "bytes"
    """Their bytes, as engines do that know no collations, and have them compared so."""
    NONE = "none"
    """Another engine's, which computes the same: what a collation might decide is refused."""
