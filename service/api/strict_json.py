"""Strict JSON bodies: refuse JSON that two parsers could read differently.

Measured with bodies of 100 MB (one asset; fourteen million small values) beside a ticking event loop: the standard
library's parser with a hook, in a thread, takes 0.3 and 2.2 s and holds the loop for 0.14 and 0.05 s at a time;
pydantic's own parser, which cannot see duplicate keys, takes 0.2 and 3.1 s and holds it for 0.15 and 2.2 s, because
it never gives the interpreter back. So the standard library parses and pydantic validates what came out.
"""

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from proofbox.contracts.problems import FieldError
from proofbox.service.api.error_handlers import invalid_body, invalid_field
from proofbox.service.api.responses import JSON
from proofbox.service.errors import BodyTooLargeError, InvalidRequestError

# No tool takes parameters a tenth as deep; what goes on from here recurses, and must never reach its own bound.
DEPTH_MAX = 64
# Below this a body is parsed in less time than a thread costs (0.1 ms).
INLINE_BYTES_MAX = 64 * 1024
# Fourteen million small values of a body of 100 MB would be two gigabytes of objects.
VALUES_MAX = 1_000_000
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_Model = TypeVar("_Model", bound=BaseModel)


FindMore = Callable[[Any, ValidationError], Sequence[FieldError]]
"""What else is wrong with a JSON value that a model refused, beyond what the model found."""


def find_no_more(value: Any, refused: ValidationError) -> Sequence[FieldError]:  # noqa: ARG001 - see `FindMore`
    """Find nothing."""
    return ()


async def read_model(
    request: Request, model: type[_Model], bytes_max: int | None = None, find_more: FindMore = find_no_more
) -> _Model:
    """The body of a request as a model.

    Args:
        request: the request.
        model: the model.
        bytes_max: a bound of the route, in bytes; None: that of the operator alone.
        find_more: finds what else is wrong with a body that the model refuses.

    Raises:
        InvalidRequestError: the media type is not JSON, the body is no JSON or ambiguous JSON, or it is not what
            the schema asks for.
        BodyTooLargeError: it has too many bytes.
    """
    # Also what keeps web pages out: a browser sends this media type across origins only after asking, and no answer
    # of ours allows it.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise invalid_field("Content-Type", "media_type", f"the body has to be {JSON}")
    raw = bytearray()
    async for piece in request.stream():
        raw += piece
        if bytes_max is not None and len(raw) > bytes_max:
            raise BodyTooLargeError(f"the body is larger than {bytes_max} bytes, the most that this route takes")
    if len(raw) <= INLINE_BYTES_MAX:
        return parse_model(raw, model, find_more)
    return await asyncio.to_thread(parse_model, raw, model, find_more)


def parse_model(raw: bytearray, model: type[_Model], find_more: FindMore = find_no_more) -> _Model:
    """JSON text in UTF-8 as a model; ``raw`` is emptied. Raises InvalidRequestError as `read_model`."""
    value = _value(raw)
    try:
        return model.model_validate(value)
    except ValidationError as exc:
        raise invalid_body(exc, model, find_more(value, exc)) from exc


def _value(raw: bytearray) -> Any:
    _refuse_too_many(raw)
    try:
        text = raw.decode()
        # Of a body of 100 MB no more than two forms are held at a time: bytes, text, values, model.
        raw.clear()
        value = json.loads(text, object_pairs_hook=_object)
        del text
        _refuse_unsendable(value)
    except RecursionError as exc:
        raise _invalid_json(f"is nested deeper than {DEPTH_MAX} levels") from exc
    except UnicodeDecodeError as exc:
        raise _invalid_json(f"is no UTF-8 at byte {exc.start}") from exc
    except json.JSONDecodeError as exc:
        raise _invalid_json(f"is no JSON at line {exc.lineno}, column {exc.colno}: {exc.msg}") from exc
    except _AmbiguousError as exc:
        raise _invalid_json(str(exc)) from exc
    except ValueError as exc:
        # The one that is left: the interpreter's bound on the digits of an integer.
        raise _invalid_json("has a number of too many digits") from exc
    return value


class _AmbiguousError(ValueError):
    """JSON that parsers read differently, or that could not be sent on as JSON."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _AmbiguousError(f"has the key {twice[:100]!a} twice in one object")
    return made


def _refuse_too_many(raw: bytearray) -> None:
    """Refuse JSON of more values than any call has, before any of them is made.

    Raises:
        InvalidRequestError: it has.
    """
    # Every value but one follows a separator; those in texts are subtracted only if there are that many.
    if _separators(raw) >= VALUES_MAX and _separators(_STRING.sub(b"", raw)) >= VALUES_MAX:
        raise _invalid_json(f"has more than {VALUES_MAX} values")


def _separators(raw: bytes | bytearray) -> int:
    return sum(raw.count(character) for character in (b",", b":", b"[", b"{"))


def _refuse_unsendable(value: Any) -> None:
    """Refuse numbers and text that JSON cannot carry on, and depth, without recursion.

    Raises:
        _AmbiguousError: NaN, an infinite number (``1e999``), half of a surrogate pair, or too deep.
    """
    open_values: list[Iterator[Any]] = [iter((value,))]
    while open_values:
        for item in open_values[-1]:
            if isinstance(item, str):
                if not item.isascii():
                    _refuse_surrogates(item)
            elif isinstance(item, float):
                if not math.isfinite(item):
                    raise _AmbiguousError("has a number that is not finite (NaN, Infinity or out of range)")
            elif isinstance(item, (dict, list)):
                if len(open_values) > DEPTH_MAX:
                    raise _AmbiguousError(f"is nested deeper than {DEPTH_MAX} levels")
                open_values.append(chain(item.keys(), item.values()) if isinstance(item, dict) else iter(item))
                break
        else:
            open_values.pop()


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise _AmbiguousError("has half of a surrogate pair (\\ud800 to \\udfff) in a text") from exc


def _invalid_json(what: str) -> InvalidRequestError:
    return invalid_field("body", "json_invalid", f"the body {what}")
