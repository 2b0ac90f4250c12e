"""What of the JSON in blocks a model reads: facts that it acts on, each of them once.

The blocks keep all fields. The view drops times, hashes, and what stands in a line above already.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from proofbox.contracts.codes import NoticeCode
from proofbox.service.visible_text import visible_text

_OF_A_DIGEST = ("mime", "size_bytes", "description", "edited", "sources_used", "write_warning", "error", "sid")
# The head of a result has the id of the call and the tool, the path of an acknowledgement has its iteration.
_IN_THE_HEAD = frozenset({"tool_id", "tool_call_id", "ts", "iteration"})
_OF_EVERY_NOTICE = frozenset({"code", "message", "error"})
_OF_AN_ERROR = ("code", "message")
_SHOWN_BY_THE_RESULT = frozenset({NoticeCode.TOOL_CALL_ERROR, NoticeCode.TOOL_RESULT_ERROR})


def format_digest_line(digest: Mapping[str, Any]) -> str:
    """The line of an artifact's digest, below its paths; empty if it has nothing beyond them."""
    shown = {name: digest[name] for name in _OF_A_DIGEST if not _is_blank(digest.get(name))}
    if digest.get("visibility") == "internal":
        shown["visibility"] = "internal"
    return _json(shown) if shown else ""


def format_call(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What is shown of a call."""
    return {name: value for name, value in payload.items() if name != "ts"}


def format_notice(payload: Mapping[str, Any], *, has_result: bool = False) -> dict[str, Any]:
    """What is shown of a notice: not the details that its message has word for word.

    With ``has_result`` the result of its call comes behind it: that has the message and the details of its error.
    """
    if has_result and payload.get("code") in _SHOWN_BY_THE_RESULT:
        return {name: payload[name] for name in ("code", "error") if name in payload}
    message = str(payload.get("message", ""))
    return {
        name: value
        for name, value in payload.items()
        if name in _OF_EVERY_NOTICE or not _is_in_text(value, message)
    }


def format_result(
    payload: Mapping[str, Any], params: Mapping[str, Any], notices: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """What is shown of a call's result: not what its head, its parameters and its notices show.

    An error always has its code and its message.

    Args:
        payload: the result.
        params: the parameters of the call, as far as they are in view.
        notices: what is shown of the notices of the call.
    """
    shown = {
        name: value
        for name, value in payload.items()
        if name not in _IN_THE_HEAD and not (name in params and params[name] == value)
    }
    if isinstance(shown.get("reasons"), dict) and list(shown["reasons"]) == shown.get("missing"):
        shown.pop("missing")  # the reasons name each path
    error = shown.get("error")
    if not isinstance(error, dict):
        return shown
    shown.pop("error")
    for notice in notices:
        if notice.get("error") == error.get("code"):
            shown = _beyond(notice, shown)
            error = {name: value for name, value in error.items() if name in _OF_AN_ERROR} | _beyond(notice, error)
    return {**{name: value for name, value in shown.items() if value}, "error": error}


def _beyond(notice: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a notice does not have with the same value."""
    return {name: value for name, value in fields.items() if name not in notice or notice[name] != value}


def json_text(shown: Mapping[str, Any], payload: Mapping[str, Any], text: str | None) -> str:
    """The JSON of what is shown of ``payload``; ``text``, which has all of it, if nothing is left out."""
    return _json(shown) if shown != payload or text is None else visible_text(text)


def _is_blank(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def _is_in_text(value: Any, text: str) -> bool:
    """Whether a text has every word that a value consists of; numbers and truth values are never in it."""
    return all(isinstance(leaf, str) and leaf in text for leaf in _leaves(value))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def _json(value: Any) -> str:
    return visible_text(json.dumps(value, ensure_ascii=False))
