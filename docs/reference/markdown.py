"""Texts of the code as Markdown: a paragraph, a cell, a type of JSON Schema."""

import json
import re
from typing import Any

_CODE = re.compile(r"(`[^`]*`)")


def prose(text: str) -> str:
    """One line of a description: code stays, and no other character has a meaning for Markdown."""
    line = " ".join(text.replace("``", "`").split())
    parts = _CODE.split(line)
    return "".join(part if part.startswith("`") else _escape(part) for part in parts)


def cell(text: str) -> str:
    """A description as a cell of a table."""
    return prose(text).replace("|", "\\|")


def _escape(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[").replace("](", "]\\(")


def kind(schema: dict[str, Any], link: str = "") -> str:
    """The type that a JSON Schema allows, in words.

    Args:
        schema: the schema of a value.
        link: what to put before the anchor of a component, such as ``wire-types.md``.
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}]({link}#{name.lower()})"
    if "const" in schema:
        return f"`{_json(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{_json(value)}`" for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(kind(each, link) for each in schema[key]))
    if "allOf" in schema:
        return kind(schema["allOf"][0], link)
    if schema.get("type") == "array":
        items = schema.get("items")
        return f"list of {kind(items, link)}" if items else "list"
    if isinstance(schema.get("type"), list):
        return " or ".join(schema["type"])
    values = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(values, dict) and values:
        return f"object of {kind(values, link)}"
    return str(schema.get("type", "any value"))


def bounds(schema: dict[str, Any]) -> str:
    """The limits of a value, in words; empty if it has none."""
    schema = next((each for each in schema.get("anyOf", []) if each.get("type") != "null"), {}) | schema
    found = [
        f"{words} {schema[key]:,}"
        for key, words in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
        )
        if key in schema
    ]
    for low, high, unit in (("minLength", "maxLength", "characters"), ("minItems", "maxItems", "entries")):
        if schema.get(low, 0) > 0:
            found.append("not empty" if schema[low] == 1 else f"at least {schema[low]:,} {unit}")
        if high in schema:
            found.append(f"at most {schema[high]:,} {unit}")
    return ", ".join(found)


def fields_table(schema: dict[str, Any], link: str = "") -> str:
    """The table of the fields of an object; empty if it has none."""
    properties = schema.get("properties", {})
    if not properties:
        return ""
    required = set(schema.get("required", ()))
    text = "| field | type | |\n|---|---|---|\n"
    for name, field in properties.items():
        notes = [cell(field.get("description", ""))]
        if limits := bounds(field):
            notes.append(f"Limits: {limits}.")
        if name in required:
            notes.append("**Required.**")
        elif not isinstance(default := field.get("default"), dict | list) and default not in (None, ""):
            notes.append(f"Default: `{_json(default)}`.")
        text += f"| `{name}` | {kind(field, link)} | {_sentences(notes)} |\n"
    return text


def _sentences(notes: list[str]) -> str:
    first, *others = notes
    ended = first if not first or first[-1] in ".:!?" else f"{first}."
    return " ".join(filter(None, [ended, *others]))


def _json(value: Any) -> str:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shown.replace("|", "\\|").replace("`", "'")
