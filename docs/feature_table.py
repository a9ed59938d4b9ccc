"""The tables of features and properties, from the registries that the code itself asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.expressions import (
    arithmetic,
    arrays,
    containers,
    datetimes,
    hashing,
    java_functions,
    numbers,
    strings,
)
from deltalog.expressions.aliases import ALIASES, CASTS, MACROS
from deltalog.expressions.functions import FUNCTIONS, REFUSED
from deltalog.protocol.actions.properties import PROPERTIES, TableProperties
from deltalog.protocol.features import FEATURES, Support
from deltalog.protocol.features.registry import TableFeature
from deltalog.protocol.features.support import engine_answers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HEADER = """\
| feature | what it is | protocol | reading | writing |
|---|---|---|---|---|
"""
_WORDS = {
    Support.FULL: "yes",
    Support.PREVIEW: "in preview",
    Support.PLANNED: "planned",
    Support.NONE: "refused",
}


def feature_table() -> str:
    """One Markdown row per table feature that deltalog knows by name."""
    return _HEADER + "".join(_row(feature) for feature in FEATURES.values())


def _row(feature: TableFeature) -> str:
    names = ", ".join(f"`{name}`" for name in (feature.name, *feature.aliases))
    reader, writer = feature.min_versions
    return (
        f"| {names} | {feature.doc} | reader {reader}, writer {writer} "
        f"| {_WORDS[feature.read]} | {_WORDS[feature.write]} |\n"
    )


_OUTCOMES = {"right": "yes", "refuses": "no", "wrong": "**wrong**"}
_EVERYTHING = "none"  # the case of a table with no feature


def reading_table() -> str:
    """One Markdown row per feature: what becomes of it when other engines read."""
    return _engine_table(_features(engine_answers()), engine_answers())


def writing_table() -> str:
    """One Markdown row per feature: what becomes of it when other engines append."""
    answers = engine_answers(writing=True)
    return _engine_table(_features(answers), answers)


def type_table() -> str:
    """One Markdown row per type that some engine does not read, and one for all others."""
    answers = engine_answers()
    names = [name for name in _names(answers) if name not in _features(answers)]
    odd = [name for name in names if {one[name] for one in answers.values()} != {"right"}]
    even = ", ".join(name for name in names if name not in odd)
    every = {engine: {even: "right"} for engine in answers}
    merged = {engine: {**cases, **every[engine]} for engine, cases in answers.items()}
    return _engine_table([even, *odd], merged, "type")


def deltalake_table() -> str:
    """One Markdown row per feature that one of deltalake's ways to read does not read."""
    reading = {
        engine.partition(": ")[2]: cases
        for engine, cases in engine_answers().items()
        if engine.startswith("deltalake")
    }
    (writing,) = (
        cases
        for engine, cases in engine_answers(writing=True).items()
        if engine.startswith("deltalake")
    )
    ways = {**reading, "writing": writing}
    names = [
        name
        for name in _features(engine_answers())
        if name in writing and {cases.get(name) for cases in ways.values()} != {"right"}
    ]
    return _engine_table(names, ways)


