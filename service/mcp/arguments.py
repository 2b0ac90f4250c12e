"""The arguments of the tools: models with the descriptions that a model reads."""

import binascii
from contextlib import suppress
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from proofbox.contracts.artifacts import ContractError, parse_contract
from proofbox.contracts.bounded_text import limit_utf8, parse_list
from proofbox.contracts.packages.requirements import PACKAGES_MAX, RequirementText
from proofbox.contracts.react_tools import StepStatus, Target
from proofbox.contracts.render_tools import CONTENT_BYTES_MAX
from proofbox.contracts.tool_call_request import CODE_BYTES_MAX, ConversationId, decode_base64
from proofbox.contracts.tool_schemas import compact_schema
from proofbox.service.calls.validation import field_name, hint_of
from proofbox.service.mcp.options import WAIT_S_DEFAULT, WAIT_S_MAX

INLINE_BYTES_MAX = 1024 * 1024
"""All files of a call that stand in its arguments; larger ones come by an upload link."""
FILES_MAX = 20
LISTED_MAX = 500
_ERRORS_SHOWN = 5

_NAMES_CONVERSATION = "From an earlier result; left out: a new one"
Conversation = Annotated[ConversationId | None, Field(description=_NAMES_CONVERSATION)]
Wait = Annotated[
    float,
    Field(
        ge=0,
        le=WAIT_S_MAX,
        allow_inf_nan=False,
        description=f"Seconds to wait for the end, at most {WAIT_S_MAX:g}; a call that takes longer goes on, and "
        "the result has a handle for get_result",
    ),
]
PathText = Annotated[
    str, Field(min_length=1, max_length=2_048, description="As results list it: files/chart.png, or a bare name")
]
_NAME_OR_OBJECT = {"anyOf": [{"type": "string"}, {"type": "object"}]}


class InvalidArgumentsError(Exception):
    """Arguments that the model has to write differently; the message lists what is wrong."""


class Arguments(BaseModel):
    """Base of all arguments."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class GivenFile(Arguments):
    """A small file in the arguments: text or base64."""

    name: Annotated[str, Field(min_length=1, max_length=255)]
    """The name by which the program opens it."""
    text: str | None = None
    """Its content, for a text."""
    base64: str | None = None
    """Its content, for other files."""

    @model_validator(mode="after")
    def _one_content(self) -> Self:
        if (self.text is None) == (self.base64 is None):
            raise ValueError("give either text or base64")
        return self

    def content(self) -> bytes:
        """Return its bytes.

        Raises:
            InvalidArgumentsError: the base64 is invalid.
        """
        if self.text is not None:
            return self.text.encode(errors="replace")
        try:
            return decode_base64((self.base64 or "").encode())
        except (binascii.Error, ValueError) as exc:
            raise InvalidArgumentsError(
                f"files: '{self.name[:80]}' is not base64; send text, or upload it"
            ) from exc


Files = Annotated[
    list[GivenFile],
    Field(
        max_length=FILES_MAX,
        description="Small files to hand over, 1 MiB together; get_upload_link takes larger ones. Files of earlier "
        "calls of the conversation are there already",
    ),
]


class RunArguments(Arguments):
    """Arguments of ``run_python``, ``run_bash`` and ``run_node``."""

    code: Annotated[str, AfterValidator(limit_utf8(CODE_BYTES_MAX))]
    """The whole program."""
    files_promised: Annotated[list[str | dict[str, Any]], BeforeValidator(parse_list), Field(max_length=200)] = []
    """Files that the program must write: names, patterns such as charts/*.png, or {filename or glob, description}
    with checks such as min_rows, columns, min_pages, min_width, json_schema, not_blank. The result has a verdict on
    each. Without it every file that is written is taken."""
    files: Files = []
    conversation: Conversation = None
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Wall-clock limit of the program."""
    stdin: str | None = None
    """Standard input."""
    wait_s: Wait = WAIT_S_DEFAULT

    def contract(self) -> list[dict[str, Any]]:
        """Return the contract of the call; without promises: all files, of which there may be none."""
        if not self.files_promised:
            return [{"glob": "**/*", "description": "a file that the program wrote", "min_count": 0}]
        return [_contract_entry(promise) for promise in self.files_promised]


class PackageArguments(RunArguments):
    """Arguments of ``run_python`` where the operator has a package index."""

    packages: Annotated[list[RequirementText], BeforeValidator(parse_list), Field(max_length=PACKAGES_MAX)] = []
    """Further Python packages to install before the run, such as scikit-image==0.25.*."""


class RenderArguments(Arguments):
    """Arguments of ``render``."""

    path: Annotated[str, Field(min_length=1, max_length=2_048)]
    """The file to write, such as report.pdf; its extension is the format: pdf, docx, pptx, png, xlsx."""
    content: Annotated[str, AfterValidator(limit_utf8(CONTENT_BYTES_MAX))]
    """The document as text, or the path of a text of the conversation (fi:…)."""
    format: Annotated[str, Field(max_length=32)] | None = None
    """Of the content: markdown, html, mermaid (pdf, png), svg (png), csv (xlsx). Default: html for pptx and png,
    else markdown."""
    title: Annotated[str, Field(max_length=1_000)] = ""
    theme: Annotated[str, Field(max_length=1_000)] = "plain"
    """plain, dark, brand, paper, or the path of a theme file."""
    options: dict[str, Any] = {}
    """Further parameters of the format, such as page_size, landscape, margins, header, footer, toc, cover, css,
    password (pdf), slide_size (pptx), width, height, fit (png), sheets (xlsx)."""
    files: Files = []
    conversation: Conversation = None
    wait_s: Wait = WAIT_S_DEFAULT


