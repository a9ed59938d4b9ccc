"""Keys of collations, text by text and character by character, beside those of the library.

Written from Spark's rules, and not from what the library does: no kernel, no table of letters but
Python's own, whose Unicode is older than the letters that tests of those name themselves.
"""

from __future__ import annotations

from deltalog import Field

LCASE = "spark.UTF8_LCASE"
LCASE_RTRIM = "spark.UTF8_LCASE_RTRIM"
BINARY_RTRIM = "spark.UTF8_BINARY_RTRIM"
ALL = (LCASE, LCASE_RTRIM, BINARY_RTRIM)


def pieces(text: str) -> list[str]:
    """The lower characters of each character."""
    special = {"\u0130": "i\u0307", "\u03c2": "\u03c3"}
    return [special.get(character) or character.lower() for character in text]


def key(text: str, collation: str) -> bytes:
    """What bytes compare as the collation compares texts."""
    if collation.endswith("_RTRIM"):
        while text.endswith(" "):
            text = text[:-1]
    return ("".join(pieces(text)) if "LCASE" in collation else text).encode()


def collated(name: str, collation: str) -> Field:
    """A column of texts with a collation."""
    return Field(name, "string", metadata={"__COLLATIONS": {name: collation}})
