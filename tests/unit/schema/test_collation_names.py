from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.schema.types import canonical, collation_named, name_in_sql, versioned


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("UTF8_BINARY", "spark.UTF8_BINARY"), ("utf8_lcase", "spark.UTF8_LCASE"),
        ("Utf8_Lcase_Rtrim", "spark.UTF8_LCASE_RTRIM"), ("spark.UTF8_LCASE", "spark.UTF8_LCASE"),
        ("SYSTEM.BUILTIN.UTF8_BINARY_RTRIM", "spark.UTF8_BINARY_RTRIM"),
        ("unicode", "icu.UNICODE"), ("UNICODE_CI_AI", "icu.UNICODE_CI_AI"),
        ("de", "icu.de"), ("DE_AI_CI_RTRIM", "icu.de_CI_AI_RTRIM"), ("de_CS_AS", "icu.de"),
        ("sr_latn_srb_ci", "icu.sr_Latn_SRB_CI"), ("icu.en_USA", "icu.en_USA"),
    ],
)  # fmt: skip
def test_names_in_any_spelling(name: str, identifier: str) -> None:
    assert collation_named(name) == identifier
    assert collation_named(name_in_sql(identifier)) == identifier


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("UTF8_LCAS", "UTF8_LCASE"), ("utf8_binary_lcase", None), ("UTF8_LCASE_LTRIM", None),
        ("UNICODE_IC", "UNICODE_CI"), ("de_CI_CS", None), ("de_CI_CI", None), ("xx", None),
        ("", None), ("other.UTF8_LCASE", None), ("de_DE", None), ("latin1_swedish_ci", None),
    ],
)  # fmt: skip
def test_what_is_no_name(name: str, meant: str | None) -> None:
    with pytest.raises(InvalidInputError, match="there is no collation") as caught:
        collation_named(name)
    assert meant is None or f"did you mean {meant!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [("SPARK.utf8_lcase", "spark.UTF8_LCASE"), ("ICU.de_DE", "ICU.de_DE"), ("odd", "odd")],
)
def test_identifiers_in_one_spelling(identifier: str, expected: str) -> None:
    assert canonical(identifier) == expected


def test_statistics_go_by_version() -> None:
    assert versioned("spark.UTF8_LCASE") == "spark.UTF8_LCASE.78.3"
