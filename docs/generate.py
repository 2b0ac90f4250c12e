"""Writes the reference pages that the code itself holds: settings, errors, libraries; ``--check`` compares."""

import re
import sys
from pathlib import Path

from pydantic_core import PydanticUndefined

from contracts.codes import ContractCode, NoticeCode, ProblemCode, RuntimeCode, ToolCode, VerdictCode, WebCode
from service import errors
from service.app.settings import Settings
from service.sandbox.limits import limit_names

HERE = Path(__file__).parent
IMAGES = HERE.parent / "sandbox_images"

# One sentence per code: what happened, for the reader of a timeline.
CONTRACT = {
    ContractCode.INVALID_PARAMS: "The `params` do not fit the tool: the notice lists all `errors`.",
    ContractCode.MISSING_ARTIFACTS: "The call has no contract.",
    ContractCode.INVALID_ARTIFACTS_JSON: "The contract is a string that is no JSON.",
    ContractCode.INVALID_ARTIFACTS: "The contract is no list, empty, too long, or has an entry that is no object.",
    ContractCode.INVALID_ARTIFACT_SPEC: "An entry has a blank name, an unknown field or a check that cannot apply.",
    ContractCode.INVALID_FILENAME: "An entry's path is unsafe, or lies in another turn or among attachments.",
    ContractCode.DUPLICATE_ARTIFACT: "Two entries are the same file.",
    ContractCode.MISSING_TURN_ID: "The call has no turn id.",
    ContractCode.MISSING_CODE: "The call has no code.",
    ContractCode.CODE_CONTAMINATED: "The code starts or ends with a code fence, or a channel or thinking tag.",
    ContractCode.UNSAFE_PATH: "A path is absolute, has empty or dot segments, control characters, or is too long.",
    ContractCode.MISSING_ASSETS: "The document names files that cannot be had, and `strict` was asked for.",
    ContractCode.PRE_EXEC_MISSING_PATHS: "The code refers to files of other turns that cannot be had.",
    ContractCode.PARAM_REF_NOT_VISIBLE: "A parameter is the path of a text that cannot be had: `param`, `ref`.",
    ContractCode.EMPTY_CONTENT: "The document to render is blank.",
}
# The renderer runs in the sandbox image, so its codes are no enumeration here; a test compares them.
RENDERING = {
    "content_too_large": "The document, or what it becomes, is larger than is rendered.",
    "document_too_complex": "Its nesting or its number of parts is beyond what the format's writer takes.",
    "image_too_large": "The picture would have more pixels than are drawn.",
    "invalid_option": "An option has a value that the format has no use for; the message names it.",
    "invalid_page_size": "`page_size` is neither a known name nor two lengths.",
    "invalid_part": "A document of `merge` cannot be had, is encrypted or broken, or is of no use for the format.",
    "invalid_request": "The request does not fit the renderer; the message names the field.",
    "invalid_slide_size": "`slide_size` is neither a known name nor two lengths that slides can have.",
    "invalid_svg": "The content of a drawing has no `<svg>` element.",
    "invalid_template": "`template` cannot be had, or is no file that the format can use; the message says why.",
    "invalid_theme": "A field of the theme file has a value that it cannot have; the message names it.",
    "layout_failed": "The layout engine could not lay the document out.",
    "missing_assets": "The document names files that cannot be had, and `strict` was asked for.",
    "render_failed": "The renderer failed in a way it did not foresee; the message names the error.",
    "selector_not_found": "No element of the document fits `selector`.",
    "too_deep": "It is nested too deep to be laid out.",
    "too_many_elements": "The document has more elements than are rendered.",
    "too_many_pages": "It would have more pages than are written.",
    "too_many_slides": "It would have more slides than are written.",
    "unknown_theme": "There is no theme of that name, or its file cannot be read.",
    "write_failed": "The file could not be written.",
}
# Problems that no error of the service stands for: the HTTP layer and what nobody foresaw.
HTTP = {
    ProblemCode.NOT_FOUND: ("404", "no", "There is no such address."),
    ProblemCode.METHOD_NOT_ALLOWED: ("405", "no", "The address takes other methods; `Allow` lists them."),
    ProblemCode.INTERNAL: ("500", "yes", "The service failed in a way it did not foresee; its log has the id."),
}
RUNTIME = {
    RuntimeCode.TIMEOUT: "The wall clock ended the program.",
    RuntimeCode.OUT_OF_MEMORY: "The kernel ended the program, or a child that it depends on, for memory.",
    RuntimeCode.OUTPUT_LIMIT: "The program wrote too much to stdout and stderr and was ended.",
    RuntimeCode.DISK_LIMIT: "OUT_DIR, /tmp or a file was full, or too many files or too deep folders were left.",
    RuntimeCode.PROCESS_LIMIT: "The program needed more processes or threads than it may have.",
    RuntimeCode.KILLED: "A signal ended the program.",
    RuntimeCode.NONZERO_EXIT: "The program ended with a status other than 0; its last line of stderr is given.",
    RuntimeCode.SANDBOX_FAILED: "Our failure: the sandbox or the service died. Call again under a new id.",
    RuntimeCode.CANCELLED: "The call was cancelled; its blocks have what the program had printed by then.",
    RuntimeCode.EXECUTION_FAILED: "The program ended well but promised files are missing.",
}
VERDICT = {
    VerdictCode.PRODUCED: "The file is there, opens, and keeps what was promised of it.",
    VerdictCode.MISSING_FILE: "Nothing is there.",
    VerdictCode.EMPTY_FILE: "It has no bytes.",
    VerdictCode.STALE_FILE: "It was there before the run and was not written.",
    VerdictCode.SYMLINK_BLOCKED: "It is a symbolic link.",
    VerdictCode.NOT_REGULAR_FILE: "It is a folder, a pipe, a socket or a device.",
    VerdictCode.PATH_ESCAPE_BLOCKED: "A folder on its path is a symbolic link that leads elsewhere.",
    VerdictCode.TOO_LARGE: "It is larger than a file that is taken out of a sandbox may be.",
    VerdictCode.INVALID: "It does not open as what its extension says, or a check failed. It stays `internal`.",
    VerdictCode.UNUSUALLY_SMALL: "It opens, but is smaller than any real document of its format.",
}
TOOL = {
    # react.read
    ToolCode.MISSING: "None of the paths could be loaded: `missing`, and `reasons` where there is more to say.",
    ToolCode.MISSING_SKILLS: "There are no such skills: `missing_skills`.",
    # react.write, react.stream, react.file, react.patch, react.search_files
    ToolCode.BINARY_FORMAT: "The extension is of no text format; the message names the tool that makes it.",
    ToolCode.CHANNEL_FORMAT: "The channel shows no files of this extension.",
    ToolCode.CONTENT_TOO_LARGE: "The patched text is larger than a written file may be.",
    ToolCode.EMPTY_FILE: "There is nothing to write.",
    ToolCode.HOSTING_FAILED: "Our failure: the file could not be stored or hosted. Call again under a new id.",
    ToolCode.HUNK_MISMATCH: "A hunk does not fit the file: `hunk`, `line`, `expected`, `found`.",
    ToolCode.INVALID_HUNK_HEADER: "The patch cannot be read: `line` of the patch, `text`.",
    ToolCode.INVALID_REGEX: "A regular expression cannot be read: `field`, `position`.",
    ToolCode.MISSING_ARTIFACT_NAME: "The path is blank or names a folder.",
    ToolCode.MISSING_PATCH: "The patch is blank.",
    ToolCode.PATCH_TARGET_MISSING: "There is no such file to patch.",
    ToolCode.PATCH_TARGET_UNREADABLE: "The file to patch is no UTF-8 text, or too large.",
    ToolCode.REGEX_TIMEOUT: "The regular expressions took longer than they may: `field`.",
    ToolCode.UNSAFE_PATH: "A path is absolute, has empty or dot segments, or lies where another file is.",
    # react.hide
    ToolCode.HIDE_BEFORE_CACHE: "It stands in the part of the timeline that a prompt cache holds.",
    ToolCode.HIDE_FAILED: "The path is none, or nothing of it is in view; or the replacement is blank.",
    ToolCode.HIDE_TOO_OLD: "Too much text stands after it: `tokens_after`, `editable_tail_tokens`.",
    # react.plan
    ToolCode.UNKNOWN_STEP: "The status names steps that the plan does not have: `steps`.",
}
NOTICE = {
    NoticeCode.INVALID_PARAMS: "The call was refused: `errors` lists each `field` and its `message`.",
    NoticeCode.PATH_REWRITTEN: "A path was rewritten to the current turn.",
    NoticeCode.EXEC_CONTRACT_REWRITTEN: "Names of the contract were rewritten.",
    NoticeCode.EXEC_CONTRACT_INVALID: "The call was refused: `error` has one of the codes above.",
    NoticeCode.PARAM_REF_NOT_VISIBLE: "The call was refused: `ref`, the value of `param`, leads to no text.",
    NoticeCode.PRE_EXEC_MISSING_PATHS: "The call was refused: `missing` lists what cannot be had.",
    NoticeCode.MISSING_ASSETS: "The document names files that cannot be had: `missing`; placeholders stand in.",
    NoticeCode.MISSING_SID_ASSETS: "Cited sources are files that cannot be had: `missing`.",
    NoticeCode.TOOL_CALL_ERROR: "The call was refused and nothing changed: `error`.",
    NoticeCode.TOOL_RESULT_ERROR: "What the call was to make is not there: `error`.",
    NoticeCode.MISSING_SOURCES: "The code cites sources that are not in the pool: `missing_sids`, ids and ranges.",
    NoticeCode.WORKSPACE_TRUNCATED: "The turn's files are too many: only those that the code names are in place.",
    NoticeCode.HOSTING_FAILED: "A written file could not be stored or hosted: `error`, `retryable`.",
}


