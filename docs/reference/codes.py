"""One sentence per code: what happened, for the reader of a timeline or an answer."""

from collections.abc import Iterator

from proofbox.contracts.codes import (
    ContractCode,
    NoticeCode,
    ProblemCode,
    RuntimeCode,
    ToolCode,
    VerdictCode,
    WebCode,
)
from proofbox.service import access_errors, errors, gateway_errors
from reference.gateway_codes import CONFIGURATION, GATEWAY, WARNING

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
    ContractCode.PACKAGE_NOT_FOUND: "The package index has no such package or version.",
    ContractCode.PACKAGE_WITHOUT_WHEEL: "A package has no wheel for the Python of the sandbox.",
    ContractCode.PACKAGE_CONFLICT: "No versions fit together, and with the libraries of the image.",
    ContractCode.PACKAGE_REFUSED: "A wheel is damaged or unsafe, or has another hash than announced.",
    ContractCode.PACKAGES_TOO_LARGE: "The packages take more bytes, files or number than operator or key allow.",
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
    RuntimeCode.SANDBOX_FAILED: "The sandbox terminated unexpectedly, or the service or worker was lost meanwhile, as "
    "the message states. The program may have had effects outside. Call again under a new id.",
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
    ToolCode.HOSTING_FAILED: "The file could not be stored. Call again.",
    ToolCode.HUNK_MISMATCH: "A hunk does not match the file: `hunk`, `line`, `expected`, `found`.",
    ToolCode.INVALID_HUNK_HEADER: "The patch cannot be read: `line` of the patch, `text`.",
    ToolCode.INVALID_REGEX: "A regular expression cannot be read: `field`, `position`.",
    ToolCode.MISSING_ARTIFACT_NAME: "The path is blank or names a folder.",
    ToolCode.MISSING_PATCH: "The patch is blank.",
    ToolCode.PATCH_TARGET_MISSING: "The file to patch does not exist.",
    ToolCode.PATCH_TARGET_UNREADABLE: "The file to patch is no text, or is too large.",
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
    NoticeCode.WORKSPACE_TRUNCATED: "The turn of a document has too many files: only those that it names are placed.",
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


def problems() -> Iterator[tuple[str, str, str]]:
    """Code, status and meaning of each problem document."""
    kinds = [errors.CallerError, errors.OurError]
    modules = (errors.__name__, access_errors.__name__, gateway_errors.__name__)
    for cls in (cls for kind in kinds for cls in kind.__subclasses__() if cls.__module__ in modules):
        meaning = (cls.__doc__ or "").strip().replace("``", "`")
        yield str(cls.code), f"{cls.status}{', retry' if cls.retryable else ''}", meaning
    for code, (status, meaning) in HTTP.items():
        yield str(code), status, meaning


def sections() -> dict[str, list[tuple[str, str]]]:
    """The parts of the page of codes: a heading, and codes with their meanings."""
    tables: dict[str, dict[object, str]] = {
        "Mistakes of the model: nothing ran": dict(CONTRACT),
        "Mistakes of the model with a react tool: nothing changed": dict(TOOL),
        "Documents that cannot be rendered": dict(RENDERING),
        "Pages and searches": dict(WEB),
        "Calls of an agent's tools": dict(GATEWAY),
        "Warnings": dict(WARNING),
        "Mistakes in an agent's configuration: the `code` of each of the `errors`": dict(CONFIGURATION),
        "Failures of a run": dict(RUNTIME),
        "Verdicts on promised files": dict(VERDICT),
        "Notices on the timeline": dict(NOTICE),
    }
    listed = {title: [(str(code), text) for code, text in table.items()] for title, table in tables.items()}
    listed["Problem documents"] = [(code, f"({status}) {meaning}") for code, status, meaning in problems()]
    return listed
