"""The react tools and the web tools: ids, and parameters in the order of the protocol."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from proofbox.contracts.bounded_text import limit_utf8, parse_list

CONTENT_BYTES_MAX = 10 * 1024 * 1024
PATHS_MAX = 100
SHORT_CHARS_MAX = 2_048
REGEX_CHARS_MAX = 1_000
STEPS_MAX = 100
WEB_MAX = 20

PathText = Annotated[str, Field(min_length=1, max_length=SHORT_CHARS_MAX)]
# A blank one is the model's mistake, which the tool answers in its own words.
MaybeBlankPath = Annotated[str, Field(max_length=SHORT_CHARS_MAX)]
Content = Annotated[str, AfterValidator(limit_utf8(CONTENT_BYTES_MAX))]
Channel = Literal["canvas", "timeline_text", "internal"]
Kind = Literal["display", "file"]
Target = Literal["assistant", "user", "attachment"]
StepStatus = Literal["pending", "in_progress", "done", "failed"]


class _Params(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class ReadParams(_Params):
    """Parameters of ``react.read``."""

    paths: Annotated[list[PathText], BeforeValidator(parse_list), Field(min_length=1, max_length=PATHS_MAX)]
    """Logical paths: ``fi:``, ``ar:``, ``tc:``, ``so:``, ``su:``, ``sk:``, or a name in this turn."""


class WriteParams(_Params):
    """Parameters of ``react.write`` and ``react.stream``."""

    path: MaybeBlankPath
    """The file, below ``files/``."""
    channel: Channel
    """Where it is shown; ``internal``: a note that no user sees."""
    content: Content
    """The text, or the path of a text (``fi:…``); 10 MiB at most."""
    kind: Kind
    """Shown as text, or handed over as a file."""


class FileParams(_Params):
    """Parameters of ``react.file``."""

    path: MaybeBlankPath
    """The file, below ``files/``."""
    content: Content
    """The text, or the path of a text (``fi:…``); 10 MiB at most."""


class PatchParams(_Params):
    """Parameters of ``react.patch``."""

    path: MaybeBlankPath
    """The file; one of an earlier turn is copied into this turn first."""
    channel: Channel
    """Where it is shown."""
    patch: Content
    """A unified diff, a ``*** Begin Patch`` patch, SEARCH/REPLACE blocks, or the whole new text."""
    kind: Kind
    """Shown as text, or handed over as a file."""


class MemsearchParams(_Params):
    """Parameters of ``react.memsearch``."""

    query: Annotated[str, Field(min_length=1, max_length=SHORT_CHARS_MAX)]
    targets: Annotated[list[Target], BeforeValidator(parse_list), Field(min_length=1, max_length=3)]
    """Whose words to search."""
    top_k: Annotated[int, Field(ge=1, le=50)] = 5
    days: Annotated[int, Field(ge=1)] = 365
    """How far back."""


class HideParams(_Params):
    """Parameters of ``react.hide``."""

    path: PathText
    """Logical path of what to hide."""
    replacement: Annotated[
        str,
        Field(
            min_length=1,
            max_length=SHORT_CHARS_MAX,
            # The name that the parameter of react.memory_hide has had.
            validation_alias=AliasChoices("replacement", "replacement_text"),
        ),
    ]
    """Short text in its place."""


class SearchFilesParams(_Params):
    """Parameters of ``react.search_files``."""

    name_regex: Annotated[str, Field(max_length=REGEX_CHARS_MAX)] | None = None
    """For the path."""
    content_regex: Annotated[str, Field(max_length=REGEX_CHARS_MAX)] | None = None
    """For the text."""
    max_hits: Annotated[int, Field(ge=1, le=1_000)] = 200


class PlanParams(_Params):
    """Parameters of ``react.plan``."""

    steps: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1_000)]],
        BeforeValidator(parse_list),
        Field(min_length=1, max_length=STEPS_MAX),
    ]
    status: dict[Annotated[str, Field(pattern=r"^[1-9]\d{0,2}$")], StepStatus] = {}
    """By step number from 1; others are pending."""


class WebSearchParams(_Params):
    """Parameters of ``web_tools.web_search``."""

    queries: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1_000)]],
        BeforeValidator(parse_list),
        Field(min_length=1, max_length=WEB_MAX),
    ]
    n: Annotated[int, Field(ge=1, le=50)] = 5


class WebFetchParams(_Params):
    """Parameters of ``web_tools.web_fetch``."""

    urls: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=8_192)]],
        BeforeValidator(parse_list),
        Field(min_length=1, max_length=WEB_MAX),
    ]
    """http or https."""


@dataclass(frozen=True, slots=True)
class ReactTool:
    """One tool of the catalogue.

    Attributes:
        params: the model of its parameters, its fields in the order of the protocol.
        description: what it does, for the model.
    """

    params: type[BaseModel]
    description: str


REACT_TOOLS: dict[str, ReactTool] = {
    "react.read": ReactTool(
        ReadParams,
        "Brings files, attachments, earlier results, prompts, sources (so:sources_pool[1,3-5]) and skills "
        "(sk:<id>) of this conversation into view; DOCX, XLSX, PPTX and PDF as text. Part of a long text: "
        "fi:<turn_id>.files/log.txt#L100-200, or #B0-9999 for bytes.",
    ),
    "react.write": ReactTool(WriteParams, "Writes a text file and shows it."),
    "react.stream": ReactTool(WriteParams, "As react.write, for content that was streamed to the user."),
    "react.file": ReactTool(FileParams, "Writes a text file without showing it."),
    "react.patch": ReactTool(
        PatchParams,
        "Changes a text file by a diff, or replaces its text. Nothing changes if a hunk does not fit.",
    ),
    "react.memsearch": ReactTool(
        MemsearchParams, "Searches what was written and attached in this conversation, by meaning."
    ),
    "react.hide": ReactTool(
        HideParams, "Replaces a large recent block in view by a short text; react.read brings it back."
    ),
    "react.search_files": ReactTool(
        SearchFilesParams,
        "Lists files of the conversation whose path and text match regular expressions, and lines.",
    ),
    "react.plan": ReactTool(PlanParams, "Records the plan of the turn and the status of each step."),
    "web_tools.web_search": ReactTool(WebSearchParams, "Searches the web; [[S:n]] cites a result."),
    "web_tools.web_fetch": ReactTool(WebFetchParams, "Fetches web pages as text; [[S:n]] cites a page."),
}
TOOL_ALIASES = {"react.memory_hide": "react.hide"}
"""Ids that are accepted and mean another one."""


def react_params_schema(tool_id: str) -> dict[str, Any]:
    """The JSON Schema of a tool's parameters; ``tool_id`` is one of `REACT_TOOLS`."""
    return REACT_TOOLS[tool_id].params.model_json_schema()
