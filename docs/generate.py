"""Write the reference pages of settings, errors and libraries from the code; ``--check`` compares."""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from proofbox.cli.commands import build_parser
from proofbox.contracts.codes import (
    ContractCode,
    NoticeCode,
    ProblemCode,
    RuntimeCode,
    ToolCode,
    VerdictCode,
    WebCode,
)
from proofbox.contracts.gateway.codes import ConfigurationCode, GatewayCode, WarningCode
from proofbox.service import errors, gateway_errors
from proofbox.service.app.gateway_settings import GatewaySettings
from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.limits import limit_names

HERE = Path(__file__).parent
IMAGES = HERE.parent / "sandbox_images"
LINE_LENGTH = 140
COMMON_OPTIONS = frozenset({"--url", "--profile", "--local", "--json", "--quiet", "--no-color"})

# The first setting of each group of the page.
GROUPS = {
    "host": "Server",
    "data_dir": "Data and identity",
    "log_format": "Logs and traces",
    "audit_head_s": "Audit",
    "s3_bucket": "Bucket",
    "limits_without_key": "Limits of an API key",
    "engine": "Engine",
    "total_memory_bytes": "All sandboxes together",
    "pool_size": "Warm pool",
    "running_max": "Calls",
    "wall_s": "Limits of a call",
    "render_wall_s": "Tools",
    "retention_days": "Retention",
    "web_allowed_networks": "Web tools",
    "memory_half_life_days": "Workspace and memory",
    "inspect_s_per_file": "Inspector",
    "gateway_env": "Agents and their tools",
}

