"""Functions that Spark has and deltalog refuses by name, each with its reason.

A constraint or a generated column that uses one of them makes a table read-only here. The features
page prints this table.
"""

from __future__ import annotations

from typing import Final

_XML: Final = "it needs an XPath 1.0 engine with Java's conversions, and none is a dependency"
_INTERVAL: Final = "its value may have months, days and less at once, which Spark does not compare"
_CSV: Final = "its options and leniency are those of Spark's CSV parser (univocity)"
_SCHEMA: Final = "its types depend on Spark's inference rules for each option"
_TRIGONOMETRY: Final = (
    "Java's Math may differ in the last digit between machines and versions, so no other value "
    "is Spark's"
)

REFUSED: Final[dict[str, str]] = {
    **dict.fromkeys(("sin", "cos", "tan", "cot", "sec", "csc"), _TRIGONOMETRY),
    **dict.fromkeys(
        ("xpath", "xpath_boolean", "xpath_double", "xpath_number", "xpath_float", "xpath_int",
         "xpath_long", "xpath_short", "xpath_string"),
        _XML,
    ),
    "make_interval": _INTERVAL,
    "window": "it is a grouping of rows in time, and makes several rows of one",
    "json_tuple": "it generates columns, and cannot stand in an expression on one row",
    "sentences": "its words are those of Java's BreakIterator, which differ between versions",
    "parse_url": "which texts are URLs is decided by java.net.URI",
    "from_csv": _CSV,
    "to_csv": _CSV,
    "schema_of_csv": _SCHEMA,
    "schema_of_json": _SCHEMA,
    "from_json": "its leniency and its options are those of Spark's JSON parser (Jackson)",
    "to_json": "its options, and how it prints numbers and times, are those of Jackson",
    "get_json_object": "it prints the parts of a text as Jackson does",
    "time": "Delta tables have no type for a time of day",
    "gettimestamp": "Spark uses it inside of to_date and to_timestamp; it has no SQL name",
}  # fmt: skip
