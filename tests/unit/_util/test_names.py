"""`names`: names that differ in case only, as Java's `toLowerCase(Locale.ROOT)` knows them."""

from __future__ import annotations

import pytest

from deltalog._util.escaping import name_key, path_key

# What a JVM printed for them.
LOWER = {
    "\N{LATIN CAPITAL LETTER SHARP S}": "\N{LATIN SMALL LETTER SHARP S}",
    "\N{LATIN SMALL LETTER SHARP S}": "\N{LATIN SMALL LETTER SHARP S}",
    "\N{KELVIN SIGN}": "k",
    "\N{ANGSTROM SIGN}": "\xe5",
    "\N{OHM SIGN}": "\u03c9",
    "\u0130": "i\u0307",
    "\N{MICRO SIGN}": "\N{MICRO SIGN}",
    "\N{LATIN SMALL LETTER LONG S}": "\N{LATIN SMALL LETTER LONG S}",
    "\N{LATIN SMALL LIGATURE FI}": "\N{LATIN SMALL LIGATURE FI}",
    "\N{LATIN SMALL LETTER N PRECEDED BY APOSTROPHE}": "\u0149",
    "\u1fbc": "\u1fb3",
    "\u03a3": "\u03c3",
    "\u0391\u03a3": "\u03b1\u03c2",
    "\u03c2": "\u03c2",
}


@pytest.mark.parametrize(("name", "lower"), LOWER.items())
def test_the_key_of_a_name_is_javas_lower_case(name: str, lower: str) -> None:
    assert name_key(name) == lower
    assert name_key(lower) == lower


def test_each_name_of_a_path_is_taken_alone() -> None:
    # Joined by a dot, the first name's last letter is not at the end of a word.
    assert path_key(["\u0391\u03a3", "\u0391"]) == ("\u03b1\u03c2", "\u03b1")
