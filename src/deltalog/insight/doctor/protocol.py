"""Check protocol, metadata and schema: are they consistent, and who can read and write the table.

Protocol: Table Features, Column Mapping, Change Metadata
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog import column_mapping
from deltalog.actions.properties import PROPERTIES
from deltalog.actions.settable import canonical_key
from deltalog.errors import DeltaError, InvalidInputError, InvalidMetadataError
from deltalog.features.computed_columns import generation_expressions
from deltalog.features.constraints import CHECK, INVARIANT, Check, table_checks
from deltalog.features.registry import FEATURES, OtherEngine, find_feature
from deltalog.features.rule_sql import in_words_of_spark, is_of_delta_rs
from deltalog.features.support import (
    check_readable,
    check_writable,
    engines_for,
    misplaced_reader_features,
)
from deltalog.insight.doctor.report import Finding, Severity
from deltalog.schema.columns import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.configuration import TableConfiguration
    from deltalog.insight.doctor.patient import Patient

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
    names = tuple(configuration.features.values())
    foreign: list[Finding] = []
    try:
        foreign += _rules_of_delta_rs(configuration)
    except DeltaError as error:
        yield Finding(check="access", severity=Severity.WARNING, message=str(error))
    yield from foreign
    for verb, writing in (("read", False), ("write", True)):
        engines = engines_for(names, writing=writing)
        if writing and foreign:
            engines = tuple(one for one in engines if one is not OtherEngine.SPARK)
        yield Finding(
            check="access",
            severity=Severity.INFO,
            message=f"other engines that {verb} it: {', '.join(engines) or 'none that is known'}",
        )


def _rules_of_delta_rs(configuration: TableConfiguration) -> Iterator[Finding]:
    """Report the rules that are stored in words of delta-rs, which Spark does not have."""
    schema = configuration.schema
    for rule in _rules(configuration):
        if not is_of_delta_rs(rule.text, schema):
            continue
        yield Finding(
            check="access",
            severity=Severity.WARNING,
            message=f"{OtherEngine.SPARK} cannot write it: the {_KINDS[rule.kind]} {rule.name!r} "
            f"({rule.text}) is in the words of delta-rs; Spark takes names in double quotes for "
            "texts, and knows no get_field and no arrow_cast",
            advice=_advice_to_respell(rule, in_words_of_spark(rule.text, schema)),
        )


def _rules(configuration: TableConfiguration) -> Iterator[Check]:
    """What writers evaluate for each row."""
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
    """Check for features that are unknown, in only one list, or lack a required feature."""
    configuration = patient.snapshot.configuration
    for name in misplaced_reader_features(configuration.protocol):
        yield Finding(
            check="feature-misplaced",
            severity=Severity.WARNING,
            message=f"{name} is in one list of features only; readers and writers must know it",
            advice="strict readers refuse the table; upgrade_table_protocol or add_feature "
            "writes both lists",
        )
    for spelled in configuration.features.values():
        feature = find_feature(spelled)
        if feature is None:
            yield Finding(
                check="feature-unknown",
                severity=Severity.WARNING,
                message=f"nobody here knows the table feature {spelled}",
                advice="a newer deltalog may",
            )
            continue
        for needed in feature.requires:
            if not configuration.supports(needed):
                yield Finding(
                    check="feature-needs",
                    severity=Severity.WARNING,
                    message=f"{spelled} needs the table feature {needed}, which is not supported",
                    advice=f"add_feature({needed!r})",
                )
    for name, feature in FEATURES.items():
        if feature.enabled_by is None or configuration.supports(name):
            continue
        if feature.enabled_by(configuration.properties, configuration.schema):
            yield Finding(
                check="feature-unsupported",
                severity=Severity.WARNING,
                message=f"properties or schema ask for {name}, and the protocol does not have it",
                advice=f"it has no effect in one engine and breaks another: add_feature({name!r}) "
                "or unset what asks for it",
            )


def check_properties(patient: Patient) -> Iterator[Finding]:
    """Check for unknown properties and invalid values."""
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
                advice="set it to a value that engines understand, or unset it",
            )
        except InvalidInputError as error:
            yield Finding(
                check="property-unknown",
                severity=Severity.INFO,
                message=str(error),
                advice="it has no effect here; unset it, or leave it to the engine that knows it",
            )


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
            message=f"{_MAX_COLUMN_ID} is {stated or 'missing'}, and a column has the id "
            f"{max(ids, default=0)}",
            advice="the next column could get an id that is in use; add no column with engines "
            "that go by it",
        )