def _names(answers: Mapping[str, Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(name for cases in answers.values() for name in cases))


def _features(answers: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The cases that are features, of the registry or in another form."""
    return [name for name in _names(answers) if name == _EVERYTHING or name.split()[0] in FEATURES]


def _engine_table(
    names: Sequence[str], answers: Mapping[str, Mapping[str, str]], what: str = "feature"
) -> str:
    rows = [
        f"| {_shown(name)} | "
        + " | ".join(_OUTCOMES.get(cases.get(name, ""), "") for cases in answers.values())
        + " |\n"
        for name in names
    ]
    head = f"| {what} | {' | '.join(answers)} |\n|---|{'---|' * len(answers)}\n"
    return head + "".join(rows)


def _shown(name: str) -> str:
    feature, _, form = name.partition(" ")
    if name == _EVERYTHING:
        return "none: a table as `write_deltalake` makes it"
    return f"`{feature}` {form}".strip() if feature in FEATURES else name


_TABLES = {
    "Strings": (strings.KERNELS, java_functions.TEXT_ROWS),
    "Numbers": (numbers.KERNELS, java_functions.ROWS, java_functions.KERNELS, arithmetic.KERNELS),
    "Dates and timestamps": (datetimes.KERNELS,),
    "Arrays, maps, structs": (containers.KERNELS, arrays.ROWS, arrays.KERNELS),
    "Hashes and encodings": (hashing.KERNELS, numbers.ROWS),
}
"""A topic → the tables of the kernels that compute its functions."""
_NAMES = {
    "Strings": "charindex collate format_number format_string ilike like locate position space",
    "Numbers": "conv mod",
    "Dates and timestamps": "current_date current_timestamp date_part datepart timestamp_seconds",
    "Conditions and NULL": (
        "assert_true coalesce elt equal_null greatest if iff isnan isnotnull isnull least nanvl "
        "nullif nvl2 typeof"
    ),
    "Functions with lambdas": (
        "aggregate exists filter forall map_filter map_zip_with transform transform_keys "
        "transform_values zip_with"
    ),
    "Hashes and encodings": "crc32 md5 sha1 sha2",
}
"""A topic → functions that are in no table of kernels, or in that of another topic."""
_BY_NAME = {name: topic for topic, names in _NAMES.items() for name in names.split()}


def function_list() -> str:
    """One Markdown row per topic: the names of the functions that deltalog computes."""
    names = {*FUNCTIONS, *ALIASES, *CASTS, *(name for name, _ in MACROS)}
    topics: dict[str, list[str]] = {}
    for name in sorted(names):
        if name.isidentifier():
            topics.setdefault(_topic(name), []).append(f"`{name}`")
    order = dict.fromkeys([*_TABLES, *_NAMES, *topics])
    rows = [f"| {topic} | {', '.join(topics[topic])} |\n" for topic in order if topic in topics]
    return "| topic | functions |\n|---|---|\n" + "".join(rows)


def _topic(name: str) -> str:
    canonical = ALIASES.get(name, name)
    if canonical in _BY_NAME:
        return _BY_NAME[canonical]
    if found := [one for one, tables in _TABLES.items() if any(canonical in t for t in tables)]:
        return found[0]
    return "Casts" if canonical in CASTS else "Others"


def refusal_table() -> str:
    """One Markdown row per reason for which functions are refused by name."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        by_reason.setdefault(reason, []).append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {reason} |\n" for reason, names in by_reason.items()]
    return "| function | why it is refused |\n|---|---|\n" + "".join(rows)


_GROUPS = {
    "delta.appendOnly": "Changes and concurrency",
    "delta.logRetentionDuration": "Retention",
    "delta.checkpointInterval": "Checkpoints",
    "delta.dataSkippingNumIndexedCols": "Statistics and indexes",
    "delta.enableChangeDataFeed": "Table features",
    "delta.enableMaterializePartitionColumnsFeature": "Data files",
}
"""Its first property, in the order of the registry → the title of a group."""
_BY_WRITERS = "Set by writers only"
_DAY_MS = 86_400_000


def property_table() -> str:
    """A Markdown table of properties for each group: key, default, meaning, attribute."""
    names = {id(value): name for name, value in vars(TableProperties).items()}
    groups: dict[str, list[str]] = {}
    title = ""
    for key, found in PROPERTIES.items():
        title = _GROUPS.get(key, title)
        name = names[id(found)]
        row = f"| `{key}` | {_default(name, found.default)} | {found.doc} | `{name}` |\n"
        groups.setdefault(title if found.settable else _BY_WRITERS, []).append(row)
    groups[_BY_WRITERS] = groups.pop(_BY_WRITERS)  # the last one
    header = "| property | default | meaning | attribute |\n|---|---|---|---|\n"
    return "\n".join(f"### {one}\n\n{header}{''.join(rows)}" for one, rows in groups.items())


def _default(name: str, value: object) -> str:
    """A default as one would set it."""
    match value:
        case None | ():
            return "not set"
        case bool():
            return f"`{str(value).lower()}`"
        case int() if name.endswith("_ms"):
            return f"`interval {value // _DAY_MS} days`"
        case _:
            return f"`{value}`"
