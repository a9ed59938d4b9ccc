"""Facts for people: sizes and times, counts with their noun, and what an operation changed.

Notebook cards and the command line share these forms. Programs receive the values themselves.

Protocol: none
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from deltalog._util.json import dumps, loads
from deltalog.errors import DeltaError

FILE: Final = "file"
"""The noun of `counted` for files."""
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def readable_size(size_bytes: int) -> str:
    """Return a size with its unit, such as `12.3 MiB`."""
    size, unit = float(size_bytes), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    if unit == 0:
        return "1 byte" if size_bytes == 1 else f"{size_bytes} bytes"
    return f"{size:.1f} {_UNITS[unit]}"


def readable_time(value: datetime) -> str:
    """Return a time in UTC, with its fraction if there is one: `2024-01-02 03:04:05Z`."""
    at = value.astimezone(UTC).replace(tzinfo=None)
    fraction = f".{at.microsecond:06}".removesuffix("000") if at.microsecond else ""
    return f"{at.isoformat(' ', 'seconds')}{fraction}Z"


def epoch_hint(number: float) -> str:
    """Return a hint about a version that looks like a time since 1970; otherwise an empty string.

    `history()` and other APIs return times as numbers, which people then pass as versions.
    """
    if 10**11 <= number < 10**14:
        unit, seconds = "milliseconds", number / 1000
    elif 10**9 <= number < 10**10:
        unit, seconds = "seconds", float(number)
    else:
        return ""
    moment = datetime.fromtimestamp(seconds, UTC)
    text = moment.isoformat(timespec="milliseconds").removesuffix("+00:00").removesuffix(".000")
    return f"; for the time that is {number} {unit} since 1970, pass '{text}Z'"


def counted(number: float, noun: str, plural: str = "") -> str:
    """Return a number and its noun, such as `1 file`, `2,000 files` and `0.5 hours`.

    Args:
        number: the number.
        noun: the noun in the singular.
        plural: the noun in the plural, if it is not the singular with an s.
    """
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,g}"
    return f"{shown} {noun if number == 1 else plural or noun + 's'}"


# --- what an operation changed


_CHANGES: Final = (
    (("num_target_rows_inserted", "num_inserted_rows"), "row", "inserted"),
    (("num_target_rows_updated", "num_updated_rows"), "row", "updated"),
    (("num_target_rows_deleted", "num_deleted_rows"), "row", "deleted"),
    (("numRestoredFile",), FILE, "restored"),
    (("numRemovedFile",), FILE, "removed"),
)
"""Names of a number in the results of operations → its noun and verb, in the order of a sentence.

A result with one of these names, or of those in `_outcome_of_files`, is that of a change.
"""
_FILES_SKIPPED: Final = "num_target_files_skipped_during_scan"
_SIZES: Final = ("numFilesAdded", "numFilesRemoved", "filesAdded", "filesRemoved")
_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
_IS_SIZE: Final = re.compile("bytes|size", re.IGNORECASE)
_MOST_LISTED: Final = 20
_FOR_PROGRAMS: Final = {
    "dry_run",
    "numBatches",
    "preserveInsertionOrder",
    "preservedStableOrder",
    "plannerStrategy",
    "maxBinSpanFiles",
}
"""What details omit: what the title contains, and metrics that describe the plan of OPTIMIZE."""


_IN_SENTENCES: Final = {
    _FILES_SKIPPED,
    "numFilesAdded",
    "numFilesRemoved",
    *(name for names, _, _ in _CHANGES for name in names),
}
"""Numbers that the details do not repeat."""


def outcome(facts: Mapping[str, Any]) -> str:
    """Return what an operation changed as a sentence; "" if the facts are no result of a change."""
    if set(_SIZES) <= set(facts):
        return _rewritten(facts)
    known = [
        (facts[name], noun, verb)
        for names, noun, verb in _CHANGES
        for name in names
        if name in facts
    ]
    parts = [f"{counted(number, noun)} {verb}" for number, noun, verb in known if number]
    removed = facts.get("num_removed_files")
    if not parts and removed and any(number is None for number, _, _ in known):
        parts = [f"all rows of {counted(removed, 'file')} deleted; the log lacks their number"]
    elif not known and removed is not None:  # TRUNCATE
        parts = [f"{counted(removed, 'file')} removed"] if removed else []
        known = [(removed, FILE, "removed")]
    elif not known and "numOutputRows" in facts:  # INSERT
        known = [(facts["numOutputRows"], "row", "written")]
        parts = [f"{counted(facts['numOutputRows'], 'row')} written"]
    if not known:
        return ""
    skipped = facts.get(_FILES_SKIPPED)
    if skipped:
        parts.append(f"{counted(skipped, 'file')} skipped")
    if "numOutputRows" not in facts and not removed and not any(one[0] for one in known):
        parts.insert(0, "nothing changed")
    return ", ".join(parts)


def _rewritten(facts: Mapping[str, Any]) -> str:
    """Return what an OPTIMIZE did."""
    added, removed = facts["numFilesAdded"], facts["numFilesRemoved"]
    if not removed:
        return "nothing to optimize"
    before, after = (facts[name].get("totalSize") or 0 for name in ("filesRemoved", "filesAdded"))
    return (
        f"{counted(removed, 'file')} of {readable_size(before)} rewritten as "
        f"{counted(added, 'file')} of {readable_size(after)}"
    )


def repaired(facts: Mapping[str, Any]) -> str:
    """Return what a repair of missing files did, or would do in a dry run, as a sentence."""
    gone = facts["files_removed"]
    unknown = facts.get("files_without_deletion_vector")
    verb = "can be removed" if facts.get("dry_run") else "removed"
    parts = [f"{counted(len(gone), 'missing file')} {verb}" if gone else "no data file is missing"]
    if unknown:
        parts.append(f"the deletion vector of {counted(len(unknown), FILE)} is missing")
    return ", ".join(parts)


def details(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the numbers of a result for people: names as words, with units, without zeros."""
    found = {}
    for name, value in facts.items():
        if name in _FOR_PROGRAMS or name in _IN_SENTENCES or value in (None, 0, "", [], {}):
            continue
        words = " ".join(_WORDS.split(name)).lower().removeprefix("num ")
        if isinstance(value, Mapping):
            if value.get("totalSize"):
                found[f"size of {words}"] = _sizes(value)
            continue
        if isinstance(value, list):
            more = f", … {len(value) - _MOST_LISTED:,} more" if len(value) > _MOST_LISTED else ""
            found[words] = ", ".join(map(str, value[:_MOST_LISTED])) + more
            continue
        found[words.removesuffix(" ms").replace(" bytes", " size")] = amount(name, value)
    return found


