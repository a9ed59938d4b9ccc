"""Keys of collations, text by text and character by character, beside those of the library.

Written from Spark's rules, and not from what the library does: no kernel, and no table of letters
but Python's own, of which only old ones are taken: later letters are lower or not by its release.
"""

from __future__ import annotations

import unicodedata

from hypothesis import strategies as st

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


def is_old(character: str) -> bool:
    """Whether a character is as old as Unicode 3.2, so that every Python knows its lower one."""
    return unicodedata.ucd_3_2_0.category(character) not in {"Cn", "Cs"}


# Letters with two lower forms, lower forms of several, words of a language, and any other.
texts = st.text(
    st.sampled_from(
        "aAbBiI\u0130\u0131\u0307\u03a3\u03c3\u03c2\u212aKk\u00df\u1e9e\u00e9\u00c9 \U00010400"
    )
) | st.text(st.characters(codec="utf-8").filter(is_old))
