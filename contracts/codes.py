"""The stable codes of the wire, one enumeration per table of the protocol."""

from enum import StrEnum


class ContractCode(StrEnum):
    """What can be wrong with a call before anything runs: the model's mistakes, answered with HTTP 200."""

    INVALID_PARAMS = "invalid_params"
    MISSING_ARTIFACTS = "missing_artifacts"
    INVALID_ARTIFACTS_JSON = "invalid_artifacts_json"
    INVALID_ARTIFACTS = "invalid_artifacts"
    INVALID_ARTIFACT_SPEC = "invalid_artifact_spec"
    INVALID_FILENAME = "invalid_filename"
    DUPLICATE_ARTIFACT = "duplicate_artifact"
    MISSING_TURN_ID = "missing_turn_id"
    MISSING_CODE = "missing_code"
    CODE_CONTAMINATED = "code_contaminated"
    UNSAFE_PATH = "unsafe_path"
    PRE_EXEC_MISSING_PATHS = "pre_exec_missing_paths"
    MISSING_ASSETS = "missing_assets"
    PARAM_REF_NOT_VISIBLE = "param_ref_not_visible"
    EMPTY_CONTENT = "empty_content"


class RuntimeCode(StrEnum):
    """How a program's run ended, when it did not end well."""

    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    OUTPUT_LIMIT = "output_limit"
    DISK_LIMIT = "disk_limit"
    PROCESS_LIMIT = "process_limit"
    KILLED = "killed"
    NONZERO_EXIT = "nonzero_exit"
    SANDBOX_FAILED = "sandbox_failed"
    CANCELLED = "cancelled"
    EXECUTION_FAILED = "execution_failed"


class VerdictCode(StrEnum):
    """What became of one promised file."""

    PRODUCED = "produced"
    MISSING_FILE = "missing_file"
    EMPTY_FILE = "empty_file"
    STALE_FILE = "stale_file"
    SYMLINK_BLOCKED = "artifact_symlink_blocked"
    NOT_REGULAR_FILE = "artifact_not_regular_file"
    PATH_ESCAPE_BLOCKED = "artifact_path_escape_blocked"
    TOO_LARGE = "artifact_too_large"
    INVALID = "artifact_invalid"
    UNUSUALLY_SMALL = "file_unusually_small"


class ToolCode(StrEnum):
    """What can be wrong with a call of a react tool: the model's mistakes, answered with HTTP 200."""

    # react.read
    MISSING = "missing"
    MISSING_SKILLS = "missing_skills"
    # react.write, react.stream, react.file, react.patch, react.search_files
    BINARY_FORMAT = "binary_format"
    CHANNEL_FORMAT = "channel_format"
    CONTENT_TOO_LARGE = "content_too_large"
    EMPTY_FILE = "empty_file"
    HOSTING_FAILED = "hosting_failed"
    HUNK_MISMATCH = "hunk_mismatch"
    INVALID_HUNK_HEADER = "invalid_hunk_header"
    INVALID_REGEX = "invalid_regex"
    MISSING_ARTIFACT_NAME = "missing_artifact_name"
    MISSING_PATCH = "missing_patch"
    PATCH_TARGET_MISSING = "patch_target_missing"
    PATCH_TARGET_UNREADABLE = "patch_target_unreadable"
    REGEX_TIMEOUT = "regex_timeout"
    UNSAFE_PATH = "unsafe_path"
    # react.hide
    HIDE_BEFORE_CACHE = "hide_before_cache"
    HIDE_FAILED = "hide_failed"
    HIDE_TOO_OLD = "hide_too_old"
    # react.memsearch
    MEMORY_NOT_INSTALLED = "memory_not_installed"
    # react.plan
    UNKNOWN_STEP = "unknown_step"


class NoticeCode(StrEnum):
    """The codes of ``react.notice`` blocks that a call can leave on the timeline."""

    INVALID_PARAMS = "protocol_violation.invalid_params"
    PATH_REWRITTEN = "protocol_violation.path_rewritten"
    EXEC_CONTRACT_REWRITTEN = "protocol_violation.exec_contract_rewritten"
    EXEC_CONTRACT_INVALID = "protocol_violation.exec_contract_invalid"
    PARAM_REF_NOT_VISIBLE = "protocol_violation.param_ref_not_visible"
    PRE_EXEC_MISSING_PATHS = "tool_call_error.pre_exec_missing_paths"
    MISSING_ASSETS = "tool_call_error.missing_assets"
    MISSING_SID_ASSETS = "tool_call_warning.missing_sid_assets"
    TOOL_CALL_ERROR = "tool_call_error"
    TOOL_RESULT_ERROR = "tool_result_error"
    MISSING_SOURCES = "tool_call_warning.missing_sources"
    WORKSPACE_TRUNCATED = "workspace_truncated"
    FILE_DELETED = "file_deleted"
    HOSTING_FAILED = "react.write.hosting_failed"


class WebCode(StrEnum):
    """Why a page, or a search, could not be had: of each URL, or of the whole call."""

    URL_NOT_ALLOWED = "url_not_allowed"
    DNS_FAILED = "dns_failed"
    CONNECT_FAILED = "connect_failed"
    TLS_FAILED = "tls_failed"
    FETCH_TIMEOUT = "fetch_timeout"
    TOO_MANY_REDIRECTS = "too_many_redirects"
    HTTP_STATUS = "http_status"
    BAD_RESPONSE = "bad_response"
    UNSUPPORTED_TYPE = "unsupported_type"
    TOO_LARGE = "too_large"
    UNREADABLE_PAGE = "unreadable_page"
    FETCH_FAILED = "fetch_failed"
    SEARCH_NOT_CONFIGURED = "search_not_configured"
    SEARCH_FAILED = "search_failed"


class ProblemCode(StrEnum):
    """The codes of problem documents: the caller's program or the service is at fault, never the model."""

    INVALID_REQUEST = "invalid_request"
    BODY_TOO_LARGE = "body_too_large"
    UNKNOWN_TOOL = "unknown_tool"
    UNKNOWN_CALL = "unknown_call"
    UNKNOWN_ARTIFACT = "unknown_artifact"
    UNKNOWN_CONVERSATION = "unknown_conversation"
    CONVERSATION_BUSY = "conversation_busy"
    AMBIGUOUS_CALL = "ambiguous_call"
    UNSAFE_PATH = "unsafe_path"
    LIMIT_NOT_ALLOWED = "limit_not_allowed"
    ASSET_REFUSED = "asset_refused"
    SID_CONFLICT = "sid_conflict"
    ID_REUSED = "id_reused"
    TIMELINE_MOVED = "timeline_moved"
    RANGE_NOT_SATISFIABLE = "range_not_satisfiable"
    NO_PROVENANCE = "no_provenance"
    NOT_RERUNNABLE = "not_rerunnable"
    NO_PREVIEW = "no_preview"
    CANCELLED = "cancelled"
    QUEUE_FULL = "queue_full"
    QUEUE_TIMEOUT = "queue_timeout"
    SHUTTING_DOWN = "shutting_down"
    ENGINE_UNAVAILABLE = "engine_unavailable"
    STORE_FAILED = "store_failed"
    STORE_FULL = "store_full"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    WRONG_TENANT = "wrong_tenant"
    ORIGIN_REFUSED = "origin_refused"
    LINK_REFUSED = "link_refused"
    STORAGE_QUOTA = "storage_quota"
    RATE_LIMITED = "rate_limited"
    REQUEST_TIMEOUT = "request_timeout"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    INTERNAL = "internal"
