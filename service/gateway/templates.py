"""Templates of configurations: texts with placeholders, parsed when a configuration is written.

A text is parsed once, so whatever a placeholder is replaced by is never read as a template again.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from proofbox.service.gateway.environment import ENV_NAME

_TOKEN = re.compile(r"\{\{!|\{\{(?P<inside>[^{}]*)\}\}|\$\{env\.(?P<env>[^{}$]*)\}|(?P<open>\{\{|\$\{env\b)")
_PATH = re.compile(r"input(?P<path>(?:\.[^\s.\[\]{}]+|\[[0-9]{1,6}\])*)")
_STEP = re.compile(r"\.(?P<key>[^\s.\[\]{}]+)|\[(?P<index>[0-9]+)\]")
_SHOWN_CHARACTERS = 60
_REMEMBERED_CHARACTERS_MAX = 4_096
_REMEMBERED_MAX = 1_024
_FORMS = "give {{input}}, {{input.name}}, {{call.id}}, or {{! for a literal {{"


class TemplateError(ValueError):
    """A placeholder cannot be read, or is not allowed where it is."""


@dataclass(frozen=True, slots=True)
class InputValue:
    """``{{input…}}``: a value of the input.

    Attributes:
        path: keys and indexes from the input to the value; empty: the whole input.
    """

    path: tuple[str | int, ...]

    @property
    def field(self) -> str:
        """The value as a message names it: ``input.items[0].price``."""
        return "input" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)


@dataclass(frozen=True, slots=True)
class CallIdValue:
    """``{{call.id}}``: the id of the tool call."""


@dataclass(frozen=True, slots=True)
class EnvValue:
    """``${env.X}``: a secret of the operator.

    Attributes:
        name: its name.
    """

    name: str


Part = str | InputValue | CallIdValue | EnvValue
"""A piece of a template: literal text, or a placeholder."""


def parse_template(text: str) -> tuple[Part, ...]:
    """Parse a text; neighbouring literals are one part. What short texts are is remembered.

    Raises:
        TemplateError: a placeholder cannot be read; the message quotes it.
    """
    return _parse_remembered(text) if len(text) <= _REMEMBERED_CHARACTERS_MAX else _parse(text)


def _parse(text: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    literal, at = "", 0
    for token in _TOKEN.finditer(text):
        literal += text[at : token.start()]
        at = token.end()
        if token[0] == "{{!":
            literal += "{{"
            continue
        if literal:
            parts.append(literal)
        literal = ""
        parts.append(_placeholder(token))
    literal += text[at:]
    if literal:
        parts.append(literal)
    return tuple(parts)


_parse_remembered = lru_cache(maxsize=_REMEMBERED_MAX)(_parse)


def _placeholder(token: re.Match[str]) -> Part:
    shown = token[0][:_SHOWN_CHARACTERS]
    if token["open"] is not None:
        raise TemplateError(f"'{token['open']}' does not begin a placeholder that can be read; {_FORMS}")
    if (name := token["env"]) is not None:
        if ENV_NAME.fullmatch(name) is None:
            raise TemplateError(f"'{shown}' names no variable; give ${{env.NAME}} with A-Z a-z 0-9 _")
        return EnvValue(name)
    inside = token["inside"].strip()
    if inside == "call.id":
        return CallIdValue()
    if (path := _PATH.fullmatch(inside)) is None:
        raise TemplateError(f"'{shown}' is not a placeholder; {_FORMS}")
    steps = _STEP.finditer(path["path"])
    return InputValue(tuple(int(step["index"]) if step["key"] is None else step["key"] for step in steps))


def texts_of(template: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The texts in a JSON template with their places; keys of objects are never templates."""
    if isinstance(template, str):
        yield path, template
    elif isinstance(template, dict):
        for key, value in template.items():
            yield from texts_of(value, (*path, key))
    elif isinstance(template, list):
        for index, value in enumerate(template):
            yield from texts_of(value, (*path, index))


def has_input(parts: Sequence[Part]) -> bool:
    """Whether a template takes a value of the input."""
    return any(isinstance(part, InputValue) for part in parts)


def is_literal(parts: Sequence[Part]) -> bool:
    """Whether a template has no placeholder."""
    return all(isinstance(part, str) for part in parts)


def literal_text(parts: Sequence[Part]) -> str:
    """The text of a template without placeholders."""
    return "".join(part for part in parts if isinstance(part, str))
