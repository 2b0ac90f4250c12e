"""The catalogue: which tools there are, and their parameters in the order of the protocol."""

from copy import deepcopy
from enum import StrEnum
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from proofbox.contracts.artifacts import ArtifactSpec
from proofbox.contracts.exec_params import ExecParams
from proofbox.contracts.image_contents import ImageContents, named_commands, named_libraries
from proofbox.contracts.react_tools import REACT_TOOLS, react_params_schema
from proofbox.contracts.render_tools import (
    RENDER_DESCRIPTIONS,
    RENDER_TOOL_PREFIX,
    OutputFormat,
    render_params_schema,
)
from proofbox.contracts.tool_schemas import compact_schema, without_descriptions


class Language(StrEnum):
    """A language that the sandbox image can run: one member and one entry of `LANGUAGES` each."""

    PYTHON = "python"
    BASH = "bash"
    NODE = "node"


class LanguageFacts(BaseModel):
    """What the wire needs to know of a language."""

    model_config = ConfigDict(frozen=True)

    code_mime: str
    """The media type of its code block."""
    suffix: str
    """The file name suffix of a program."""


LANGUAGES = {
    Language.PYTHON: LanguageFacts(code_mime="text/x-python", suffix=".py"),
    Language.BASH: LanguageFacts(code_mime="text/x-shellscript", suffix=".sh"),
    Language.NODE: LanguageFacts(code_mime="text/javascript", suffix=".js"),
}

IN_EVERY_IMAGE = frozenset({Language.PYTHON, Language.BASH})
"""The languages that the runner itself cannot do without; the inventory of the image names others."""

EXEC_TOOL_PREFIX = "exec_tools.execute_code_"


class Tool(BaseModel):
    """One tool of the catalogue."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    tool_id: str
    """The value of ``tool_id`` in a call."""
    description: str
    """What it does, for the model."""
    params_schema: dict[str, Any]
    """JSON Schema (2020-12) of ``params`` for a model; its properties stand in the order of the protocol."""
    takes_code: bool
    """Whether the call carries ``code`` beside its params."""


def exec_params_schema() -> dict[str, Any]:
    """The JSON Schema of `ExecParams`, with the contract entry's schema among its definitions."""
    schema = ExecParams.model_json_schema()
    entry = ArtifactSpec.model_json_schema()
    definitions = entry.pop("$defs", {})
    entry["properties"] = _own_first(ArtifactSpec, entry["properties"])
    schema["$defs"] = {**definitions, "ArtifactSpec": entry}
    # Any here, because a bad contract is the model's mistake and answered in its own words.
    schema["properties"]["contract"] |= {
        "anyOf": [
            {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/ArtifactSpec"}},
            {"type": "string", "description": "the JSON text of such a list"},
        ]
    }
    schema["properties"]["contract"].pop("default", None)
    for name in ("stdin", "cwd"):
        # What is optional is left out, never null.
        options = schema["properties"][name].pop("anyOf")
        schema["properties"][name] |= next(option for option in options if option["type"] != "null")
        schema["properties"][name].pop("default")
    return schema


def _own_first(model: type[BaseModel], properties: dict[str, Any]) -> dict[str, Any]:
    """The properties of a model, those that it does not inherit first."""
    return {name: properties[name] for name in dict.fromkeys((*model.__annotations__, *properties))}


def exec_tool_id(language: Language) -> str:
    """The id of the exec tool of a language."""
    return EXEC_TOOL_PREFIX + language


def catalogue(image: ImageContents | None = None, *, has_packages: bool = False) -> list[Tool]:
    """Every tool that this service offers, in a stable order.

    Args:
        image: what the sandbox image has; None if that is not known: then only what every image has is named.
        has_packages: whether programs can ask for packages.
    """
    exec_tools = [
        Tool(
            tool_id=exec_tool_id(language),
            description=_exec_description(language, image, has_packages=has_packages),
            params_schema=deepcopy(_exec_params_of_model(language, has_packages=has_packages)),
            takes_code=True,
        )
        for language in Language
        if language in IN_EVERY_IMAGE or (image is not None and language in image.languages)
    ]
    render_tools = [
        Tool(
            tool_id=RENDER_TOOL_PREFIX + output,
            description=RENDER_DESCRIPTIONS[output],
            params_schema=deepcopy(_render_params_of_model(output)),
            takes_code=False,
        )
        for output in OutputFormat
    ]
    react_tools = [
        Tool(
            tool_id=tool_id,
            description=tool.description,
            params_schema=deepcopy(_react_params_of_model(tool_id)),
            takes_code=False,
        )
        for tool_id, tool in REACT_TOOLS.items()
    ]
    return exec_tools + render_tools + react_tools


@cache
def _render_params_of_model(output: OutputFormat) -> dict[str, Any]:
    """The compact schema of a rendering tool; a description or default that ``write_pdf`` has too stands there."""
    schema = compact_schema(render_params_schema(output))
    described = compact_schema(render_params_schema(OutputFormat.PDF))["properties"]
    if output is not OutputFormat.PDF:
        for name, parameter in schema["properties"].items():
            shared = described.get(name, {})
            for key in ("description", "default"):
                if key in parameter and parameter[key] == shared.get(key):
                    del parameter[key]
    return schema


def _exec_description(language: Language, image: ImageContents | None, *, has_packages: bool) -> str:
    if language is not Language.PYTHON:
        commands = named_commands(image.commands) if image is not None and language is Language.BASH else ""
        has = f" Commands beside the usual ones: {commands}." if commands else ""
        return f"Runs a {language} program as execute_code_python does, with the same parameters.{has}"
    has = ""
    if image is not None:
        has = f" Python {image.python} {named_libraries(image.libraries)}."
    if has_packages:
        has += " Other packages: name them in packages; only wheels, nothing is built."
    return (
        "Runs a Python program in a fresh sandbox without network; returns what it prints, and checks that every "
        "file of the contract was written and opens as what its name says. Write to files/<name>. Attachments "
        f"are at <turn_id>/attachments/<name>, files of earlier turns at <turn_id>/files/<name>.{has}"
    )


@cache
def _react_params_of_model(tool_id: str) -> dict[str, Any]:
    schema = compact_schema(react_params_schema(tool_id))
    return without_descriptions(schema) if tool_id == "react.stream" else schema  # react.write describes them


@cache
def _exec_params_of_model(language: Language, *, has_packages: bool) -> dict[str, Any]:
    """The schema that a model reads; only the one of the tool for Python describes each parameter."""
    schema = compact_schema(exec_params_schema())
    del schema["properties"]["workspace"]  # the caller's loop decides about it
    if not has_packages or language is Language.NODE:
        del schema["properties"]["packages"]
    return schema if language is Language.PYTHON else without_descriptions(schema)


def exec_language(tool_id: str) -> Language | None:
    """The language that an exec tool runs; None if ``tool_id`` is no exec tool of the catalogue."""
    name = tool_id.removeprefix(EXEC_TOOL_PREFIX)
    return Language(name) if name != tool_id and name in set(Language) else None