# One sentence per code: what happened, for the reader of a timeline.
CONTRACT = {
    ContractCode.INVALID_PARAMS: "The `params` do not fit the tool: the notice lists all `errors`.",
    ContractCode.MISSING_ARTIFACTS: "The call has no contract.",
    ContractCode.INVALID_ARTIFACTS_JSON: "The contract is a string that is not JSON.",
    ContractCode.INVALID_ARTIFACTS: "The contract is not a list of objects, is empty, or is too long.",
    ContractCode.INVALID_ARTIFACT_SPEC: "An entry has a blank name, an unknown field or a check that cannot apply.",
    ContractCode.INVALID_FILENAME: "An entry's path is unsafe, or lies in another turn or among attachments.",
    ContractCode.DUPLICATE_ARTIFACT: "Two entries are the same file.",
    ContractCode.MISSING_TURN_ID: "The call has no turn id.",
    ContractCode.MISSING_CODE: "The call has no code.",
    ContractCode.CODE_CONTAMINATED: "The code starts or ends with a code fence, or a channel or thinking tag.",
    ContractCode.UNSAFE_PATH: "A path is absolute, has empty or dot segments, control characters, or is too long.",
    ContractCode.MISSING_ASSETS: "The document names missing files, and `strict` is set.",
    ContractCode.PRE_EXEC_MISSING_PATHS: "The code names missing files of other turns.",
    ContractCode.PARAM_REF_NOT_VISIBLE: "A parameter is the path of a missing text: `param`, `ref`.",
    ContractCode.EMPTY_CONTENT: "The document to render is blank.",
}
# The renderer runs in the sandbox image, so its codes are not an enumeration; a test compares them.
RENDERING = {
    "content_too_large": "The document or its result is too large.",
    "document_too_complex": "The nesting or the number of parts is too large for the format.",
    "image_too_large": "The picture would have too many pixels.",
    "invalid_option": "An option has a value that the format cannot use; the message names it.",
    "invalid_page_size": "`page_size` is neither a known name nor two lengths.",
    "invalid_part": "A document of `merge` is missing, encrypted, broken, or not usable for the format.",
    "invalid_request": "The request does not fit the renderer; the message names the field.",
    "invalid_slide_size": "`slide_size` is neither a known name nor two lengths that slides can have.",
    "invalid_svg": "The content of a drawing has no `<svg>` element.",
    "invalid_template": "`template` is missing, or the format cannot use it; the message has the reason.",
    "invalid_theme": "A field of the theme file has a wrong value; the message names it.",
    "layout_failed": "The layout engine could not lay the document out.",
    "missing_assets": "The document names missing files, and `strict` is set.",
    "no_tables": "The content has neither table nor chart.",
    "render_failed": "The renderer failed unexpectedly; the message names the error.",
    "selector_not_found": "No element of the document matches `selector`.",
    "too_deep": "The nesting is too deep for the layout.",
    "too_many_cells": "A workbook has too many cells.",
    "too_many_columns": "A sheet has too many columns.",
    "too_many_elements": "The document has too many elements.",
    "too_many_pages": "The document has too many pages.",
    "too_many_rows": "A sheet has too many rows.",
    "too_many_sheets": "A workbook has too many sheets.",
    "too_many_slides": "The document has too many slides.",
    "unknown_theme": "There is no theme of that name, or its file cannot be read.",
    "write_failed": "The file could not be written.",
}
# Problems without an error class of the service: the HTTP layer and unexpected failures.
HTTP = {
    ProblemCode.NOT_FOUND: ("404", "The address does not exist."),
    ProblemCode.METHOD_NOT_ALLOWED: ("405", "The address takes other methods; `Allow` lists them."),
    ProblemCode.INTERNAL: ("500, retry", "The service failed unexpectedly; its log has the id."),
}
RUNTIME = {
    RuntimeCode.TIMEOUT: "The wall clock ended the program.",
    RuntimeCode.OUT_OF_MEMORY: "The kernel ended the program, or a child that it needs, for memory.",
    RuntimeCode.OUTPUT_LIMIT: "The program wrote too much to stdout and stderr and was ended.",
    RuntimeCode.DISK_LIMIT: "OUT_DIR, /tmp or a file was full, or too many files or too deep folders were left.",
    RuntimeCode.PROCESS_LIMIT: "The program needed too many processes or threads.",
    RuntimeCode.KILLED: "A signal ended the program.",
    RuntimeCode.NONZERO_EXIT: "The exit status was not 0; the message has the last line of stderr.",
    RuntimeCode.SANDBOX_FAILED: "The sandbox or the service terminated unexpectedly. Call again under a new id.",
    RuntimeCode.CANCELLED: "The call was cancelled; its blocks have the output so far.",
    RuntimeCode.EXECUTION_FAILED: "The program ended well but promised files are missing.",
}
VERDICT = {
    VerdictCode.PRODUCED: "The file exists, opens and passes all checks.",
    VerdictCode.MISSING_FILE: "The file does not exist.",
    VerdictCode.EMPTY_FILE: "The file has no bytes.",
    VerdictCode.STALE_FILE: "The file existed before the run and was not written.",
    VerdictCode.SYMLINK_BLOCKED: "The file is a symbolic link.",
    VerdictCode.NOT_REGULAR_FILE: "The file is a folder, a pipe, a socket or a device.",
    VerdictCode.PATH_ESCAPE_BLOCKED: "A folder on its path is a symbolic link that leads elsewhere.",
    VerdictCode.TOO_LARGE: "The file is larger than `artifact_bytes`.",
    VerdictCode.INVALID: "The file does not open as its extension, or a check failed. It stays `internal`.",
    VerdictCode.UNUSUALLY_SMALL: "The file opens, but is smaller than any real document of its format.",
}
TOOL = {
    # react.read
    ToolCode.MISSING: "None of the paths could be loaded: `missing`, and `reasons` if known.",
    ToolCode.MISSING_SKILLS: "The skills do not exist: `missing_skills`.",
    # react.write, react.stream, react.file, react.patch, react.search_files
    ToolCode.BINARY_FORMAT: "The extension is not of a text format; the message names the right tool.",
    ToolCode.CHANNEL_FORMAT: "The channel cannot show this extension.",
    ToolCode.CONTENT_TOO_LARGE: "The patched text is too large.",
    ToolCode.EMPTY_FILE: "The content is empty.",
    ToolCode.HOSTING_FAILED: "The file could not be stored or hosted. Call again under a new id.",
    ToolCode.HUNK_MISMATCH: "A hunk does not match the file: `hunk`, `line`, `expected`, `found`.",
    ToolCode.INVALID_HUNK_HEADER: "The patch cannot be read: `line` of the patch, `text`.",
    ToolCode.INVALID_REGEX: "A regular expression cannot be read: `field`, `position`.",
    ToolCode.MISSING_ARTIFACT_NAME: "The path is blank or names a folder.",
    ToolCode.MISSING_PATCH: "The patch is blank.",
    ToolCode.PATCH_TARGET_MISSING: "The file to patch does not exist.",
    ToolCode.PATCH_TARGET_UNREADABLE: "The file to patch is not UTF-8 text, or is too large.",
    ToolCode.REGEX_TIMEOUT: "The regular expressions took too long: `field`.",
    ToolCode.UNSAFE_PATH: "A path is absolute, has empty or dot segments, or conflicts with another file.",
    # react.hide
    ToolCode.HIDE_BEFORE_CACHE: "The block is in the part of the timeline that a prompt cache holds.",
    ToolCode.HIDE_FAILED: "The path is invalid or has no visible block, or the replacement is blank.",
    ToolCode.HIDE_TOO_OLD: "Too much text follows the block: `tokens_after`, `editable_tail_tokens`.",
    # react.plan
    ToolCode.UNKNOWN_STEP: "The status names unknown steps: `steps`.",
    ToolCode.MEMORY_NOT_INSTALLED: "Memory search is not installed (`proofbox[memory]`).",
}
NOTICE = {
    NoticeCode.INVALID_PARAMS: "The call was refused: `errors` lists each `field` and its `message`.",
    NoticeCode.PATH_REWRITTEN: "A path was rewritten to the current turn.",
    NoticeCode.EXEC_CONTRACT_REWRITTEN: "Names of the contract were rewritten.",
    NoticeCode.EXEC_CONTRACT_INVALID: "The call was refused: `error` has one of the codes above.",
    NoticeCode.PARAM_REF_NOT_VISIBLE: "The call was refused: `ref`, the value of `param`, has no text.",
    NoticeCode.PRE_EXEC_MISSING_PATHS: "The call was refused: `missing` lists the files.",
    NoticeCode.MISSING_ASSETS: "The document names missing files: `missing`; placeholders replace them.",
    NoticeCode.MISSING_SID_ASSETS: "Cited sources are missing files: `missing`.",
    NoticeCode.TOOL_CALL_ERROR: "The call was refused and nothing changed: `error`.",
    NoticeCode.TOOL_RESULT_ERROR: "The call has no result: `error`.",
    NoticeCode.MISSING_SOURCES: "The code cites unknown sources: `missing_sids`, ids and ranges.",
    NoticeCode.WORKSPACE_TRUNCATED: "The turn has too many files: only those that the code names are placed.",
    NoticeCode.INVALID_INPUT: "The call was refused: `errors` lists each `field` and its `message`.",
    NoticeCode.NO_ACTIVE_SPACE: "The run has no active space that its agent is a member of: nothing was posted.",
    NoticeCode.LEFT_SPACE: "The agent left the space, or it was archived, during the call: it has no output there.",
    NoticeCode.FILE_DELETED: "A client deleted a file: `path`; earlier blocks do not have its content any more.",
    NoticeCode.HOSTING_FAILED: "A written file could not be stored or hosted: `error`, `retryable`.",
}


