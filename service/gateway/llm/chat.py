"""The messages of chat completions: what is sent to a model, and what its answer is read as."""

import re
from dataclasses import dataclass, field
from typing import Any

from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.gateway.response_body import parse_json, read_json
from proofbox.service.visible_text import visible_line
from proofbox.service.web.client.outgoing import OutgoingResponse
from proofbox.service.web.port import clean_text

NAME_CHARACTERS_MAX = 64
_ID_CHARACTERS_MAX = 200
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what servers take as the name of a function
_NO_NAME = "unknown"
_COUNT_MAX = 10**9


class UnreadableReplyError(Exception):
    """A response is no chat completion; the text is what is wrong."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call of a tool that a model asks for.

    Attributes:
        request_id: the model's id of it, which its result names.
        name: the tool's name as the model wrote it, shortened and without hidden characters.
        params: the arguments; None if they cannot be read as a JSON object.
    """

    request_id: str
    name: str
    params: dict[str, Any] | None

    @property
    def sent_name(self) -> str:
        """The name as servers take it."""
        return self.name if _NAME.fullmatch(self.name) else _NO_NAME


@dataclass(slots=True)
class TokenUsage:
    """Tokens of one reply or of several.

    Attributes:
        prompt: of what was sent.
        completion: of what the model wrote.
    """

    prompt: int = 0
    completion: int = 0

    @property
    def total(self) -> int:
        """Both together."""
        return self.prompt + self.completion

    def add(self, other: "TokenUsage") -> None:
        """Adds those of another reply."""
        self.prompt += other.prompt
        self.completion += other.completion

    def to_json(self) -> dict[str, int]:
        """As results show it."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.total,
        }


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What a model answered.

    Attributes:
        text: its text; empty if it wrote none.
        requests: the tools that it asks for, in order.
        is_cut: whether the endpoint ended it for its length.
        is_withheld: whether the endpoint withheld it for its content.
        usage: the tokens, as the endpoint counted them; None if it did not.
    """

    text: str
    requests: tuple[ToolRequest, ...] = ()
    is_cut: bool = False
    is_withheld: bool = False
    usage: TokenUsage | None = field(default=None)

    @property
    def message(self) -> dict[str, Any]:
        """The reply as a message of the conversation that goes on; unreadable arguments are empty there."""
        calls = [
            {
                "id": request.request_id,
                "type": "function",
                "function": {"name": request.sent_name, "arguments": compact_json(request.params or {})},
            }
            for request in self.requests
        ]
        return {"role": "assistant", "content": self.text or None, "tool_calls": calls}


def result_message(request: ToolRequest, content: str) -> dict[str, Any]:
    """The result of a tool as a message."""
    return {"role": "tool", "tool_call_id": request.request_id, "content": content}


def read_reply(response: OutgoingResponse, redactor: Redactor) -> ChatReply:
    """Reads a chat completion.

    Args:
        response: the response.
        redactor: removes the endpoint's key from it.

    Raises:
        UnreadableReplyError: it is none.
    """
    try:
        value = read_json(response, redactor)
    except ValueError as exc:
        raise UnreadableReplyError("it is no JSON") from exc
    choices = value.get("choices") if isinstance(value, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise UnreadableReplyError("it has no choices[0].message")
    asked = message.get("tool_calls")
    requests = [_read_request(each, number) for number, each in enumerate(asked if isinstance(asked, list) else [])]
    reason = choice.get("finish_reason")
    return ChatReply(
        text=clean_text(_text_of(message.get("content"))),
        requests=tuple(requests),
        is_cut=reason == "length",
        is_withheld=reason == "content_filter",
        usage=_read_usage(value.get("usage")),
    )


def _text_of(content: Any) -> str:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _read_request(value: Any, number: int) -> ToolRequest:
    value = value if isinstance(value, dict) else {}
    function = value.get("function")
    function = function if isinstance(function, dict) else {}
    name, request_id = function.get("name"), value.get("id")
    shown = visible_line(name)[:NAME_CHARACTERS_MAX] if isinstance(name, str) else ""
    is_usable_id = isinstance(request_id, str) and 0 < len(request_id) <= _ID_CHARACTERS_MAX
    return ToolRequest(
        str(request_id) if is_usable_id else f"call_{number + 1}",
        shown,
        _read_arguments(function.get("arguments")),
    )


def _read_arguments(value: Any) -> dict[str, Any] | None:
    """Arguments as an object; a model writes them as JSON text, and nothing for none."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def _read_usage(value: Any) -> TokenUsage | None:
    if not isinstance(value, dict):
        return None
    prompt, completion, total = (
        _count(value.get(name)) for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    )
    if prompt is None and completion is None and total is None:
        return None
    known = (prompt or 0) + (completion or 0)
    return TokenUsage(prompt or 0, (completion or 0) + max(0, (total or 0) - known))


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return min(value, _COUNT_MAX) if is_count else None
