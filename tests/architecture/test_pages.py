"""The documentation's pages agree with the code, the package's metadata and each other."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path
from typing import Final

import pytest
from docs.error_table import ADVICE, advice_of, error_index, public_errors
from docs.extras_table import PURPOSES, extras, extras_in_all, extras_table
from docs.generated import AT_BUILD, GENERATED, filled, part_names
from docs.method_table import GROUPS, public_members
from docs.outputs import find_blocks
from docs.public_names import join_costs, public_module
from docs.reference_index import with_contents
from docs.search_terms import QUESTIONS, SEARCH_TERMS, with_terms

import deltalog.errors
from deltalog import DeltaTable
from deltalog._util.store_kinds import split_option
from deltalog.errors import DeltaError
from deltalog.storage.stores.filesystems import files_class

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
_TOCTREE: Final = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
STORES: Final = DOCS / "how-to" / "stores-by-name.md"
PAGES: Final = [page for page in DOCS.rglob("*.md") if "_build" not in page.parts]
_USES_FLIGHTS: Final = re.compile(r"^```python\n.*?\bflights\b", re.MULTILINE | re.DOTALL)
_MAKE_THEIR_OWN: Final = {"index.md", "sharing-server.md", "sharing-operations.md"}


@pytest.mark.parametrize("name", GENERATED)
def test_the_generated_parts_of_a_page_are_those_of_today(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text("utf-8")
    assert part_names(text) == list(GENERATED[name])
    assert filled(name, text) == text, "`make outputs` writes the generated parts"


def test_pages_are_complete_without_a_build() -> None:
    parts = {**GENERATED, **AT_BUILD}
    for page in PAGES:
        text = page.read_text("utf-8")
        name = page.relative_to(DOCS).with_suffix("").as_posix()
        assert "{{ " not in text, f"{name} is filled in by the build only"
        assert part_names(text) == list(parts.get(name, {})), name
        assert not re.search(r"^<!-- end of \w+ -->\n\S", text, re.MULTILINE), name


@pytest.mark.parametrize("name", sorted(page.name for page in (DOCS / "how-to").glob("*.md")))
def test_a_guide_says_where_its_table_comes_from(name: str) -> None:
    text = (DOCS / "how-to" / name).read_text("utf-8")
    if name not in _MAKE_THEIR_OWN and _USES_FLIGHTS.search(text):
        beginning = text.split("\n## ")[0]
        assert "[the table `flights`](index.md#the-example-table)" in " ".join(beginning.split())


@pytest.mark.parametrize("name", sorted(page.name for page in (DOCS / "how-to").glob("*.md")))
def test_a_guide_says_first_what_it_is_about(name: str) -> None:
    paragraph = (DOCS / "how-to" / name).read_text("utf-8").split("\n\n")[1]
    assert not paragraph.startswith(("The examples use", "| ", "```", "<!--", "## "))


def test_each_public_error_has_meaning_cause_and_action() -> None:
    index = error_index()
    tree = re.findall(r"(\w+Error)\b", deltalog.errors.__doc__ or "")
    names = {error.__name__ for error in public_errors()}
    assert set(tree) - {"DeltaError"} <= names | set(dir(builtins)) | {
        base.__name__ for error in public_errors() for base in error.__mro__
    }
    for error in public_errors():
        section = index.partition(f"## {error.__name__}\n")[2].partition("\n## ")[0]
        assert f"code `{error.code}`" in section
        assert all(f"| {row} | " in section for row in ("Meaning", "Cause", "Action"))
        assert all(advice_of(error))


def test_advice_is_only_of_errors_that_exist() -> None:
    assert set(ADVICE) <= {error.__name__ for error in public_errors()}
    assert issubclass(public_errors()[0], DeltaError)


def test_install_and_readme_list_every_extra_and_what_all_leaves_out() -> None:
    names = set(extras()) - {"all"}
    assert set(PURPOSES) == names
    assert all(f"| `{name}` |" in extras_table() for name in names)
    readme = (ROOT / "README.md").read_text("utf-8")
    listed = readme.partition("Or only the extras that you need: ")[2].partition("\n\n")[0]
    included, _, left_out = listed.partition("`all` leaves out ")
    left_out = left_out.partition(".")[0]
    assert set(re.findall(r"`([\w-]+)`", included)) == extras_in_all()
    assert set(re.findall(r"`([\w-]+)`", left_out)) == names - extras_in_all()


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/install.md"])
def test_pages_agree_on_how_to_install(name: str) -> None:
    assert "\npip install '.[all]'" in (ROOT / name).read_text("utf-8")


def _options_of(text: str) -> list[dict[str, str]]:
    """The literal dictionaries of the blocks of a page."""
    nodes = [
        node
        for block in find_blocks(text)
        for node in ast.walk(ast.parse(block.code))
        if isinstance(node, ast.Dict)
        and all(isinstance(value, ast.Constant) for value in node.values)
    ]
    inline = [ast.parse(found, mode="eval").body for found in re.findall(r"`(\{[^`]+\})`", text)]
    return [ast.literal_eval(node) for node in [*nodes, *inline]]


def test_no_option_of_a_store_is_invented() -> None:
    options = _options_of(STORES.read_text("utf-8"))
    assert len(options) > 15
    for name in {name for one in options for name in one}:
        kind, short = split_option(name)
        assert kind is not None, name
        assert files_class(kind).option_names.get(short), name


@pytest.mark.parametrize(
    "term",
    [
        *("performance", "faq", "minio", "onelake", "schema evolution", "gdpr", "concurrency"),
        *(
            "upsert",
            "partition",
            "time travel",
            "vacuum",
            "polars",
            "pandas",
            "duckdb",
            "cdc",
            "lazy",
        ),
        *("change data feed", "unity catalog", "iceberg", "glossary", "transactions", "types"),
    ],
)
def test_what_people_search_for_is_in_a_title(term: str) -> None:
    titles = [
        title.lower()
        for page in PAGES
        if "adr" not in page.parts
        for title in re.findall(r"^#{1,2} (.+)$", page.read_text("utf-8"), re.MULTILINE)
    ]
    assert any(term in title for title in titles)


def test_each_term_of_the_search_leads_to_one_page() -> None:
    terms = [term for page in SEARCH_TERMS.values() for term in page]
    terms += [term for question in QUESTIONS.values() for term in question]
    assert len(terms) == len(set(terms))
    assert {"partition", "s3 credentials", "schema_mode", "delete duplicates"} <= set(terms)
    assert {"delete old files", "concurrent writes", "read version", "time zone"} <= set(terms)
    for page in SEARCH_TERMS:
        text = (DOCS / f"{page}.md").read_text("utf-8")
        assert with_terms(page, text).count("! single: ") == len(SEARCH_TERMS[page]), page
    answers = with_terms("faq", (DOCS / "faq.md").read_text("utf-8"))
    assert answers.count("! single: ") == sum(map(len, QUESTIONS.values()))


def test_the_reference_shows_names_as_programs_write_them() -> None:
    assert public_module("deltalog.sharing.client.table", "SharedTable") == "deltalog.sharing"
    assert not public_module("deltalog.data.scan", "Scan")
    reading = DOCS / "reference" / "reading.md"
    links = with_contents(reading, reading.read_text("utf-8")).split("On this page: ")[1]
    assert {"[`dask.read`]", "[`ray.read`]"} <= set(re.findall(r"\[`[\w.]+`\]", links))


def test_a_cost_of_two_lines_is_one_paragraph() -> None:
    lines = [
        "Return it.",
        "",
        "Cost: reads the log;",
        "    with rows, more.",
        "",
        "Args:",
        "    a: b",
    ]
    join_costs(lines)
    assert lines[2:] == ["Cost: reads the log;", "with rows, more.", "", "Args:", "    a: b"]


def test_the_overview_has_each_method_of_a_table_once() -> None:
    names = " ".join(GROUPS.values()).split()
    assert len(names) == len(set(names))
    assert set(names) == public_members()


def test_tab_completion_offers_the_methods_for_users() -> None:
    table = DeltaTable.create("memory://completion", "id long", mode="overwrite")
    offered = {name for name in dir(table) if not name.startswith("_")}
    assert offered == public_members() - set(GROUPS["For extensions of deltalog"].split())


def test_pages_for_developers_are_apart_from_guides() -> None:
    trees = _TOCTREE.findall((DOCS / "index.md").read_text("utf-8"))
    groups = {
        re.findall(r":caption: (.+)", tree)[0]: re.findall(r"^[\w/-]+$", tree, re.MULTILINE)
        for tree in trees
    }
    assert groups["Development"] == ["explanation", "extending", "adr/index"]
    assert list(groups)[:5] == ["Tutorial", "How-to", "Cookbook", "Reference", "Explanation"]