WEB = {
    WebCode.URL_NOT_ALLOWED: "Not a public http or https address, a refused port or spelling, or a downgrade.",
    WebCode.DNS_FAILED: "The host has no address.",
    WebCode.CONNECT_FAILED: "The host refuses connections.",
    WebCode.TLS_FAILED: "The certificate is not valid for the name, or the TLS handshake failed.",
    WebCode.FETCH_TIMEOUT: "The page, all pages of the call, or the search engine took too long.",
    WebCode.TOO_MANY_REDIRECTS: "More than five redirects.",
    WebCode.HTTP_STATUS: "The status is not 200.",
    WebCode.BAD_RESPONSE: "Invalid HTTP, a broken body, or an unrequested encoding.",
    WebCode.UNSUPPORTED_TYPE: "Not text: a PDF, a picture, an archive. The message names the type.",
    WebCode.TOO_LARGE: "The page is larger than `PROOFBOX_WEB_PAGE_BYTES_MAX`.",
    WebCode.UNREADABLE_PAGE: "The page has no readable text, or reading failed.",
    WebCode.FETCH_FAILED: "No page could be fetched: `urls` has the code of each.",
    WebCode.SEARCH_NOT_CONFIGURED: "No search engine is configured (`PROOFBOX_WEB_SEARCH_URL`).",
    WebCode.SEARCH_FAILED: "The search engine cannot be reached, or does not answer with SearXNG's JSON.",
}

