"""Promises of the threat model, and how releases are built."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
PROMISED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(?:\.\d+)*")
HASHED = re.compile(r"([\w.-]+)==([\w.]+)((?: --hash=sha256:[0-9a-f]{64})+)")
RELEASE = ROOT / ".github" / "workflows" / "release.yml"


@cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def steps(workflow: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Jobs with each of their steps."""
    jobs: dict[str, Any] = yaml.safe_load(workflow.read_text("utf-8"))["jobs"]
    return [(job, step) for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize(("path", "name"), PROMISED)
def test_every_promise_has_a_test(path: str, name: str) -> None:
    assert name in functions_of(path)


def test_every_row_of_promises_names_a_test() -> None:
    assert len(PROMISED) > 40
    inside = False
    for line in PAGE.splitlines():
        inside = line == "| promise | test |" or (inside and line.startswith("|"))
        if inside and not line.startswith(("| promise", "|---")):
            assert re.search(r"\| `tests/[\w/]+\.py::\w+`", line), line


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(workflow: Path) -> None:
    used = re.findall(r"uses:\s*(.*)", workflow.read_text("utf-8"))
    assert len(used) == sum("uses" in step for _, step in steps(workflow)) > 0
    for one in used:
        assert PINNED.fullmatch(one), one


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_ask_for_no_more_rights_than_they_need(workflow: Path) -> None:
    whole = yaml.safe_load(workflow.read_text("utf-8"))
    assert whole["permissions"] == {}
    for job, step in steps(workflow):
        rights = job["permissions"]
        publishes = "publish" in str([one.get("uses") for one in job["steps"]])
        assert rights == (
            {"id-token": "write", "attestations": "write"} if publishes else {"contents": "read"}
        )
        if str(step.get("uses", "")).startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_a_release_is_built_by_tools_with_known_hashes() -> None:
    lines = (ROOT / "requirements-release.txt").read_text("utf-8").splitlines()
    found = [HASHED.fullmatch(line) for line in lines if not line.startswith("#")]
    assert all(found)
    versions = {match[1]: match[2] for match in found if match}
    assert "hatchling" in versions
    constraints = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert {f"{name}=={version}" for name, version in versions.items()} <= set(constraints)
    installs = [step["run"] for _, step in steps(RELEASE) if "pip" in str(step.get("run"))]
    assert installs
    assert all("--require-hashes" in run and "--only-binary :all:" in run for run in installs)


def test_no_stored_secret_publishes_a_release() -> None:
    text = RELEASE.read_text("utf-8")
    assert "secrets." not in text
    assert "password" not in text
    (publish,) = [
        job for job, step in steps(RELEASE) if "gh-action-pypi-publish" in str(step.get("uses"))
    ]
    assert publish["permissions"]["id-token"] == "write"
    assert publish["environment"] == "release"
    # What has the right to publish runs no code of the repository and installs nothing.
    assert not any("run" in step or "checkout" in step["uses"] for step in publish["steps"])
