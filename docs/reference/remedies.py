"""What to do about each code: one or two sentences for whoever sees it; a test requires one for every code."""

from reference.gateway_remedies import GATEWAY_REMEDIES

_SMALLER = "Split the document into several, or leave parts out."
_OTHER_PAGE = "Use another page, or let the user attach the text."

REMEDIES = {
    # The contract and the code of an exec call, and the parameters of any tool.
    "invalid_params": "Correct the fields that the notice lists and call again; "
    "[the tools' parameters](tool-parameters.md) have types and limits.",
    "missing_artifacts": "Give `contract` with at least one promise, or `explore: true` for a run without promises.",
    "invalid_artifacts_json": "Send the contract as a list of objects, or as JSON that parses.",
    "invalid_artifacts": "Send a list with at least one object; use a `glob` for many similar files.",
    "invalid_artifact_spec": "Correct the entry that the message names; "
    "[the contract](contract.md#checks) lists which check applies to which format.",
    "invalid_filename": "Promise a relative path such as `report.pdf` or `charts/a.png`, below `files/` of this turn.",
    "duplicate_artifact": "Remove one of the two entries, or give the files different names.",
    "missing_turn_id": "Send `turn_id` with the call.",
    "missing_code": "Send the program as `code`, or a path of a stored program.",
    "code_contaminated": "Send the program alone, without code fences and without tags of the model's channels.",
    "unsafe_path": "Send a relative path without empty, `.` or `..` segments and without control characters.",
    "missing_assets": "Attach or write the files that the message names, correct their paths, or leave `strict` out.",
    "pre_exec_missing_paths": "Use a path that exists: `react.search_files` lists them. The report suggests one.",
    "param_ref_not_visible": "Use the path of a text that exists ([which paths](react-tools.md#texts-by-reference)), "
    "or send the text itself.",
    "empty_content": "Send the document as `content`, or documents as `merge`.",
    "package_not_found": "Check the name and the version at the package index; a private index may lack it.",
    "package_without_wheel": "Ask for a version with a wheel for the Python of the image (`GET /v1/tools` names it), or "
    "[add the library to the image](image.md).",
    "package_conflict": "Ask for other versions. To replace a library of the image, name it in `packages` too.",
    "package_refused": "Ask for another version or package. The message names the wheel and what is wrong with it.",
    "packages_too_large": "Ask for fewer packages or exact versions, or raise the limits of the "
    "[packages of calls](settings.md#packages-of-calls), or those of the key ([packages](packages.md)).",
    # react tools
    "missing": "Read a path that exists: `react.search_files` lists files, the timeline shows the others.",
    "missing_skills": "Use the id of a skill that the operator has installed (`PROOFBOX_SKILLS_DIR`).",
    "binary_format": "Use the tool that the message names, such as `rendering_tools.write_pdf` or an exec tool.",
    "channel_format": "Use another channel, or one of the extensions that the message names.",
    "content_too_large": "Send less: split the text or document into several files.",
    "empty_file": "Write content into the file before the program or call ends.",
    "hosting_failed": "Call again under a new id. If it recurs, check the file store ([stores](stores.md)).",
    "hunk_mismatch": "Read the file again and make the hunk from its present lines; `expected` and `found` differ.",
    "invalid_hunk_header": "Send a unified diff or SEARCH/REPLACE blocks ([forms](react-tools.md#reactpatch)), or "
    "use `react.write` for a whole text.",
    "invalid_regex": "Correct the expression at `position`; escape brackets that are meant literally.",
    "missing_artifact_name": "Give the path of a file, not of a folder.",
    "missing_patch": "Send the diff as `patch`.",
    "patch_target_missing": "Use the path of a file that exists, or write it with `react.write`.",
    "patch_target_unreadable": "Change such a file with a program; only texts up to 10 MiB can be patched.",
    "regex_timeout": "Use a simpler expression, without nested repeats, or narrow `name_regex`.",
    "hide_before_cache": "Hide only newer blocks; this one is part of the cached prompt.",
    "hide_failed": "Use the path of a visible block, and a replacement that is not blank.",
    "hide_too_old": "Hide blocks soon after they appear, or raise `PROOFBOX_EDITABLE_TAIL_TOKENS`.",
    "unknown_step": "Use the numbers or texts of steps of the plan, or send the plan again with all steps.",
    "memory_not_installed": "Install the extra: `pip install 'proofbox[memory]'`, then restart the service.",
    # rendering
    "document_too_complex": _SMALLER,
    "image_too_large": "Render a PDF, a part (`selector`), or a smaller `scale` or width.",
    "invalid_option": "Correct the option that the message names ([tool parameters](tool-parameters.md)).",
    "invalid_page_size": "Use a name such as `A4` or `Letter`, or two lengths such as `210mm 297mm`.",
    "invalid_part": "Correct or leave out the document that the message names; decrypt a protected PDF.",
    "invalid_request": "Correct the field that the message names; [the HTTP API](http-api.md) has the types.",
    "invalid_slide_size": "Use `16:9`, `16:10`, `4:3`, `A4`, or a width and height of 100 to 1,400 mm.",
    "invalid_svg": "Send a drawing with an `<svg>` element.",
    "invalid_template": "Use an unencrypted file that Word or PowerPoint opens, within "
    "[the limits](house-templates.md#house-templates).",
    "invalid_theme": "Correct the field of the theme file; [themes](themes.md) lists the fields and values.",
    "layout_failed": "Simplify the style sheet, or render without it; report the document to the maintainers.",
    "no_tables": "Add a table or a chart, or use another rendering tool.",
    "render_failed": "Report the document with the message. Meanwhile render parts of it to find the cause.",
    "selector_not_found": "Use a selector of an element that the document has, or leave it out.",
    "too_deep": "Reduce the nesting of lists, quotations or elements.",
    "too_many_cells": _SMALLER,
    "too_many_columns": _SMALLER,
    "too_many_elements": _SMALLER,
    "too_many_pages": _SMALLER,
    "too_many_rows": _SMALLER,
    "too_many_sheets": _SMALLER,
    "too_many_slides": _SMALLER,
    "unknown_theme": "Use `plain`, `dark`, `brand`, `paper`, or the path of a theme file of the conversation.",
    "write_failed": "Render again with less content; the sandbox may have no space left.",
    # web
    "url_not_allowed": "Use a public address. The operator opens an intranet with `PROOFBOX_WEB_ALLOWED_NETWORKS` "
    "([where requests go](web-and-memory.md#where-requests-go)).",
    "dns_failed": "Check the spelling of the host; check that the service's machine can resolve names.",
    "connect_failed": "Try later; check the firewall between the service and the internet.",
    "tls_failed": _OTHER_PAGE + " For an intranet set `PROOFBOX_WEB_CA_FILE`.",
    "fetch_timeout": "Fetch fewer pages in a call, or raise `PROOFBOX_WEB_PAGE_S` and `PROOFBOX_WEB_CALL_S`.",
    "too_many_redirects": "Fetch the final address.",
    "http_status": "Check the address; pages behind a login cannot be fetched.",
    "bad_response": _OTHER_PAGE,
    "unsupported_type": "Let the user attach the file; `react.read` and programs open attachments.",
    "too_large": "Let the user attach the page, or raise `PROOFBOX_WEB_PAGE_BYTES_MAX`.",
    "unreadable_page": _OTHER_PAGE,
    "fetch_failed": "Follow the code of each address in `urls`.",
    "search_not_configured": "Set `PROOFBOX_WEB_SEARCH_URL` to a SearXNG instance, and restart the service.",
    "search_failed": "Check that the engine at `PROOFBOX_WEB_SEARCH_URL` runs and has `format=json` enabled.",
    # runs
    "timeout": "Make the program faster, give `timeout_s`, or raise `PROOFBOX_WALL_S`.",
    "out_of_memory": "Read and process the data in parts, or raise `PROOFBOX_MEMORY_BYTES`.",
    "output_limit": "Write large output to a file and print a summary.",
    "disk_limit": "Write fewer or smaller files and delete temporary ones; limits are `PROOFBOX_OUT_DIR_BYTES` "
    "and `PROOFBOX_FILES`.",
    "process_limit": "Start fewer processes or threads at a time, or raise `PROOFBOX_PIDS`.",
    "killed": "The message names the signal. SIGSEGV points to a library: try smaller data or another function.",
    "nonzero_exit": "Read the traceback in the report and correct the program.",
    "sandbox_failed": "If the message states that the outcome is unknown, check what the program may have changed outside. Call "
    "again under a new id. If it recurs, read the service's log, run `proofbox doctor`, and look for workers that die "
    "([operations](operations.md#proofboxworkerslost)).",
    "cancelled": "Use a new id to run it. A client that disconnects has a [grace time](calls.md#lost-connections).",
    "execution_failed": "Follow the verdict of each file, correct the program, and call again under a new id.",
    # verdicts
    "missing_file": "Write the file to `files/` under the promised name; the report names files that are similar.",
    "stale_file": "Write the file again in this run, or leave it out of the contract.",
    "artifact_symlink_blocked": "Write the content itself; links are not stored.",
    "artifact_not_regular_file": "Promise a file; for a folder promise `name/**`.",
    "artifact_path_escape_blocked": "Write into a real folder below `files/`.",
    "artifact_too_large": "Write a smaller file or several, or raise `PROOFBOX_ARTIFACT_BYTES`.",
    "artifact_invalid": "The message has the failed check. `react.read` shows the file; repair it and call again.",
    "file_unusually_small": "Check that the program writes content before it closes the file.",
    # notices
    "protocol_violation.invalid_params": "As [`invalid_params`](#invalid_params).",
    "protocol_violation.path_rewritten": "Nothing. Write paths of the current turn to avoid it.",
    "protocol_violation.exec_contract_rewritten": "Nothing. Promise bare names such as `report.pdf` to avoid it.",
    "protocol_violation.exec_contract_invalid": "Follow the code in `error`.",
    "protocol_violation.param_ref_not_visible": "As [`param_ref_not_visible`](#param_ref_not_visible).",
    "tool_call_error.pre_exec_missing_paths": "As [`pre_exec_missing_paths`](#pre_exec_missing_paths).",
    "tool_call_error.missing_assets": "As [`missing_assets`](#missing_assets).",
    "tool_call_warning.missing_sid_assets": "Cite sources whose files exist, or attach the files.",
    "tool_call_error": "Follow the code in `error`.",
    "tool_result_error": "Follow the code in `error`.",
    "tool_call_warning.missing_sources": "Cite only numbers of the sources pool: `GET …/sources` lists them.",
    "workspace_truncated": "Name the needed files in the document, or raise `PROOFBOX_WORKSPACE_FILES_MAX` and "
    "`PROOFBOX_WORKSPACE_BYTES_MAX`.",
    "file_deleted": "Nothing; make the file again if it is needed.",
    "react.write.hosting_failed": "As [`hosting_failed`](#hosting_failed).",
    # problem documents
    "body_too_large": "Send large files as attachments, or raise `PROOFBOX_BODY_BYTES_MAX` or "
    "`PROOFBOX_ATTACHMENT_BYTES_MAX`.",
    "range_not_satisfiable": "Request a range within the size that `Content-Range` names.",
    "no_provenance": "Wait for the end of the call. Calls of a release without audit lines have none.",
    "not_rerunnable": "Send the program as a new call ([what can run again](provenance.md#run-a-call-again)).",
    "unknown_tool": "Use an id of `GET /v1/tools`. An absent tool may need [an extra](install.md#extras).",
    "unknown_call": "Check the id and `conversation_id`; a deleted conversation has no calls.",
    "unknown_artifact": "List the files: `GET /v1/conversations/{c}/files`.",
    "unknown_conversation": "Check the id and the key: others' conversations and deleted ones are unknown.",
    "conversation_busy": "Cancel the running calls, or repeat the request when they have ended.",
    "ambiguous_call": "Add `?conversation_id=` to the URL.",
    "limit_not_allowed": "Send a lower limit, or raise the operator's [setting](settings.md).",
    "network_not_allowed": "Leave the entry out, or add it to `PROOFBOX_SANDBOX_NETWORK` or to the key "
    "([network](network.md)). Only exec tools have a network.",
    "packages_not_allowed": "Leave the entry out, or set `PROOFBOX_PACKAGE_INDEX` and `PROOFBOX_PACKAGE_NAMES`, or the names of the key "
    "([packages](packages.md)). Only programs in Python and bash have packages.",
    "asset_refused": "Send the bytes in the request, or a URI of this service's own store.",
    "sid_conflict": "Give the new source another number; a number never changes its meaning.",
    "id_reused": "Send another payload under a new id. For the same answer send exactly the same payload.",
    "timeline_moved": "Read the timeline from your last position, then add the blocks again.",
    "unauthorized": "Send `Authorization: Bearer` with a valid key ([keys](access.md#keys)).",
    "forbidden": "Use a key with the scope that `WWW-Authenticate` names.",
    "wrong_tenant": "Leave the headers `Proofbox-Tenant` and `Proofbox-Project` out, or use the key of that tenant.",
    "origin_refused": "Use `localhost`, or add the name to `PROOFBOX_ALLOWED_HOSTS` "
    "([why](access.md#web-pages-on-the-same-machine)).",
    "link_refused": "Request a new link.",
    "storage_quota": "Delete files or conversations ([how](retention.md)), or raise `PROOFBOX_KEY_STORED_BYTES`.",
    "request_timeout": "Send the body faster, or raise `PROOFBOX_BODY_S`.",
    "rate_limited": "Repeat after `Retry-After`. `errors[0].field` names the limit ([limits](access.md#limits)).",
    "queue_full": "Repeat after `Retry-After`; raise `PROOFBOX_QUEUE_MAX`, or add a machine.",
    "queue_timeout": "Repeat the call later; raise `PROOFBOX_RUNNING_MAX`, or add a machine.",
    "shutting_down": "Repeat the call after `Retry-After`: the next process of the service takes it.",
    "engine_unavailable": "Start the container engine, and check it with `proofbox doctor`. "
    "The service needs no restart.",
    "set_aside": "Read the log of the workers, then release the call with `proofbox dispatch dead release` "
    "([how](dispatch.md#calls-that-no-worker-can-begin)), or cancel it.",
    "package_index_unavailable": "Check that the service reaches `PROOFBOX_PACKAGE_INDEX`, its login, and for a private "
    "authority `PROOFBOX_WEB_CA_FILE`. "
    "Call again later; packages that are installed need no index.",
    "store_failed": "Start the database or object store ([what an operator does](faults.md#what-an-operator-does)). "
    "Ask for the call again under the same id.",
    "store_full": "Free space on the disk of the data folder or of the database. No restart is needed. Of packages: call later, or "
    "raise `PROOFBOX_PACKAGE_CACHE_BYTES_MAX`.",
    "not_found": "Check the path: `GET /openapi.json` and [the HTTP API](http-api.md) list them all.",
    "method_not_allowed": "Use a method that the header `Allow` lists.",
    "internal": "Repeat the request. If it recurs, report it with the log lines of the `request_id`.",
    "no_preview": "Download the file; [previews](previews.md) lists the formats and sizes that have one.",
    **GATEWAY_REMEDIES,
}