WEB = {
    WebCode.URL_NOT_ALLOWED: "No public http or https address, a refused port or spelling, or a downgrade.",
    WebCode.DNS_FAILED: "The host has no address.",
    WebCode.CONNECT_FAILED: "Nothing takes a connection there.",
    WebCode.TLS_FAILED: "The certificate is not valid for the name, or TLS could not be agreed on.",
    WebCode.FETCH_TIMEOUT: "The page, or all pages of the call, took too long; or the search engine did.",
    WebCode.TOO_MANY_REDIRECTS: "More than five.",
    WebCode.HTTP_STATUS: "Another status than 200.",
    WebCode.BAD_RESPONSE: "No valid HTTP, a broken body, or an encoding that was not asked for.",
    WebCode.UNSUPPORTED_TYPE: "No text: a PDF, a picture, an archive. The type is named.",
    WebCode.TOO_LARGE: "The page is larger than `PROOFBOX_WEB_PAGE_BYTES_MAX`.",
    WebCode.UNREADABLE_PAGE: "No readable text was found, or reading it failed.",
    WebCode.FETCH_FAILED: "No page of the call could be fetched: `urls` has the code of each.",
    WebCode.SEARCH_NOT_CONFIGURED: "The operator has named no search engine (`PROOFBOX_WEB_SEARCH_URL`).",
    WebCode.SEARCH_FAILED: "The search engine cannot be reached, or answers something else than SearXNG's JSON.",
}


