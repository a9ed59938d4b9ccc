"""Requests and answers, checked against the OpenAPI documents of Unity Catalog.

The documents stand outside of the repository: in the folder that DELTALOG_SPEC names, or beside the
corpus. What they say of types in prose, their schemas do not: primitive types are bare texts, and
what a discriminator tells apart is put into the schema here. Members that no document knows are
refused, so that a misspelt one is found.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from openapi_schema_validator import OAS30Validator, OAS31Validator
from referencing import Registry
from referencing.jsonschema import DRAFT4, DRAFT202012

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "unity-catalog"


def specification() -> Path:
    """The folder of the documents; the test is skipped where it is not known."""
    found = []
    if named := os.environ.get("DELTALOG_SPEC"):
        found.append(Path(named) / FOLDER)
    if corpus := os.environ.get("DELTALOG_CORPUS"):
        found.append(Path(corpus).parent / "spec" / FOLDER)
    for folder in found:
        if (folder / "delta.yaml").is_file():
            return folder
    pytest.skip("neither DELTALOG_SPEC nor DELTALOG_CORPUS leads to the OpenAPI documents")


class ContractError(Exception):
    """A request or an answer that its document does not allow."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a document, found for a request."""

    contract: Contract
    name: str
    node: dict[str, Any]
    parameters: tuple[dict[str, Any], ...]
    path: Mapping[str, str]

    def check_request(self, query: Mapping[str, str], body: bytes) -> Any:
        """The body's value; raises where the request is not as the document says."""
        known = {one["name"]: one for one in self.parameters if one["in"] == "query"}
        if unknown := query.keys() - known.keys():
            raise ContractError(f"{self.name}: no parameter {sorted(unknown)}")
        for name, parameter in known.items():
            if parameter.get("required") and name not in query:
                raise ContractError(f"{self.name}: parameter {name} is missing")
            if name in query:
                kind = parameter["schema"].get("type")
                value: Any = query[name]
                if kind in {"integer", "boolean"}:
                    value = json.loads(value)
                self.contract.check(parameter["schema"], value, f"{self.name}: {name}")
        wanted = self.node.get("requestBody")
        if wanted is None:
            if body:
                raise ContractError(f"{self.name}: takes no body")
            return None
        schema = wanted["content"]["application/json"]["schema"]
        value = json.loads(body or b"null")
        self.contract.check(schema, value, f"{self.name}: request")
        return value

    def check_answer(self, status: int, value: Any) -> None:
        """Raises where an answer is not as the document says."""
        answers = self.node["responses"]
        if str(status) not in answers:
            if status in {429, 503, 404, 400, 401, 403, 409, 500}:
                return  # the older document has few errors, and any server may be busy
            raise ContractError(f"{self.name}: no answer {status}")
        content = self.contract.resolve(answers[str(status)]).get("content")
        if content is not None:
            schema = content["application/json"]["schema"]
            self.contract.check(schema, value, f"{self.name}: answer {status}")


class Contract:
    """One OpenAPI document."""

    def __init__(self, path: Path) -> None:
        self._tree = yaml.safe_load(path.read_text("utf-8"))
        is_new = str(self._tree["openapi"]).startswith("3.1")
        self._validator = OAS31Validator if is_new else OAS30Validator
        if is_new:
            _tell_apart(self._tree["components"]["schemas"])
            _add_newer(self._tree["components"]["schemas"])
            _close(self._tree["components"]["schemas"], "unevaluatedProperties")
        else:
            _close(self._tree["components"]["schemas"], "additionalProperties")
        dialect = DRAFT202012 if is_new else DRAFT4
        resource: Any = dialect.create_resource(self._tree)
        self._registry: Any = Registry().with_resource("urn:contract", resource)
        self._paths = [
            (re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template)), node)
            for template, node in self._tree["paths"].items()
        ]

    def find(self, method: str, path: str) -> Operation | None:
        """The operation of a request; None if the document has none."""
        for pattern, node in self._paths:
            match = pattern.fullmatch(path)
            if match is not None and method.lower() in node:
                operation = node[method.lower()]
                given = [*node.get("parameters", ()), *operation.get("parameters", ())]
                parameters = tuple(self.resolve(one) for one in given)
                name = operation["operationId"]
                return Operation(self, name, operation, parameters, match.groupdict())
        return None

    def resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        """What a reference refers to."""
        while "$ref" in node:
            found: Any = self._tree
            for part in node["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            node = found
        return node

    def check(self, schema: dict[str, Any], value: Any, where: str) -> None:
        """Raises where a value is not as a schema says."""
        absolute = _absolute(copy.deepcopy(schema))
        validator: Any = self._validator(absolute, registry=self._registry)
        errors = sorted(validator.iter_errors(value), key=lambda error: len(error.path))
        if errors:
            first = errors[0]
            at = ".".join(str(part) for part in first.absolute_path)
            raise ContractError(f"{where}: {at}: {first.message[:300]}")


@functools.cache
def contracts(folder: Path) -> tuple[Contract, Contract]:
    """The Delta API's document and the older one's."""
    return Contract(folder / "delta.yaml"), Contract(folder / "all.yaml")


def _absolute(node: Any) -> Any:
    if isinstance(node, dict):
        return {
            key: f"urn:contract{value}" if key == "$ref" else _absolute(value)
            for key, value in node.items()
        }
    return [_absolute(one) for one in node] if isinstance(node, list) else node


def _tell_apart(schemas: dict[str, Any]) -> None:
    """Make a choice of what a discriminator tells apart."""
    for name in [name for name, node in schemas.items() if "discriminator" in node]:
        base = f"{name}Base"
        found = schemas[base] = schemas.pop(name)
        reference, own = f"#/components/schemas/{name}", f"#/components/schemas/{base}"
        for node in schemas.values():
            for part in node.get("allOf", ()):
                if part.get("$ref") == reference:
                    part["$ref"] = own
        discriminator = found.pop("discriminator")
        member = discriminator["propertyName"]
        choices: list[dict[str, Any]] = [
            {
                "allOf": [
                    {"properties": {member: {"const": key}}, "required": [member]},
                    {"$ref": target},
                ]
            }
            for key, target in discriminator["mapping"].items()
            if key != "decimal"
        ]
        if name == "DeltaDataType":  # "primitive types are bare JSON strings"
            choices.append({"type": "string"})
        schemas[name] = {"oneOf": choices}


def _add_newer(schemas: dict[str, Any]) -> None:
    """Add what servers say since the document was stored (unitycatalog's pull request 1812)."""
    answer = schemas["DeltaLoadTableResponse"]["properties"]
    answer.setdefault(
        "allowed-maintenance-operations", {"type": "array", "items": {"type": "string"}}
    )


def _close(schemas: dict[str, Any], keyword: str) -> None:
    for name, node in schemas.items():
        is_object = "properties" in node and "additionalProperties" not in node
        if is_object and not name.endswith("Base") and node.get("type", "object") == "object":
            node[keyword] = False
