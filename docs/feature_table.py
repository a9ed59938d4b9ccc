"""The tables of features and properties, from the registries that the code itself asks."""

from __future__ import annotations

from deltalog.expressions.aliases import ALIASES, CASTS, MACROS
from deltalog.expressions.functions import FUNCTIONS, REFUSED
from deltalog.protocol.actions.properties import PROPERTIES, TableProperties
from deltalog.protocol.features import FEATURES, Support
from deltalog.protocol.features.registry import TableFeature

_HEADER = """\
| feature | what it is | protocol | reading | writing | other engines that read it |
|---|---|---|---|---|---|
"""
_WORDS = {
    Support.FULL: "yes",
    Support.PREVIEW: "if switched on",
    Support.PLANNED: "planned",
    Support.NONE: "refused",
}


def feature_table() -> str:
    """One Markdown row per table feature that deltalog knows by name."""
    return _HEADER + "".join(_row(feature) for feature in FEATURES.values())


def _row(feature: TableFeature) -> str:
    names = ", ".join(f"`{name}`" for name in (feature.name, *feature.aliases))
    reader, writer = feature.min_versions
    engines = ", ".join(feature.read_by) or "none"
    return (
        f"| {names} | {feature.doc} | reader {reader}, writer {writer} "
        f"| {_WORDS[feature.read]} | {_WORDS[feature.write]} | {engines} |\n"
    )


def function_list() -> str:
    """The names of the functions that deltalog computes."""
    names = {*FUNCTIONS, *ALIASES, *CASTS, *(name for name, _ in MACROS)}
    return ", ".join(f"`{name}`" for name in sorted(names) if name.isidentifier())


def refusal_table() -> str:
    """One Markdown row per reason for which functions are refused by name."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        by_reason.setdefault(reason, []).append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {reason} |\n" for reason, names in by_reason.items()]
    return "| function | why it is refused |\n|---|---|\n" + "".join(rows)


def property_table() -> str:
    """One Markdown row per table property: key, attribute, default, meaning."""
    names = {id(value): name for name, value in vars(TableProperties).items()}
    rows = [
        f"| `{key}` | `{names[id(found)]}` | `{found.default!r}` | {found.doc} |\n"
        for key, found in PROPERTIES.items()
    ]
    return "| property | attribute | default | meaning |\n|---|---|---|---|\n" + "".join(rows)
