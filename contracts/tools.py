"""The catalogue: which tools there are, and their parameters in the order of the protocol."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from contracts.artifacts import ArtifactSpec
from contracts.react_tools import REACT_TOOLS, react_params_schema
from contracts.render_tools import RENDER_TOOL_PREFIX, OutputFormat, render_params_schema

TIMEOUT_S_DEFAULT = 600


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

EXEC_TOOL_PREFIX = "exec_tools.execute_code_"


class ExecParams(BaseModel):
    """Parameters of ``exec_tools.execute_code_*``; the code travels beside them."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    contract: Any = None
    """The files that the code promises to write."""
    prog_name: Annotated[str, Field(max_length=255)] = "main"
    """A short name of the program: its ``sys.argv[0]`` and the name in its tracebacks."""
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = TIMEOUT_S_DEFAULT
    """Wall-clock time for the program, in seconds; capped by the service."""


class Tool(BaseModel):
    """One tool of the catalogue."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    tool_id: str
    """What ``tool_id`` of a call says."""
    description: str
    """What it does, for the model."""
    params_schema: dict[str, Any]
    """JSON Schema (2020-12) of ``params``; its properties stand in the order of the protocol."""
    takes_code: bool
    """Whether the call carries ``code`` beside its params."""


def exec_params_schema() -> dict[str, Any]:
    """The JSON Schema of `ExecParams`, with the contract entry's schema among its definitions."""
    schema = ExecParams.model_json_schema()
    entry = ArtifactSpec.model_json_schema()
    definitions = entry.pop("$defs", {})
    schema["$defs"] = {**definitions, "ArtifactSpec": entry}
    # Any at the door, because a bad contract is the model's mistake and answered in its own words.
    schema["properties"]["contract"] |= {
        "anyOf": [
            {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/ArtifactSpec"}},
            {"type": "string", "description": "the JSON text of such a list"},
        ]
    }
    schema["properties"]["contract"].pop("default", None)
    schema["required"] = ["contract"]
    return schema


def exec_tool_id(language: Language) -> str:
    """The id of the exec tool of a language."""
    return EXEC_TOOL_PREFIX + language


def catalogue() -> list[Tool]:
    """Every tool that this service offers, in a stable order."""
    exec_tools = [
        Tool(
            tool_id=exec_tool_id(language),
            description=(
                f"Runs a {language} program in a fresh, single-use sandbox without network and checks that "
                "every file of the contract was written and opens as what it claims to be. The working "
                "directory is OUT_DIR; write to files/<name>. Files of earlier turns are at "
                "<turn_id>/files/<name> and <turn_id>/attachments/<name>."
            ),
            params_schema=exec_params_schema(),
            takes_code=True,
        )
        for language in Language
    ]
    render_tools = [
        Tool(
            tool_id=RENDER_TOOL_PREFIX + output,
            description=(
                f"Renders a document to {output.upper()}. Pictures are named by <turn_id>/files/<name> or "
                "<turn_id>/attachments/<name>, sources are cited by [[S:n]]; nothing is fetched from a network."
            ),
            params_schema=render_params_schema(output),
            takes_code=False,
        )
        for output in OutputFormat
    ]
    react_tools = [
        Tool(
            tool_id=tool_id,
            description=tool.description,
            params_schema=react_params_schema(tool_id),
            takes_code=False,
        )
        for tool_id, tool in REACT_TOOLS.items()
    ]
    return exec_tools + render_tools + react_tools


def exec_language(tool_id: str) -> Language | None:
    """The language that an exec tool runs; None if ``tool_id`` is no exec tool of the catalogue."""
    name = tool_id.removeprefix(EXEC_TOOL_PREFIX)
    return Language(name) if name != tool_id and name in set(Language) else None