def _sizes(sizes: Mapping[str, Any]) -> str:
    total = readable_size(sizes["totalSize"])
    if sizes.get("totalFiles", 1) == 1:
        return total
    least, most = readable_size(sizes["min"]), readable_size(sizes["max"])
    return f"{total}, {least} each" if least == most else f"{total}, from {least} to {most} each"


def amount(name: str, value: Any) -> str:
    """Return a value with the unit that its name implies: bytes and milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if name.endswith(("_ms", "Ms")):
        return f"{value / 1000:,.3g} s" if value >= 1000 else f"{value:g} ms"
    if _IS_SIZE.search(name) and isinstance(value, int):
        return readable_size(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


# --- what a commit changed, by its `operationMetrics`


_ROWS_OF_COMMITS: Final = (
    (("numTargetRowsInserted", "numInsertedRows"), "inserted"),
    (("numTargetRowsUpdated", "numUpdatedRows"), "updated"),
    (("numTargetRowsDeleted", "numDeletedRows"), "deleted"),
)
_FILES_OF_COMMITS: Final = (
    ("numRestoredFiles", "restored"),
    ("numRemovedFiles", "removed"),
    ("numAddedFiles", "added"),
    ("numDeletedFiles", "deleted"),
)


def given_parameters(parameters: object) -> object:
    """Return the `operationParameters` of a commit without those that are empty."""
    if not isinstance(parameters, Mapping):
        return parameters
    return {name: one for name, one in parameters.items() if one not in (None, "", "[]", "{}")}


def readable_parameters(parameters: object) -> dict[str, str]:
    """Return the `operationParameters` of a commit for people, without those that are empty.

    Writers store lists and objects as JSON strings, such as `["id = 1"]`.

    Args:
        parameters: the parameters in `commitInfo`, which any writer may have written.
    """
    given = given_parameters(parameters)
    if not isinstance(given, Mapping):
        return {} if given is None else {"parameters": str(given)}
    found = {str(name): _readable_parameter(one) for name, one in given.items()}
    return {name: one for name, one in found.items() if one}


def _readable_parameter(value: object, levels: int = 8) -> str:
    """Return a parameter without the quotes and brackets of JSON, of at most so many levels."""
    if not levels:
        return "…"
    if isinstance(value, str) and value.startswith(("[", "{")):
        try:
            value = loads(value)
        except DeltaError:  # another writer's own form
            return str(value)
    if isinstance(value, list):
        return ", ".join(_readable_parameter(one, levels - 1) for one in value)
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else dumps(value).decode()
    if "actionType" in value:  # a clause of MERGE
        condition = value.get("predicate")
        return f"{value['actionType']} if {condition}" if condition else str(value["actionType"])
    return ", ".join(
        f"{name}={_readable_parameter(one, levels - 1)}" for name, one in value.items()
    )


def changes_of_commit(metrics: object) -> str:
    """Return the numbers of rows that a commit changed, or else those of files.

    Args:
        metrics: the metrics in `commitInfo`, which any writer may have written.
    """
    if not isinstance(metrics, Mapping):
        return ""
    found = {name: int(text) for name, text in metrics.items() if str(text).isdecimal()}
    rows = [
        (found[name], verb) for names, verb in _ROWS_OF_COMMITS for name in names if name in found
    ]
    if not rows and "numOutputRows" in found:
        rows = [(found["numOutputRows"], "written")]
    parts = [f"{counted(number, 'row')} {verb}" for number, verb in rows if number]
    if not parts:
        files = [(found.get(name), verb) for name, verb in _FILES_OF_COMMITS]
        parts = [f"{counted(number, 'file')} {verb}" for number, verb in files if number]
    return ", ".join(parts) or ("0 rows" if rows else "")