GATEWAY = {
    GatewayCode.INVALID_INPUT: "The input does not fit `inputSchema` or a template; the notice lists all `errors`.",
    GatewayCode.NO_ACTIVE_SPACE: "Nobody could answer: the run has no active space that its agent is a member of.",
    GatewayCode.NO_SUCH_SPACE: "There is no space of that id, or the agent is not a member of it.",
    GatewayCode.NOT_REPLYABLE: "The message is the record of a tool call.",
    GatewayCode.NOT_AVAILABLE: "This release cannot run tools of this kind yet.",
    GatewayCode.UNKNOWN_ITEM: "An id or key of the list is unknown.",
    GatewayCode.TOO_MANY_ITEMS: "The agent has too many goals, memories or plans.",
    GatewayCode.TOO_MANY_WAITS: "Too many calls of the run wait.",
    GatewayCode.INVALID_SCHEDULE: "The schedule of a plan cannot be read, or its times are under 60 s apart.",
    GatewayCode.RUN_ENDED: "The run has ended.",
    GatewayCode.HTTP_STATUS: "The status is not 2xx: `status`, and the first 2 KiB of the body.",
    GatewayCode.RESPONSE_TOO_LARGE: "The response is larger than the operator allows, packed or unpacked.",
    GatewayCode.REDIRECT_REFUSED: "Only GET is redirected, within its origin and at most three times.",
    GatewayCode.EXTERNAL_FAILED: "The service did not answer with 2xx and JSON.",
    GatewayCode.WAIT_EXPIRED: "Nobody answered in time.",
    GatewayCode.USER_ERROR: "The person or service answered with an error.",
    GatewayCode.USER_CANCELLED: "The person or service cancelled.",
    GatewayCode.DENIED: "A person denied the call; nothing ran.",
    GatewayCode.COMPUTE_FAILED: "The expression has no result; the message has the last line of the error.",
    GatewayCode.ENDPOINT_NOT_CONFIGURED: "The operator has no endpoint of that name.",
    GatewayCode.IMAGE_FAILED: "The endpoint made no picture.",
    GatewayCode.SUB_AGENT_FAILED: "The sub-agent's model gave no usable answer.",
    GatewayCode.SUB_AGENT_LIMIT: "The sub-agent reached a limit before it had an answer.",
    GatewayCode.MCP_UNAVAILABLE: "The MCP server does not answer.",
    GatewayCode.MCP_TOOL_ERROR: "The MCP server's tool failed.",
    GatewayCode.TOOL_INTERRUPTED: "The service ended during the call. It may have had effects and is not repeated.",
    GatewayCode.UNKNOWN_ENV: "`${env.X}` has no value for this project and host.",
    GatewayCode.ABANDONED: "Of a record: the arguments stopped before the call was made.",
    GatewayCode.LEFT_SPACE: "Of a record: the agent left the space, or it was archived, during the call.",
}
WARNING = {
    WarningCode.NO_ACTIVE_SPACE: "The call was not posted: the run has no active space of its agent.",
    WarningCode.LEFT_SPACE: "The output was not posted: the agent left the space, or it was archived.",
    WarningCode.MENTION_DEPTH: "A mention made no run: too many mentions by agents led to it.",
    WarningCode.NAME_TAKEN: "A tool of an MCP server has the name of another and was left out.",
    WarningCode.MCP_UNAVAILABLE: "An MCP server does not answer; its tools are left out.",
    WarningCode.MCP_TOOL_MISSING: "An MCP server does not have a tool of `allowedTools`.",
    WarningCode.MCP_SCHEMA_REFUSED: "The schema of an MCP server's tool is refused; the tool is left out.",
    WarningCode.MCP_TOOL_CHANGED: "An MCP server's tool differs from its pin and is left out.",
    WarningCode.PLAIN_SECRET: "A header has a literal credential; use `${env.X}`.",
    WarningCode.BLANK_DESCRIPTION: "A tool has no description for the model.",
}
CONFIGURATION = {
    ConfigurationCode.INVALID_VALUE: "The value is not allowed here; the message names what is.",
    ConfigurationCode.INVALID_SCHEMA: "Not a JSON Schema, or one that refers elsewhere, is too large, or has a "
    "pattern that is not linear-time.",
    ConfigurationCode.INVALID_TEMPLATE: "A placeholder cannot be read or resolved, or is not allowed there.",
    ConfigurationCode.UNKNOWN_ENV: "`${env.X}` has no value for this project and host.",
    ConfigurationCode.NAME_TAKEN: "Two tools have one name, or a built-in tool has it.",
    ConfigurationCode.TOO_LARGE: "The value is larger than allowed.",
}


