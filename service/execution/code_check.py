"""The check of a program before it runs: it runs as given (`ExecCall.has_carriage_returns`), or is refused."""

import json
import re

from proofbox.contracts.artifacts import ContractError
from proofbox.contracts.codes import ContractCode

_FENCE = re.compile(r"(```+|~~~+)[\w+-]*")
# No line of a program begins so; a line may end so, in a comment.
_OPENING_FENCE = re.compile(r"```[^`]*")
_MARKER_CHARS_MAX = 40
_TAG = re.compile(
    r"</?(?:channel(?::[\w-]+)?|thinking|think|reasoning|scratchpad|antml:\w+)(?:\s[^<>]*)?>|<\|[\w-]+\|>",
    re.IGNORECASE,
)
_WRAPPED_AS = ("code", "script", "source", "program", "command", "python", "javascript", "bash")
_WRAPPER_KEYS_MAX = 6


def encode_code(code: str | None) -> bytes:
    """Returns the bytes of the program.

    Raises:
        ContractError: ``missing_code`` if there is none; ``code_contaminated`` {marker, line} if its very start
            or end is a code fence, or a channel or thinking tag: text of the model's protocol, not of the
            program. So is a whole call as JSON, whose program would print nothing and end well.
    """
    if code is None or not code.strip():
        raise ContractError(ContractCode.MISSING_CODE, "the call has no code; send the program beside the params")
    try:
        source = code.encode()
    except UnicodeEncodeError as exc:
        raise ContractError(
            ContractCode.CODE_CONTAMINATED,
            "the code holds a lone surrogate, which no encoding can write; send valid Unicode",
            marker="lone surrogate",
            line=code.count("\n", 0, exc.start) + 1,
        ) from exc
    if (key := _wrapped_under(code)) is not None:
        raise ContractError(
            ContractCode.CODE_CONTAMINATED,
            f"the code is a JSON object that holds the program as '{key}'; send the program alone",
            marker=f'{{"{key}"',
            line=1,
        )
    lines = code.split("\n")
    shown = [number for number, line in enumerate(lines, 1) if line.strip()]
    for number, at_end in ((shown[0], False), (shown[-1], True)):
        marker = _marker(lines[number - 1].strip(), at_end=at_end)
        if marker is not None:
            raise ContractError(
                ContractCode.CODE_CONTAMINATED,
                f"line {number} of the code holds '{marker}', which is no part of a program; send the code alone",
                marker=marker,
                line=number,
            )
    return source


def _wrapped_under(code: str) -> str | None:
    """The key of a JSON object whose value is the program; None if the code is a program."""
    if not code.lstrip().startswith("{"):
        return None
    try:
        call = json.loads(code)
    except (ValueError, RecursionError):
        return None
    if not isinstance(call, dict) or len(call) > _WRAPPER_KEYS_MAX:
        return None
    return next((key for key in _WRAPPED_AS if isinstance(call.get(key), str)), None)


def _marker(line: str, *, at_end: bool) -> str | None:
    if _FENCE.fullmatch(line) or (not at_end and _OPENING_FENCE.fullmatch(line)):
        return line[:_MARKER_CHARS_MAX]
    tags = list(_TAG.finditer(line))
    if tags and (tags[-1].end() == len(line) if at_end else tags[0].start() == 0):
        return tags[-1 if at_end else 0][0]
    return None