class FileArguments(Arguments):
    """Arguments that name one file."""

    conversation: ConversationId
    """From an earlier result."""
    path: PathText


class ReadFileArguments(FileArguments):
    """Arguments of ``read_file``."""

    lines: Annotated[str, Field(pattern=r"^[0-9]{1,9}-[0-9]{1,9}$")] | None = None
    """Part of a long text, such as 200-400."""


class ListFilesArguments(Arguments):
    """Arguments of ``list_files``."""

    conversation: ConversationId
    """From an earlier result."""
    after: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0
    """For the next page: last of the page before."""
    limit: Annotated[int, Field(ge=1, le=LISTED_MAX)] = 100


class UploadArguments(Arguments):
    """Arguments of ``get_upload_link``."""

    name: Annotated[str, Field(min_length=1, max_length=255)]
    """The file's name, without a folder."""
    conversation: Conversation = None


class ResultArguments(Arguments):
    """Arguments of ``get_result``."""

    handle: Annotated[str, Field(min_length=3, max_length=300)]
    """From the result of the call."""
    wait_s: Wait = WAIT_S_DEFAULT


class CancelArguments(Arguments):
    """Arguments of ``cancel_call``."""

    handle: Annotated[str, Field(min_length=3, max_length=300)]
    """From the result of the call."""


class WriteFileArguments(Arguments):
    """Arguments of ``write_file``."""

    path: PathText
    content: str
    """The text."""
    conversation: Conversation = None


class PatchFileArguments(FileArguments):
    """Arguments of ``patch_file``."""

    patch: str
    """A unified diff, a *** Begin Patch patch, SEARCH/REPLACE blocks, or the whole new text."""


class SearchFilesArguments(Arguments):
    """Arguments of ``search_files``."""

    conversation: ConversationId
    """From an earlier result."""
    name_regex: str | None = None
    """For the path."""
    content_regex: str | None = None
    """For the text."""
    max_hits: Annotated[int, Field(ge=1, le=1_000)] = 50


class SearchMemoryArguments(Arguments):
    """Arguments of ``search_memory``."""

    conversation: ConversationId
    """From an earlier result."""
    query: str
    targets: Annotated[list[Target], BeforeValidator(parse_list)] = ["assistant", "user", "attachment"]
    """Whose words to search."""
    top_k: Annotated[int, Field(ge=1, le=50)] = 5


class PlanArguments(Arguments):
    """Arguments of ``record_plan``."""

    steps: Annotated[list[str], BeforeValidator(parse_list)]
    status: dict[str, StepStatus] = {}
    """By step number from 1; others are pending."""
    conversation: Conversation = None


class WebSearchArguments(Arguments):
    """Arguments of ``web_search``."""

    queries: Annotated[list[str], BeforeValidator(parse_list)]
    n: Annotated[int, Field(ge=1, le=50)] = 5
    """Results of each query."""
    conversation: Conversation = None


class WebFetchArguments(Arguments):
    """Arguments of ``web_fetch``."""

    urls: Annotated[list[str], BeforeValidator(parse_list)]
    """http or https."""
    conversation: Conversation = None


def input_schema(model: type[Arguments]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, without what no model acts on."""
    schema = compact_schema(model.model_json_schema())
    if "files_promised" in schema["properties"]:
        # Not a list of types, which some hosts refuse.
        schema["properties"]["files_promised"]["items"] = _NAME_OR_OBJECT
    return {"type": "object", **schema}


def parse_arguments(model: type[Arguments], given: dict[str, Any] | None) -> Arguments:
    """Parse arguments; an argument that is null counts as left out.

    Raises:
        InvalidArgumentsError: they do not fit the tool.
    """
    try:
        return model.model_validate({name: value for name, value in (given or {}).items() if value is not None})
    except ValidationError as exc:
        errors = exc.errors(include_url=False, include_context=False, include_input=False)
        found = [f"{field_name(error['loc'])}: {_sentence(error, model)}" for error in errors]
        found += _mistakes_in_promises(model, given or {})
        shown = found[:_ERRORS_SHOWN]
        more = [f"and {len(found) - _ERRORS_SHOWN} more"] if len(found) > _ERRORS_SHOWN else []
        known = ", ".join(model.model_fields)
        raise InvalidArgumentsError("\n".join([*shown, *more, f"The arguments of the tool: {known}"])) from exc


def _sentence(error: Any, model: type[Arguments]) -> str:
    text: str = error["msg"].removeprefix("Value error, ")
    if error["type"] != "extra_forbidden":
        return text
    hint = hint_of(model, error["loc"])
    return f"no such argument; {hint if hint.endswith('?') else 'leave it out'}"


def _mistakes_in_promises(model: type[Arguments], given: dict[str, Any]) -> list[str]:
    """What is wrong with promised files beyond their type, which is else found when the program is to run."""
    if issubclass(model, RunArguments) and given.get("files_promised"):
        with suppress(ValidationError):
            promised = RunArguments.model_validate({"code": "", "files_promised": given["files_promised"]})
            try:
                parse_contract(promised.contract(), "turn_1")
            except ContractError as exc:
                return [part.message for part in exc.parts]
    return []


def _contract_entry(promise: str | dict[str, Any]) -> dict[str, Any]:
    """An entry of the contract; a text is a name, or a pattern if it has a wildcard."""
    if isinstance(promise, str):
        field = "glob" if set(promise) & set("*?[") else "filename"
        return {field: promise, "description": promise}
    name = promise.get("filename") or promise.get("glob") or "a file"
    return {"description": str(name), **promise}
