"""The react tools and the web tools: ids, and parameters in the order of the protocol."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from contracts.texts import as_list, utf8_at_most

CONTENT_BYTES_MAX = 10 * 1024 * 1024
PATHS_MAX = 100
SHORT_CHARS_MAX = 2_048
REGEX_CHARS_MAX = 1_000
STEPS_MAX = 100
WEB_MAX = 20

PathText = Annotated[str, Field(min_length=1, max_length=SHORT_CHARS_MAX)]
# A blank one is the model's mistake, which the tool answers in its own words.
MaybeBlankPath = Annotated[str, Field(max_length=SHORT_CHARS_MAX)]
Content = Annotated[str, AfterValidator(utf8_at_most(CONTENT_BYTES_MAX))]
Channel = Literal["canvas", "timeline_text", "internal"]
Kind = Literal["display", "file"]
Target = Literal["assistant", "user", "attachment"]
StepStatus = Literal["pending", "in_progress", "done", "failed"]


class _Params(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class ReadParams(_Params):
    """Parameters of ``react.read``."""

    paths: Annotated[list[PathText], BeforeValidator(as_list), Field(min_length=1, max_length=PATHS_MAX)]
    """What to load: ``fi:``, ``ar:``, ``tc:``, ``so:``, ``su:``, ``sk:``, or a name in the current turn."""


class WriteParams(_Params):
    """Parameters of ``react.write`` and ``react.stream``."""

    path: MaybeBlankPath
    """The file below the current turn's ``files/``."""
    channel: Channel
    """Where it is shown: ``canvas``, ``timeline_text``, or ``internal`` for notes that no user sees."""
    content: Content
    """What it says, or the path of a text (``fi:…``); 10 MiB of UTF-8 at most."""
    kind: Kind
    """``display`` is shown as text, ``file`` is handed over as a file."""


class FileParams(_Params):
    """Parameters of ``react.file``."""

    path: MaybeBlankPath
    """The file below the current turn's ``files/``."""
    content: Content
    """What it says, or the path of a text (``fi:…``); 10 MiB of UTF-8 at most."""


class PatchParams(_Params):
    """Parameters of ``react.patch``."""

    path: MaybeBlankPath
    """The file to patch; one of an earlier turn is copied into the current turn first."""
    channel: Channel
    """Where the patch is shown."""
    patch: Content
    """A unified diff, a ``*** Begin Patch`` patch, SEARCH/REPLACE blocks, or the whole new text."""
    kind: Kind
    """``file`` hands the patched file over to the user."""


class MemsearchParams(_Params):
    """Parameters of ``react.memsearch``."""

    query: Annotated[str, Field(min_length=1, max_length=SHORT_CHARS_MAX)]
    """What to look for, in plain words."""
    targets: Annotated[list[Target], BeforeValidator(as_list), Field(min_length=1, max_length=3)]
    """Whose words to search."""
    top_k: Annotated[int, Field(ge=1, le=50)] = 5
    """How many snippets to give."""
    days: Annotated[int, Field(ge=1, le=3_650)] = 365
    """How far to look back."""


class HideParams(_Params):
    """Parameters of ``react.hide``."""

    path: PathText
    """The logical path of what is hidden."""
    replacement: Annotated[
        str,
        Field(
            min_length=1,
            max_length=SHORT_CHARS_MAX,
            # The name that the parameter of react.memory_hide has had.
            validation_alias=AliasChoices("replacement", "replacement_text"),
        ),
    ]
    """The short text that is shown in its place."""


class SearchFilesParams(_Params):
    """Parameters of ``react.search_files``."""

    name_regex: Annotated[str, Field(max_length=REGEX_CHARS_MAX)] | None = None
    """What a file's path has to match."""
    content_regex: Annotated[str, Field(max_length=REGEX_CHARS_MAX)] | None = None
    """What a file's text has to match."""
    max_hits: Annotated[int, Field(ge=1, le=1_000)] = 200
    """How many files to list."""


class PlanParams(_Params):
    """Parameters of ``react.plan``."""

    steps: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1_000)]],
        BeforeValidator(as_list),
        Field(min_length=1, max_length=STEPS_MAX),
    ]
    """The steps, in their order."""
    status: dict[Annotated[str, Field(pattern=r"^[1-9]\d{0,2}$")], StepStatus] = {}
    """How far each is, by its number from 1; a step that is not named is pending."""


class WebSearchParams(_Params):
    """Parameters of ``web_tools.web_search``."""

    queries: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1_000)]],
        BeforeValidator(as_list),
        Field(min_length=1, max_length=WEB_MAX),
    ]
    """What to search for; the answers of all queries are one list."""
    n: Annotated[int, Field(ge=1, le=50)] = 5
    """How many results to give for each query."""


class WebFetchParams(_Params):
    """Parameters of ``web_tools.web_fetch``."""

    urls: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=8_192)]],
        BeforeValidator(as_list),
        Field(min_length=1, max_length=WEB_MAX),
    ]
    """The pages to fetch, http or https."""


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
        "Loads artifacts and blocks of this conversation by their logical paths into view: files, attachments, "
        "earlier results, prompts, sources (so:sources_pool[1,3-5]) and skills (sk:<id>). DOCX, XLSX, PPTX and PDF "
        "come with their text. Part of a long text: fi:<turn_id>.files/log.txt#L100-200, or #B0-9999 for bytes.",
    ),
    "react.write": ReactTool(
        WriteParams,
        "Writes a text file below the current turn's files/ and shows it. channel internal keeps a short note "
        "that no user sees.",
    ),
    "react.stream": ReactTool(WriteParams, "As react.write, for content that was streamed to the user."),
    "react.file": ReactTool(FileParams, "Writes a text file below the current turn's files/ without showing it."),
    "react.patch": ReactTool(
        PatchParams,
        "Changes a text file by a diff or replaces its whole text. A file of an earlier turn is copied into the "
        "current turn first. Nothing changes if a hunk does not fit.",
    ),
    "react.memsearch": ReactTool(
        MemsearchParams, "Searches what was said and attached in this conversation by meaning; newer counts more."
    ),
    "react.hide": ReactTool(
        HideParams,
        "Replaces a large recent block in view by a short text. react.read brings it back. Only near the end of "
        "the timeline.",
    ),
    "react.search_files": ReactTool(
        SearchFilesParams, "Lists files of the current workspace whose path and text match regular expressions."
    ),
    "react.plan": ReactTool(PlanParams, "Records the plan of the turn and how far each step is."),
    "web_tools.web_search": ReactTool(
        WebSearchParams, "Searches the web; each result becomes a source that [[S:n]] can cite."
    ),
    "web_tools.web_fetch": ReactTool(
        WebFetchParams, "Fetches web pages as readable text; each becomes a source that [[S:n]] can cite."
    ),
}
TOOL_ALIASES = {"react.memory_hide": "react.hide"}
"""Ids that are accepted and mean another one."""


def react_params_schema(tool_id: str) -> dict[str, Any]:
    """The JSON Schema of a tool's parameters; ``tool_id`` is one of `REACT_TOOLS`."""
    return REACT_TOOLS[tool_id].params.model_json_schema()
