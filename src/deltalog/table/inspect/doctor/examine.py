"""Run checks on a table, even if it cannot be opened.

This module defines the list of checks and their order.

Protocol: none
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from deltalog._util.clock import now_ms as present_ms
from deltalog._util.readable import FILE, counted
from deltalog.errors import DeltaError, InvalidInputError, InvalidMetadataError
from deltalog.log.listing import list_log
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations.optimize.compact import CompactionThresholds, count_mergeable
from deltalog.protocol import column_mapping
from deltalog.protocol.actions.properties import PROPERTIES, canonical_key, canonical_value
from deltalog.protocol.features.declarations import (
    CHECK,
    INVARIANT,
    Check,
    generation_expressions,
    table_checks,
)
from deltalog.protocol.features.registry import FEATURES, find_feature
from deltalog.protocol.features.rule_sql import in_words_of_spark, is_of_delta_rs
from deltalog.protocol.features.schema_needs import has_invariants
from deltalog.protocol.features.support import (
    DELTA_SPARK,
    MAPPED_BY_VERSION,
    asked_features,
    check_readable,
    check_writable,
    engines_for,
    engines_misled,
    misplaced_reader_features,
    shown_engines,
)
from deltalog.schema.columns import walk
from deltalog.table.inspect.doctor.files import (
    check_keys,
    check_orphans,
    check_partition_values,
    check_paths,
    check_row_ids,
    check_statistics,
    check_stored_pages,
    check_vectors,
)
from deltalog.table.inspect.doctor.log import (
    check_checkpoints,
    check_checksum,
    check_commits,
    check_compactions,
    check_gaps,
    check_hint,
    check_length,
    check_live_paths,
)
from deltalog.table.inspect.doctor.report import Finding, Patient, Report, Severity, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deltalog.log.context import TableContext
    from deltalog.protocol.configuration import TableConfiguration

    CheckFunction = Callable[[Patient], Iterator[Finding]]


# --- Checks of protocol, metadata and schema, and of the engines that support them


_MAX_COLUMN_ID: Final = "delta.columnMapping.maxColumnId"
_GENERATED: Final = "GENERATED"
_KINDS: Final = {
    CHECK: "CHECK constraint",
    INVARIANT: "invariant of column",
    _GENERATED: "generated column",
}


def check_access(patient: Patient) -> Iterator[Finding]:
    """Report whether deltalog can read and write the table, and which other engines can."""
    snapshot = patient.snapshot
    configuration, table = snapshot.configuration, patient.store.root
    has_tail = snapshot.log_tail is not None
    try:
        check_readable(configuration, table=table, has_log_tail=has_tail)
        check_writable(configuration, table=table, has_log_tail=has_tail)
    except DeltaError as error:
        yield Finding(check="access", severity=Severity.WARNING, message=str(error))
    foreign: list[Finding] = []
    try:
        foreign += _rules_of_delta_rs(configuration)
    except DeltaError as error:
        yield Finding(check="access", severity=Severity.WARNING, message=str(error))
    yield from foreign
    yield from _other_engines(configuration, cannot_write={DELTA_SPARK} if foreign else set())


def _other_engines(
    configuration: TableConfiguration, *, cannot_write: set[str]
) -> Iterator[Finding]:
    """Report which other engines read and write the table, and which would do so wrongly."""
    is_mapped = configuration.column_mapping_mode is not column_mapping.Mode.NONE
    names = asked_features(
        configuration.protocol,
        is_mapped=is_mapped,
        has_invariants=has_invariants(configuration.schema),
    )
    but = "; before, see property-spelling" if any(check_spellings(configuration)) else ""
    for verb in ("read", "write"):
        writing = verb == "write"
        engines = engines_for(names, writing=writing)
        if writing:
            engines = tuple(one for one in engines if one not in cannot_write)
        named = shown_engines(engines) or "none that is known"
        yield Finding(
            check="access",
            severity=Severity.INFO,
            message=f"other engines that {verb} it: {named}{but}",
        )
        misled = engines_misled(names, writing=writing)
        if not misled:
            continue
        is_curable = not writing and MAPPED_BY_VERSION in names
        cure = "alter.upgrade_protocol(3, 7): they refuse the table then"
        yield Finding(
            check="access",
            severity=Severity.WARNING if is_curable else Severity.INFO,
            message=f"{shown_engines(misled)} would {verb} wrong rows without an error",
            advice=cure if is_curable else f"{verb} it by another engine",
        )


def _rules_of_delta_rs(configuration: TableConfiguration) -> Iterator[Finding]:
    """Report constraints and expressions that delta-rs stored in SQL that Spark cannot parse."""
    schema = configuration.schema
    for rule in _rules(configuration):
        if not is_of_delta_rs(rule.text, schema):
            continue
        yield Finding(
            check="access",
            severity=Severity.WARNING,
            message=f"{DELTA_SPARK} cannot write it: the {_KINDS[rule.kind]} {rule.name!r} "
            f"({rule.text}) is in the SQL of delta-rs; Spark reads names in double quotes as "
            "strings, and has neither get_field nor arrow_cast",
            advice=_advice_to_respell(rule, in_words_of_spark(rule.text, schema)),
        )


def _rules(configuration: TableConfiguration) -> Iterator[Check]:
    """Yield constraints, invariants and generation expressions: writers evaluate them per row."""
    properties, schema = configuration.metadata.configuration, configuration.schema
    yield from table_checks(properties, schema, invariants=configuration.supports("invariants"))
    if configuration.supports("generatedColumns"):
        for name, text in generation_expressions(schema).items():
            yield Check(name=name, text=text, kind=_GENERATED)


def _advice_to_respell(rule: Check, text: str | None) -> str:
    spelt = "in Spark's SQL" if text is None else f"as {text}"
    if rule.kind != CHECK:
        return f"Spark can write a new table that has it {spelt}"
    drop = f"alter.drop_constraint({rule.name!r})"
    if text is None:
        return f"{drop}, and add it {spelt}"
    return f"{drop}, then alter.add_constraint({{{rule.name!r}: {text!r}}})"


def check_features(patient: Patient) -> Iterator[Finding]:
    """Check for features that are unknown, in only one of the two lists, or lack another feature.

    A feature for readers must be in both `readerFeatures` and `writerFeatures`.
    """
    configuration = patient.snapshot.configuration
    for name in misplaced_reader_features(configuration.protocol):
        yield Finding(
            check="feature-misplaced",
            severity=Severity.WARNING,
            message=f"{name} is in one list of features only; readers and writers must support it",
            advice=f"strict readers refuse the table; {_advice_to_add(name)} writes both lists",
        )
    for spelled in configuration.features.values():
        feature = find_feature(spelled)
        if feature is None:
            yield Finding(
                check="feature-unknown",
                severity=Severity.WARNING,
                message=f"this deltalog does not know the table feature {spelled}",
                advice="a newer deltalog may support it",
            )
            continue
        for needed in feature.requires:
            if not configuration.supports(needed):
                yield Finding(
                    check="feature-needs",
                    severity=Severity.WARNING,
                    message=f"{spelled} needs the table feature {needed}, which is not supported",
                    advice=_advice_to_add(needed),
                )
    for name, feature in FEATURES.items():
        if feature.enabled_by is None or configuration.supports(name):
            continue
        if feature.enabled_by(configuration.properties, configuration.schema):
            yield Finding(
                check="feature-unsupported",
                severity=Severity.WARNING,
                message=f"properties or schema require {name}, but the protocol does not have it",
                advice="it has no effect in one engine and breaks another: "
                f"{_advice_to_add(name)}, or remove the property",
            )


def _advice_to_add(feature: str) -> str:
    return f"alter.add_feature({feature!r}, allow_protocol_versions_increase=True)"


def check_properties(patient: Patient) -> Iterator[Finding]:
    """Check for unknown properties, invalid values, and values in an unusual spelling."""
    yield from check_spellings(patient.snapshot.configuration)
    for key, text in patient.snapshot.metadata.configuration.items():
        try:
            known = PROPERTIES.get(canonical_key(key))
            if known is not None:
                known.value_of(text)
        except InvalidMetadataError as error:
            yield Finding(
                check="property-value",
                severity=Severity.WARNING,
                message=str(error),
                advice=f"set it to a valid value, or remove it: {_advice_to_unset(key)}",
            )
        except InvalidInputError as error:
            yield Finding(
                check="property-unknown",
                severity=Severity.INFO,
                message=str(error),
                advice="it has no effect in deltalog; if no other engine uses it, remove it: "
                f"{_advice_to_unset(key)}",
            )


def check_spellings(configuration: TableConfiguration) -> Iterator[Finding]:
    """Check for values such as `TRUE`, which some engines do not understand and ignore."""
    for key, text in configuration.metadata.configuration.items():
        known = PROPERTIES.get(key)
        if known is None or not known.settable:
            continue
        with contextlib.suppress(InvalidMetadataError):
            usual = canonical_value(known, text)
            if usual != text:
                yield Finding(
                    check="property-spelling",
                    severity=Severity.WARNING,
                    message=f"table property {key} is {text!r}; engines that know only {usual!r}, "
                    "such as deltalake, ignore it, and then read or change the table wrongly",
                    advice=f"alter.set_table_properties({{{key!r}: {usual!r}}})",
                )


def _advice_to_unset(key: str) -> str:
    return f"alter.unset_table_properties({key!r}, raise_if_not_exists=False)"


def check_schema(patient: Patient) -> Iterator[Finding]:
    """Check partition columns and column mapping against the schema."""
    configuration = patient.snapshot.configuration
    try:
        _ = configuration.partition_schema
        _ = configuration.physical_schema
    except DeltaError as error:
        yield Finding(check="schema", severity=Severity.ERROR, message=str(error))
        return
    if configuration.column_mapping_mode is column_mapping.Mode.NONE:
        return
    ids = [column_mapping.field_id(field) or 0 for _, field in walk(configuration.schema)]
    stated = configuration.metadata.configuration.get(_MAX_COLUMN_ID, "")
    if not stated.isdecimal() or int(stated) < max(ids, default=0):
        yield Finding(
            check="schema",
            severity=Severity.WARNING,
            message=f"{_MAX_COLUMN_ID} is {stated or 'missing'}, but a column has the id "
            f"{max(ids, default=0)}",
            advice="the next column could get an id that is in use; add no column with engines "
            "that rely on it",
        )


def check_small_files(patient: Patient) -> Iterator[Finding]:
    """Check for many small files, which `compact` would merge."""
    snapshot = patient.snapshot
    least = CompactionThresholds().min_files
    if snapshot.num_files < least:
        return
    num_files, num_bins = count_mergeable(snapshot)
    if num_files - num_bins >= least:
        yield Finding(
            check="small-files",
            severity=Severity.INFO,
            message=f"{num_files} small files would fit into {counted(num_bins, FILE)}; each read "
            "opens all of them",
            advice="optimize.compact()",
        )


# --- Running the checks


# Checks that need only a listing of the log. They run even if the table cannot be opened.
_OF_LOGS: Final[Mapping[str, CheckFunction]] = {
    "gaps": check_gaps,
    "commits": check_commits,
    "last-checkpoint": check_hint,
    "checkpoints": check_checkpoints,
    "compactions": check_compactions,
}
# Checks that need a snapshot. They run only if the table can be opened.
_OF_TABLES: Final[Mapping[str, CheckFunction]] = {
    "length": check_length,
    "access": check_access,
    "features": check_features,
    "properties": check_properties,
    "schema": check_schema,
    "checksum": check_checksum,
    "live-paths": check_live_paths,
    "partition-values": check_partition_values,
    "row-ids": check_row_ids,
    "paths": check_paths,
    "vectors": check_vectors,
    "statistics": check_statistics,
    "pages": check_stored_pages,
    "keys": check_keys,
    "small-files": check_small_files,
    "orphans": check_orphans,
}
CHECKS: Final = (*_OF_LOGS, *_OF_TABLES)


def examine(
    context: TableContext,
    *,
    snapshot: Snapshot | None = None,
    checks: Sequence[str] | None = None,
    num_samples: int = 8,
    num_commits: int = 1000,
    now_ms: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Run all checks, or some of them, on a table. The table is not changed.

    Args:
        context: context of the table.
        snapshot: the version to examine; None opens the latest.
        checks: names of `CHECKS`; None means all.
        num_samples: number of data files, and of deletion vectors, to read as a sample.
        num_commits: number of the newest commits to read.
        now_ms: current time in milliseconds since 1970, UTC; None means the system time.
        progress: called after each check with the number of finished checks and the total.

    Raises:
        TableNotFoundError: the table has no log.
        InvalidInputError: there is no check with one of the names.

    Cost: two listings. Reads the newest commits, the newest checkpoints, and the sampled files.
    """
    unknown = [name for name in checks or () if name not in CHECKS]
    if unknown:
        raise InvalidInputError(
            f"there is no check {unknown[0]!r}; the checks are {', '.join(CHECKS)}"
        )
    findings: list[Finding] = []
    store = context.store
    listing = list_log(store, from_version=0, log_tail=context.log_tail)
    if snapshot is None:
        try:
            snapshot = load_snapshot(context)
        except DeltaError as error:
            if listing.latest_version is None:
                raise
            findings.append(_failed("open", error))
    patient = Patient(
        store=store,
        listing=listing,
        opened=snapshot,
        now_ms=present_ms() if now_ms is None else now_ms,
        num_samples=num_samples,
        num_commits=num_commits,
    )
    known = _OF_LOGS if snapshot is None else {**_OF_LOGS, **_OF_TABLES}
    wanted = [name for name in known if checks is None or name in checks]
    for number, name in enumerate(wanted, 1):
        try:
            findings += known[name](patient)
        except DeltaError as error:
            findings.append(_failed(name, error))
        if progress is not None:
            progress(number, len(wanted))
    return Report(
        table=store.root,
        version=None if snapshot is None else snapshot.version,
        findings=in_order(findings),
        checks=tuple(wanted),
    )


def _failed(name: str, error: DeltaError) -> Finding:
    notes = "; ".join(getattr(error, "__notes__", ()))
    message = f"{error}; {notes}" if notes else str(error)
    return Finding(check=name, severity=Severity.ERROR, message=message)