def _rows(table: dict[object, str]) -> str:
    return "".join(f"| `{code}` | {text} |\n" for code, text in table.items())


def _problems() -> str:
    kinds = [errors.CallerError, errors.OurError]
    classes = [cls for kind in kinds for cls in kind.__subclasses__() if cls.__module__ == errors.__name__]
    return "".join(
        f"| `{cls.code}` | {cls.status} | {'yes' if cls.retryable else 'no'} | {(cls.__doc__ or '').strip()} |\n"
        for cls in classes
    ) + "".join(f"| `{code}` | {' | '.join(row)} |\n" for code, row in HTTP.items())


def errors_page() -> str:
    """The page of all codes."""
    return (
        "# Codes\n\n"
        "Made by `docs/generate.py`. A program's failure and a model's mistake are answers (HTTP 200, "
        "`ok: false`);\nonly the caller's program and the service itself cause problem documents.\n\n"
        "## Mistakes of the model: nothing was run\n\n| `error.code` | |\n|---|---|\n"
        + _rows(dict(CONTRACT))
        + "\n"
        "## Mistakes of the model with a react tool: nothing changed\n\n| `error.code` | |\n|---|---|\n"
        + _rows(dict(TOOL))
        + "\n"
        "## Documents that cannot be rendered\n\n| `error.code` | |\n|---|---|\n" + _rows(dict(RENDERING)) + "\n"
        "## Pages and searches\n\n| `error.code`, of a page or of the call | |\n|---|---|\n"
        + _rows(dict(WEB))
        + "\n"
        "## Failures of a run\n\n| `error.code` | |\n|---|---|\n" + _rows(dict(RUNTIME)) + "\n"
        "## Verdicts on promised files\n\n| `verdict` | |\n|---|---|\n" + _rows(dict(VERDICT)) + "\n"
        "## Notices on the timeline\n\n| `code` | |\n|---|---|\n" + _rows(dict(NOTICE)) + "\n"
        "## Problem documents\n\n| `code` | status | retryable | |\n|---|---|---|---|\n" + _problems()
    )