def _rows(table: dict[object, str]) -> str:
    return "".join(f"- `{code}`: {text}\n" for code, text in table.items())


def _problems() -> str:
    kinds = [errors.CallerError, errors.OurError]
    modules = (errors.__name__, gateway_errors.__name__)
    classes = [cls for kind in kinds for cls in kind.__subclasses__() if cls.__module__ in modules]
    return "".join(
        f"- `{cls.code}` ({cls.status}{', retry' if cls.retryable else ''}): {(cls.__doc__ or '').strip()}\n"
        for cls in classes
    ) + "".join(f"- `{code}` ({status}): {text}\n" for code, (status, text) in HTTP.items())


def errors_page() -> str:
    """The page of all codes."""
    return (
        "# Codes\n\n"
        "Made by `docs/generate.py`. Failures of a program and mistakes of a model are answers (HTTP 200, "
        "`ok: false`).\nErrors of the client or the service are problem documents.\n\n"
        "## Mistakes of the model: nothing ran\n\n" + _rows(dict(CONTRACT)) + "\n"
        "## Mistakes of the model with a react tool: nothing changed\n\n" + _rows(dict(TOOL)) + "\n"
        "## Documents that cannot be rendered\n\n" + _rows(dict(RENDERING)) + "\n"
        "## Pages and searches\n\n" + _rows(dict(WEB)) + "\n"
        "## Calls of an agent's tools\n\n" + _rows(dict(GATEWAY)) + "\n"
        "## Warnings\n\n" + _rows(dict(WARNING)) + "\n"
        "## Mistakes in an agent's configuration: the `code` of each of the `errors`\n\n"
        + _rows(dict(CONFIGURATION))
        + "\n"
        "## Failures of a run\n\n" + _rows(dict(RUNTIME)) + "\n"
        "## Verdicts on promised files\n\n" + _rows(dict(VERDICT)) + "\n"
        "## Notices on the timeline\n\n" + _rows(dict(NOTICE)) + "\n"
        "## Problem documents\n\nThe status is in brackets; *retry* means `retryable`.\n\n" + _problems()
    )


