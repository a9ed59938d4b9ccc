"""The text of a configuration file as values: YAML (which includes JSON) or TOML.

Owns that a text means the same to every reader: a key that is there twice is refused, of which
parsers take the one or the other. No error shows a value, which may be a secret.
"""

from __future__ import annotations

import tomllib
from functools import cache
from typing import TYPE_CHECKING, Any

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from pathlib import Path


def read_document(path: Path) -> Any:
    """Return the values in a `.toml` file, or in one of any other name, which is YAML.

    Raises:
        InvalidInputError: the file cannot be read or parsed, or has a key twice.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"cannot read the configuration {path}: {error}") from None
    parse = _parse_toml if path.suffix.lower() == ".toml" else _parse_yaml
    try:
        return parse(path, text)
    except RecursionError:
        raise InvalidInputError(f"{path}: nested too deeply") from None


def _parse_toml(path: Path, text: str) -> Any:
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOML's own error is one
        raise InvalidInputError(f"{path}: {error}") from None


def _parse_yaml(path: Path, text: str) -> Any:
    try:
        import yaml  # noqa: PLC0415 -- not needed for TOML
    except ModuleNotFoundError:
        raise InvalidInputError(
            "reading YAML needs PyYAML: pip install 'deltalog[sharing]', or write TOML"
        ) from None
    try:
        return yaml.load(text, _strict_loader())  # noqa: S506 -- a subclass of the safe one
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        raise InvalidInputError(
            f"{path}{place}: {getattr(error, 'problem', None) or 'no YAML'}"
        ) from None


@cache
def _strict_loader() -> Any:
    """Return YAML's safe loader, with errors in place of what it leaves to chance."""
    import yaml  # noqa: PLC0415 -- not needed for TOML

    class StrictLoader(yaml.SafeLoader):
        """Loads plain values; every key is there once."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
            seen = set()
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if not isinstance(key, yaml.ScalarNode):
                    raise _fault(key, "a key is no text")
                # `<<` merges: keys of its own override the merged ones, which is its purpose.
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    raise _fault(key, f"the key {key.value!r} is there twice")
                seen.add(key.value)
            return super().construct_mapping(node, deep=deep)

        def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
            try:
                return super().construct_object(node, deep=deep)
            except (ValueError, OverflowError):
                # Such as the date 2027-13-45, or a number of five thousand digits.
                raise _fault(node, "a value has the form of a time or number and is none") from None
            except (TypeError, AttributeError, KeyError, IndexError):
                # Explicit tags on values of another form: `!!int ""`, `!!timestamp x`.
                raise _fault(node, "a value does not have the form of its type") from None

    def _fault(node: Any, problem: str) -> Exception:
        error: Exception = yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return error

    return StrictLoader
