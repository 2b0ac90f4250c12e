"""The parts of a JSON Schema (2020-12) and where its references lead."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

_ONE = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
DEFINITIONS = frozenset({"$defs", "definitions"})
REFERENCES = ("$ref", "$dynamicRef")
SchemaPath = tuple[str | int, ...]


def subschemas(schema: Any) -> Iterator[tuple[SchemaPath, Any]]:
    """The schemas directly inside a schema, with their places; what is no object has none."""
    if not isinstance(schema, dict):
        return
    for keyword in _ONE:
        if isinstance(schema.get(keyword), dict):
            yield (keyword,), schema[keyword]
    for keyword in _LISTS:
        if isinstance(schema.get(keyword), list):
            for index, inner in enumerate(schema[keyword]):
                yield (keyword, index), inner
    for keyword in _NAMED:
        if isinstance(schema.get(keyword), dict):
            for name, inner in schema[keyword].items():
                yield (keyword, name), inner


def all_schemas(schema: Any) -> Iterator[tuple[SchemaPath, Any]]:
    """A schema and all schemas inside it, with their places; the nesting may be as deep as the caller allows."""
    waiting: list[tuple[SchemaPath, Any]] = [((), schema)]
    while waiting:
        path, each = waiting.pop()
        yield path, each
        waiting += [((*path, *below), inner) for below, inner in subschemas(each)]


class References:
    """Finds the schemas that the references of a schema lead to.

    Args:
        root: the whole schema.
    """

    def __init__(self, root: Any) -> None:
        self._root = root
        self._anchors: dict[str, Any] = {}
        self._targets: dict[str, Any] = {}
        for _, each in all_schemas(root):
            if isinstance(each, dict):
                for keyword in ("$anchor", "$dynamicAnchor"):
                    if isinstance(name := each.get(keyword), str):
                        self._anchors.setdefault(name, each)

    def target(self, reference: Any) -> Any:
        """The schema of a reference that begins with ``#``; None if there is none."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        if reference not in self._targets:
            self._targets[reference] = self._find(reference)
        return self._targets[reference]

    def _find(self, reference: str) -> Any:
        if reference in {"#", "#/"}:
            return self._root if reference == "#" else None
        if not reference.startswith("#/"):
            return self._anchors.get(reference[1:])
        found: Any = self._root
        for step in reference[2:].split("/"):
            key = _unescaped(step)
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                return None
        return found

    def targets(self, schema: Any) -> list[Any]:
        """The schemas that the references of one schema lead to."""
        if not isinstance(schema, dict):
            return []
        found = [self.target(schema[keyword]) for keyword in REFERENCES if keyword in schema]
        return [each for each in found if each is not None]


def _unescaped(step: str) -> str:
    return unquote(step).replace("~1", "/").replace("~0", "~")
