"""The body of a response as a model gets it: read as JSON or text, cleaned, without the secrets of its request."""

import json
import math
from typing import Any

from proofbox.service.gateway.redaction import Redactor
from proofbox.service.web.client.outgoing import OutgoingResponse
from proofbox.service.web.port import clean_text

ERROR_CHARACTERS_MAX = 2_048
"""How much of the body of a response that is not 2xx a model sees."""
_BYTES_PER_CHARACTER_MAX = 4
_DEPTH_MAX = 100


def error_bytes_max(redactor: Redactor) -> int:
    """How many bytes of the body of a failed response are read, so that no secret is cut before it is removed."""
    return ERROR_CHARACTERS_MAX + redactor.characters_max * _BYTES_PER_CHARACTER_MAX


def read_error(response: OutgoingResponse, redactor: Redactor) -> str:
    """The start of the body of a failed response, of which up to `error_bytes_max` bytes were read."""
    text = _clean(_decode(response), redactor)
    if len(response.body) >= error_bytes_max(redactor):
        text = redactor.drop_begun(text.rstrip("\ufffd"))
    return text[:ERROR_CHARACTERS_MAX]


def read_text(response: OutgoingResponse, redactor: Redactor) -> str:
    """The whole body as text."""
    return _clean(_decode(response), redactor)


def read_json(response: OutgoingResponse, redactor: Redactor) -> Any:
    """The whole body as JSON that can be stored and passed on.

    Raises:
        ValueError: it is no JSON, is nested too deep, or has a number that is not finite.
    """
    return redactor.redact_json(parse_json(_decode(response)))


def parse_json(text: str) -> Any:
    """JSON that can be stored and passed on.

    Raises:
        ValueError: it is no JSON, is nested too deep, or has a number that is not finite.
    """
    try:
        return clean_json(json.loads(text, parse_constant=_refuse_constant, parse_float=_finite))
    except RecursionError as exc:
        raise ValueError("nested too deep") from exc


def _clean(text: str, redactor: Redactor) -> str:
    # Before and after: a secret may have controls of its own, and a response may put controls into one.
    return redactor.redact_text(clean_text(redactor.redact_text(text)))


def _decode(response: OutgoingResponse) -> str:
    try:
        return response.body.decode(response.head.charset or "utf-8", "replace").removeprefix("\ufeff")
    except LookupError:
        return response.body.decode("utf-8", "replace")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no number that can be passed on")
    return number


def clean_json(value: Any, depth: int = 0) -> Any:
    """A JSON value whose texts can be encoded: halves of characters become ``?``.

    Args:
        value: what a parser made; some of them read 1e999 as infinite.
        depth: how deep the value is nested in another.

    Raises:
        ValueError: it is nested too deep, or has a number that is not finite, which JSON does not have.
    """
    if depth > _DEPTH_MAX:
        raise ValueError("nested too deep")
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {clean_json(key): clean_json(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [clean_json(each, depth + 1) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not JSON: it has a number that is not finite")
    return value