def settings_page() -> str:
    """The page of all settings."""
    limits = set(limit_names())
    text = (
        "# Settings and limits\n\n"
        "Made by `docs/generate.py` from `service/app/settings.py` and `gateway_settings.py`. Each setting is an\n"
        "environment variable; the default is in brackets. A request can lower, never raise,\n"
        "the limits that are marked with `limits`.\n"
    )
    for name in sorted(Settings.model_fields, key=GatewaySettings.model_fields.__contains__):
        field = Settings.model_fields[name]
        if name in GROUPS:
            text += f"\n## {GROUPS[name]}\n\n"
        mark = f" `limits.{name}`." if name in limits else ""
        text += f"- `PROOFBOX_{name.upper()}` ({_default(name, field.default)}): {field.description}{mark}\n"
    return text


def _default(name: str, value: Any) -> str:
    if name == "seccomp_profile":
        return "the project's"
    if value is PydanticUndefined:
        return "depends on the machine"
    shown = value.get_secret_value() if isinstance(value, SecretStr) else value
    if shown is None:
        return "none"
    return "empty" if shown in ("", (), {}) else str(shown)


def libraries_page() -> str:
    """The page of all Python packages in the sandbox image, with their pinned versions."""
    pinned, asked_for = ((IMAGES / f"requirements.{kind}").read_text(encoding="utf-8") for kind in ("txt", "in"))
    pins = re.findall(r"^([a-z0-9-]+)==(\S+)", pinned, re.MULTILINE)
    named = set(re.findall(r"^[a-z0-9-]+", asked_for, re.MULTILINE))
    text = (
        "# Python packages in the sandbox image\n\n"
        "Made by `docs/generate.py`. Programs can import all of them; [image.md](image.md) lists the commands, "
        "and\n[requirements.txt](../sandbox_images/requirements.txt) also the dependencies of these packages.\n\n"
    )
    listed = ", ".join(f"{name} {version}" for name, version in pins if name in named)
    return text + textwrap.fill(listed, LINE_LENGTH, break_on_hyphens=False) + ".\n"


def commands_page() -> str:
    """The page of all commands and options."""
    text = (
        "# Commands\n\n"
        "Made by `docs/generate.py`. [command-line.md](command-line.md) explains the options that most commands "
        "have:\n`--url`, `--profile`, `--local`, `--json`, `--quiet` and `--no-color`.\n"
    )
    for parser, summary in _parsers(build_parser()):
        options = [line for action in parser._actions if (line := _option(action))]  # noqa: SLF001 - no other way
        text += f"\n## {parser.prog}\n\n{summary[0].upper()}{summary[1:]}.\n"
        text += "\n" * bool(options) + "".join(f"- {line}\n" for line in options)
    return text


def _parsers(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Every command with its summary, in the order of the help."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to its parsers
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for choice in action._choices_actions:  # noqa: SLF001
                command = action.choices[str(choice.metavar or choice.dest).split(" ")[0]]
                yield from list(_parsers(command)) or [(command, choice.help or "")]


def _option(action: argparse.Action) -> str | None:
    """An option or argument with its help; None for those that most commands have, and hidden ones."""
    is_common = not COMMON_OPTIONS.isdisjoint(action.option_strings)
    if action.help in (None, argparse.SUPPRESS) or is_common or "-h" in action.option_strings:
        return None
    names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
    value = f" {action.metavar or action.dest.upper()}" if action.option_strings and action.nargs != 0 else ""
    if action.choices is not None:
        value = f" {'|'.join(map(str, action.choices))}"
    return f"`{names}{value}`: {action.help}"


def main() -> int:
    """Write the pages; with ``--check`` list those that are out of date."""
    pages = {
        "commands.md": commands_page(),
        "errors.md": errors_page(),
        "libraries.md": libraries_page(),
        "settings.md": settings_page(),
    }
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
