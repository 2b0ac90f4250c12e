"""The JSON Schemas that a model reads: those of the parameter models without what no model acts on."""

from typing import Any

_NULL = {"type": "null"}
_TEXT = {"type": "string"}
# The form of a text stands in its description in words, and the service's error names what is wrong with one.
_FORMS_OF_TEXTS = frozenset({"minLength", "maxLength", "pattern"})
_MANY_ITEMS = 64
_SCHEMAS_INSIDE = frozenset({"items", "additionalProperties"})


def compact_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that accepts and refuses what ``schema`` does, in about half of the tokens.

    It differs in two points. A parameter that is not given is left out, never ``null``. Length and pattern of
    texts, and upper bounds of long lists and objects, are left to the service. Titles and empty defaults are
    dropped, and references are written out. ``schema`` must not refer to itself.
    """
    return _undescribed(_compact(schema, schema.get("$defs", {})))


def without_descriptions(schema: dict[str, Any]) -> dict[str, Any]:
    """A compact schema with the same meaning that describes none of its parameters."""
    bare = _undescribed(schema)
    for key, value in bare.items():
        if key == "properties":
            bare[key] = {name: without_descriptions(inner) for name, inner in value.items()}
        elif key == "anyOf":
            bare[key] = [without_descriptions(inner) for inner in value]
        elif key in _SCHEMAS_INSIDE and isinstance(value, dict):
            bare[key] = without_descriptions(value)
    return bare


def _compact(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    compact: dict[str, Any] = {}
    for key, value in _written_out(schema, definitions).items():
        if _is_dropped(key, value):
            continue
        if key == "properties":
            compact[key] = {name: _compact(inner, definitions) for name, inner in value.items()}
        elif key == "anyOf":
            compact |= _merge_kinds([_undescribed(_compact(inner, definitions)) for inner in value])
        elif key in _SCHEMAS_INSIDE and isinstance(value, dict):
            compact[key] = _undescribed(_compact(value, definitions))
        elif key == "propertyNames":
            if names := _compact(value, definitions):
                compact[key] = names
        elif key == "description":
            compact[key] = " ".join(value.replace("``", "").split()).removesuffix(".")
        else:
            compact[key] = value
    return compact


def _merge_kinds(kinds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a text or an object as one schema, whose fields concern the object only; other kinds as they are."""
    others = [kind for kind in kinds if kind != _TEXT]
    if len(kinds) - len(others) == len(others) == 1 and others[0].get("type") == "object":
        return {**others[0], "type": ["string", "object"]}
    return {"anyOf": kinds}


def _written_out(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A schema with its definition in place of a reference, and without ``null`` among its kinds."""
    if "$ref" in schema:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        definition = definitions[schema["$ref"].rpartition("/")[2]]
        return _written_out({**definition, **beside}, definitions)
    kinds = schema.get("anyOf")
    if not isinstance(kinds, list) or _NULL not in kinds:
        return schema
    others = [kind for kind in kinds if kind != _NULL]
    beside = {key: value for key, value in schema.items() if key != "anyOf"}
    if len(others) > 1:
        return {"anyOf": others, **beside}
    return _written_out({**others[0], **beside}, definitions)


def _undescribed(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that is no property's: what describes it is the text of a Python class."""
    return {key: value for key, value in schema.items() if key != "description"}


def _is_dropped(key: str, value: Any) -> bool:
    return (
        key in _FORMS_OF_TEXTS
        or key in {"title", "$defs"}
        or (key == "default" and _is_empty(value))
        or (key == "additionalProperties" and value is True)
        or (key in {"maxItems", "maxProperties"} and value >= _MANY_ITEMS)
    )


def _is_empty(default: Any) -> bool:
    if isinstance(default, dict):
        return all(_is_empty(value) for value in default.values())
    return default is None or default is False or default in ("", [])
