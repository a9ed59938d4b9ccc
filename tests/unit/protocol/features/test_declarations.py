from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import deltalog
from deltalog.errors import InvalidInputError
from deltalog.protocol.features.declarations import check_declarations, dependents
from deltalog.schema import Field, StructType


def generated(name: str, text: str) -> Field:
    return Field(name, "long", metadata={"delta.generationExpression": text})


X = Field("x", "long")


@pytest.mark.parametrize(
    ("fields", "configuration", "says"),
    [
        ([X, generated("g", "x +")], {}, "g"),
        ([X, generated("g", "gone + 1")], {}, "gone"),
        ([X, generated("g", "rand()")], {}, "g"),
        ([X, Field("b", "byte", metadata={"CURRENT_DEFAULT": "300"})], {}, "b"),
        ([X], {"delta.constraints.c": "x >"}, "c"),
        ([X], {"delta.constraints.c": "gone > 1"}, "gone"),
        ([X], {"delta.constraints.c": "x + 1"}, "c"),
    ],
)
def test_new_rules_that_no_writer_could_keep_are_refused(
    fields: list[Field], configuration: dict[str, str], says: str
) -> None:
    schema, before = StructType(fields), StructType([X])
    with pytest.raises(InvalidInputError, match=says):
        check_declarations(configuration, schema, known=before, known_configuration={})
    if says != "gone":  # what is there already, and as it was, is another engine's
        check_declarations(configuration, schema, known=schema, known_configuration=configuration)


def test_a_rule_is_new_again_when_a_column_that_it_names_changes() -> None:
    before = StructType([X, generated("g", "x + 1")])
    after = StructType([Field("x", "boolean"), generated("g", "x + 1")])
    rules = {"delta.constraints.c": "year(x) > 1"}
    check_declarations(rules, before, known=before, known_configuration=rules)
    with pytest.raises(InvalidInputError):
        check_declarations({}, after, known=before)
    with pytest.raises(InvalidInputError, match="'c'"):
        check_declarations(
            rules,
            StructType([Field("x", "boolean")]),
            known=StructType([X]),
            known_configuration=rules,
        )


def test_rules_that_delta_rs_has_stored_are_kept_and_no_new_ones_made() -> None:
    """A column that they name may change; a new rule must be one for Spark, too."""
    rules = {"delta.constraints.c": '"homeTeam" > 0'}
    column, twice = Field("homeTeam", "long"), generated("g", '"homeTeam" * 2')
    before = StructType([column, twice])
    after = StructType([replace(column, metadata={"comment": "c"}), twice])
    check_declarations(rules, after, known=before, known_configuration=rules)
    assert [rule.needs(("homeTeam",)) for rule in dependents(rules, before)] == [True, True]
    for known, configuration in ((before, {}), (StructType([column]), rules)):
        with pytest.raises(InvalidInputError, match="double quotes mean a string"):
            check_declarations(rules, after, known=known, known_configuration=configuration)


@pytest.mark.protocol("CON-07")
def test_rules_name_columns_in_any_case_and_depth() -> None:
    schema = StructType(
        [
            Field("S", StructType([Field("x", "long"), Field("y", "long")])),
            Field("g", "long", metadata={"delta.generationExpression": "s.X + 1"}),
            Field("h", "long", metadata={"delta.generationExpression": "no sql at all ("}),
        ]
    )
    (rule,) = dependents({}, schema)
    assert rule.owner == "g"
    assert rule.needs(("S",))
    assert rule.needs(("S", "x"))
    assert not rule.needs(("S", "y"))
    assert not rule.needs(("g",))


def test_a_default_without_bound_is_refused_soon(tmp_path: Path) -> None:
    text = "levenshtein(repeat('a', 100000), repeat('b', 100000))"
    with pytest.raises(InvalidInputError, match="needs more than"):
        deltalog.sql(
            f"CREATE TABLE delta.`{tmp_path}` (v INT DEFAULT {text}) USING DELTA "
            "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
        )
