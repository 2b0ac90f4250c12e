"""A server that asks for input: a person in the active space answers its forms, and the tool is called again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.suspension import Suspension
from proofbox.service.gateway.mcp.port import Action, AskedForm, AskedInput, InputAnswers, McpFailedError
from proofbox.service.gateway.posting import WaitCard
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.gateway.response_body import clean_json
from proofbox.service.gateway.schema_check import SchemaRefusedError, check_schema
from proofbox.service.gateway.tool_call import GatewayCall
from proofbox.service.gateway.waits.answers import expiry, new_wait_id
from proofbox.service.gateway.waits.policy import WaitPolicy, fail_without_space, spec_of
from proofbox.service.gateway.waits.port import OpenWait
from proofbox.service.web.port import clean_text

KIND = "elicitation"
TIMEOUT_MS = 600_000
"""How long a person may take for one form."""
ROUNDS_MAX = 10
"""How often one call may be answered by a request for input."""
FORMS_MAX = 10
_KEY_CHARACTERS_MAX = 200
_STATE_BYTES_MAX = 256 * 1024
_MESSAGE_CHARACTERS_MAX = 4_096


@dataclass(slots=True)
class Questions:
    """What a server asked for, and what was answered so far; a wait stores it.

    Attributes:
        forms: by the server's key: ``message`` and ``schema``.
        actions: by key: what the person did; what is never shown to anybody is declined.
        contents: by key: the form as it was filled in.
        state: what has to be returned with the answers.
        rounds: how often the server has asked.
    """

    forms: dict[str, dict[str, Any]]
    actions: dict[str, Action] = field(default_factory=dict)
    contents: dict[str, dict[str, Any]] = field(default_factory=dict)
    state: str | None = None
    rounds: int = 1

    @property
    def open_key(self) -> str | None:
        """The key of the next form that somebody has to answer."""
        return next((key for key in self.forms if key not in self.actions), None)

    @property
    def answers(self) -> InputAnswers:
        """The answers, once no form is open."""
        return InputAnswers(self.actions, self.contents, self.state)

    def to_json(self) -> dict[str, Any]:
        """Returns it as a JSON object, for the record of the wait."""
        return {
            "forms": self.forms,
            "actions": self.actions,
            "contents": self.contents,
            "state": self.state,
            "rounds": self.rounds,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Questions":
        """Returns what `to_json` stored."""
        return cls(**value)


def questions_of(asked: AskedInput, redactor: Redactor, rounds: int, *, is_declined: bool) -> Questions:
    """What a server asks for, checked, so that it can be stored and shown. Belongs into a thread.

    Args:
        asked: what it asks for.
        redactor: removes the secrets of the server.
        rounds: how often it has asked for this call, this time included.
        is_declined: whether nobody is asked.

    Raises:
        McpFailedError: ``mcp_tool_error``: it asks too much, or for what cannot be shown or stored.
    """
    if rounds > ROUNDS_MAX or len(asked.forms) + len(asked.others) > FORMS_MAX:
        raise _refused(f"it asks for input too often (limit {ROUNDS_MAX} times and {FORMS_MAX} forms)")
    if any(len(key) > _KEY_CHARACTERS_MAX for key in (*asked.forms, *asked.others)):
        raise _refused(f"a key of its requests for input is too long (limit {_KEY_CHARACTERS_MAX} characters)")
    if asked.state is not None and len(asked.state.encode(errors="replace")) > _STATE_BYTES_MAX:
        raise _refused(f"its request state is too large (limit {_STATE_BYTES_MAX:,} bytes)")
    declined: dict[str, Action] = dict.fromkeys(asked.others, "decline")
    if is_declined:
        declined |= dict.fromkeys(asked.forms, "decline")
        return Questions({}, declined, state=asked.state, rounds=rounds)
    given = [asked.state or "", *asked.forms, *asked.others]
    if any(redactor.redact_text(text) != text for text in given):
        raise _refused("its request state repeats a secret, which cannot be stored")
    forms = {key: _form(form, redactor) for key, form in asked.forms.items()}
    return Questions(forms, declined, state=asked.state, rounds=rounds)


def _form(form: AskedForm, redactor: Redactor) -> dict[str, Any]:
    message = redactor.redact_text(clean_text(form.message))[:_MESSAGE_CHARACTERS_MAX]
    try:
        schema = redactor.redact_json(clean_json(form.schema))
        check_schema(answer_schema(message, schema))
    except SchemaRefusedError as exc:
        raise _refused(f"it asks for input by a schema that is refused: {exc.message}") from exc
    except ValueError as exc:
        raise _refused(f"it asks for input by a schema that is {exc}") from exc
    return {"message": message, "schema": schema}


def answer_schema(message: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of the answer to a form: ``action``, and ``content`` if that is ``accept``.

    Args:
        message: the server's question; the description of the schema.
        schema: of the content.
    """
    return {
        "type": "object",
        "description": message,
        "properties": {"action": {"enum": ["accept", "decline", "cancel"]}, "content": schema},
        "required": ["action"],
        "additionalProperties": False,
        "if": {"properties": {"action": {"const": "accept"}}},
        "then": {"required": ["content"]},
    }


def ask_person(call: GatewayCall, questions: Questions, policy: WaitPolicy) -> ToolCallResponse | Suspension:
    """Lets a call wait for the answer to its next form; the card has the question and the form."""
    key = questions.open_key
    if key is None:
        raise AssertionError("there is no open form")
    if call.posting.space_id is None:
        return fail_without_space(call)
    form = questions.forms[key]
    schema = answer_schema(form["message"], form["schema"])
    wait_id, expires = new_wait_id(), expiry(policy.seconds(TIMEOUT_MS))
    opened = OpenWait(
        wait_id,
        KIND,
        call.recorded,
        call.posting,
        expires,
        WaitCard(wait_id, expires, KIND, schema),
        spec_of(
            call,
            answer_by="humans",
            result_schema=schema,
            key=key,
            questions=questions.to_json(),
            was_approved=call.was_approved,
        ),
        policy.lease_s,
    )
    return Suspension([opened], call.fail)


def take_answer(spec: Mapping[str, Any], value: Mapping[str, Any]) -> Questions:
    """What a server asked for, with the answer to one more form.

    Args:
        spec: what the wait stored.
        value: the answer: ``action`` and ``content``.
    """
    questions, key = Questions.from_json(spec["questions"]), str(spec["key"])
    questions.actions[key] = value["action"]
    if value["action"] == "accept":
        questions.contents[key] = value["content"]
    return questions


def _refused(message: str) -> McpFailedError:
    return McpFailedError(GatewayCode.MCP_TOOL_ERROR, message)
