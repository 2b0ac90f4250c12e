"""The check of one value: its type and its limits."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, get_origin

from pydantic import SecretStr, TypeAdapter, ValidationError
from pydantic_settings import BaseSettings

from proofbox.service.app.config.hidden_values import hide_credentials, hide_in_message

_CHARS_MAX = 80
_BOUNDS = {
    "greater_than": ("must be greater than {gt}", "raise it"),
    "greater_than_equal": ("must be at least {ge}", "raise it"),
    "less_than": ("must be less than {lt}", "lower it"),
    "less_than_equal": ("must be at most {le}", "lower it"),
    "too_short": ("must have at least {min_length} items", "add some"),
    "string_too_short": ("must have at least {min_length} characters", "write more"),
    "string_too_long": ("must have at most {max_length} characters", "shorten it"),
    "string_pattern_mismatch": ("must have the form {pattern}", "correct it"),
    "literal_error": ("must be {expected}", "choose one of them"),
    "extra_forbidden": ("is not a name that it may have", "correct or remove it"),
    "missing": ("is missing", "add it"),
}
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "path": "a path, as text",
    "tuple": "a list",
    "dict": "a table",
    "model": "a table",
}
_UNIONS = frozenset({"IPv4Network", "IPv6Network", "int", "float", "path"})
_EXAMPLES: dict[Any, str] = {tuple: 'a list such as ["a", "b"]', dict: 'an object such as {"a": …}'}


def is_secret(model: type[BaseSettings], setting: str) -> bool:
    """Whether the value of a setting must not be shown."""
    return model.model_fields[setting].annotation is SecretStr


def is_json(model: type[BaseSettings], setting: str) -> bool:
    """Whether the value of a setting is JSON in the environment: a list or an object."""
    return get_origin(model.model_fields[setting].annotation) in (tuple, dict)


def value_adapter(model: type[BaseSettings], setting: str) -> TypeAdapter[Any]:
    """The check of one setting, with its limits, without those of combinations."""
    field = model.model_fields[setting]
    annotation: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    return TypeAdapter(annotation)


def check_value(model: type[BaseSettings], setting: str, value: Any, *, is_text: bool) -> tuple[str, str] | None:
    """Check a value; what is wrong and what to do, or None.

    Args:
        model: the class of the settings.
        setting: the setting.
        value: its value.
        is_text: whether it is the text of an environment variable; else it is a value of TOML, with its type.
    """
    adapter = value_adapter(model, setting)
    try:
        if not is_text:
            adapter.validate_json(json.dumps(value, default=str), strict=True)
        elif is_json(model, setting):
            value = json.loads(value)
            adapter.validate_python(value)
        else:
            adapter.validate_python(value)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]  # of a union: that of its first member
        problem, remedy = describe_error(first, value, is_text=is_text)
        return problem if is_secret(model, setting) else f"{problem} (got {_shown(value)})", remedy
    except ValueError:  # of JSON
        expected = _EXAMPLES[get_origin(model.model_fields[setting].annotation)]
        return f"is not JSON (got {_shown(value)})", f"write {expected}"
    return None


def describe_error(error: Mapping[str, Any], value: Any, *, is_text: bool) -> tuple[str, str]:
    """What is wrong with a setting by an error of pydantic, and what to do; without the value.

    Args:
        error: as ``ValidationError.errors`` lists it, its place being within the setting.
        value: the value of the setting, whose credentials stay hidden.
        is_text: whether it is the text of an environment variable; else it is a value of TOML, with its type.
    """
    inner = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in _path(error["loc"])).lstrip(
        "."
    )
    context, kind = error.get("ctx") or {}, error["type"]
    if kind in _BOUNDS:
        problem, remedy = _BOUNDS[kind]
        problem = problem.format(**context) if context else problem
    elif (name := kind.removesuffix("_type").removesuffix("_parsing").removesuffix("_from_float")) in _TYPES:
        problem, remedy = f"must be {_TYPES[name]}", "correct it"
        if isinstance(value, str) and not is_text and name in {"int", "float", "bool"}:
            remedy = "write it without quotes"
        elif name in {"string", "path"}:
            remedy = "write it in quotes"
    else:
        problem, remedy = hide_in_message(error["msg"], value).removeprefix("Value error, "), "correct it"
    return f"{inner} {problem}".strip(), remedy


def _path(location: tuple[int | str, ...]) -> list[int | str]:
    """The keys and numbers of an inner value, without the names of types that unions put in between."""
    return [part for part in location if isinstance(part, int) or (part.isidentifier() and part not in _UNIONS)]


def _shown(value: Any) -> str:
    text = json.dumps(hide_credentials(value), ensure_ascii=False, default=str)
    return text if len(text) <= _CHARS_MAX else f"{text[:_CHARS_MAX]}…"