def settings_page() -> str:
    """The page of all settings."""
    limits = set(limit_names())
    text = (
        "# Settings and limits\n\n"
        "Made by `docs/generate.py` from `service/app/settings.py`. Each is an environment variable. Limits of a\n"
        "call (marked) can be lowered, never raised, by `limits` of a request.\n\n"
        "| variable | default | | of a call |\n|---|---|---|---|\n"
    )
    for name, field in Settings.model_fields.items():
        default = "by the machine" if field.default is PydanticUndefined else field.default
        if name == "seccomp_profile":
            default = "the project's own"
        mark = f"`limits.{name}`" if name in limits else ""
        text += f"| `PROOFBOX_{name.upper()}` | {default} | {field.description} | {mark} |\n"
    return text


def libraries_page() -> str:
    """The page of all Python packages in the sandbox image, with their pinned versions."""
    pinned, asked_for = ((IMAGES / f"requirements.{kind}").read_text(encoding="utf-8") for kind in ("txt", "in"))
    pins = re.findall(r"^([a-z0-9-]+)==(\S+)", pinned, re.MULTILINE)
    named = set(re.findall(r"^[a-z0-9-]+", asked_for, re.MULTILINE))
    text = (
        "# Python packages in the sandbox image\n\n"
        "Made by `docs/generate.py` from `sandbox_images/requirements.in` and `requirements.txt`. "
        "Programs may import any of\nthem; [image.md](image.md) has the commands.\n\n"
        "| package | version |\n|---|---|\n"
    )
    text += "".join(f"| {name} | {version} |\n" for name, version in pins if name in named)
    text += "\n## What they need themselves\n\n| package | version |\n|---|---|\n"
    return text + "".join(f"| {name} | {version} |\n" for name, version in pins if name not in named)


def main() -> int:
    """Writes the pages; with ``--check`` says which are out of date."""
    pages = {"errors.md": errors_page(), "libraries.md": libraries_page(), "settings.md": settings_page()}
    stale = [name for name, text in pages.items() if (HERE / name).read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        for name in stale:
            sys.stdout.write(f"docs/{name} is out of date; run python docs/generate.py\n")
        return 1 if stale else 0
    for name, text in pages.items():
        (HERE / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
