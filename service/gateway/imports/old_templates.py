"""Placeholders of version 1, ``{{name}}``, in the form of version 2."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

_OLD = re.compile(r"\{\{([^{}]+)\}\}")
_SECRET = re.compile(r"\$\{(?!env\.)([A-Za-z_][A-Za-z0-9_]*)\}")
_FIRST_STEP = re.compile(r"[^.\[]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def convert_template(template: Any) -> Any:
    """Return any JSON with ``{{input.name}}`` in place of ``{{name}}`` in its texts."""
    if isinstance(template, str):
        return _OLD.sub(lambda found: "{{" + _new_path(found[1].strip()) + "}}", template)
    if isinstance(template, dict):
        return {key: convert_template(value) for key, value in template.items()}
    if isinstance(template, list):
        return [convert_template(value) for value in template]
    return template


def escape_template(value: Any) -> Any:
    """Return any JSON whose texts mean the same as templates: ``{{!`` in place of ``{{``."""
    if isinstance(value, str):
        return value.replace("{{", "{{!")
    if isinstance(value, dict):
        return {key: escape_template(each) for key, each in value.items()}
    if isinstance(value, list):
        return [escape_template(each) for each in value]
    return value


def convert_secrets(text: str) -> str:
    """Return a text with ``${env.X}`` in place of ``${X}``."""
    return _SECRET.sub(r"${env.\1}", text)


def placeholders_of(template: Any) -> Iterator[str]:
    """Yield the first step of each placeholder of version 1, such as ``user`` of ``{{user.name}}``."""
    if isinstance(template, str):
        for found in _OLD.finditer(template):
            path = found[1].strip().removeprefix("input.")
            if (first := _FIRST_STEP.match(path)) is not None:
                yield first[0]
    elif isinstance(template, dict | list):
        for value in template.values() if isinstance(template, dict) else template:
            yield from placeholders_of(value)


def undeclared(templates: Sequence[Any], schema: Any) -> list[str]:
    """The names of placeholders that the properties of an input schema lack; none if it has no properties."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return []
    names = dict.fromkeys(name for template in templates for name in placeholders_of(template))
    return [name for name in names if name not in properties and _NAME.fullmatch(name) and name != "input"]


def _new_path(path: str) -> str:
    return path if path == "input" or path.startswith(("input.", "input[")) else f"input.{path}"
