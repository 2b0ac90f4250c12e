"""Runs in a sandbox: evaluates one Python expression and prints one line of JSON about its value.

The sandbox confines the expression, not the names that it gets here.
"""

import json
import keyword
import math
import sys
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

RESULT_BYTES_MAX = 64 * 1024
"""The largest result, as JSON without blanks in UTF-8."""
DEPTH_MAX = 60
"""How deep a result may be nested."""
ERROR_CHARACTERS_MAX = 500


class NotJsonError(Exception):
    """A value that JSON cannot carry; the message is for the model."""


def avg(*values: Any) -> float:
    """The mean of some numbers, given as arguments or as one list."""
    numbers = values[0] if len(values) == 1 and not isinstance(values[0], int | float) else values
    return float(sum(numbers) / len(numbers))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "round": round,
    "sum": sum,
    "avg": avg,
    "min": min,
    "max": max,
    "abs": abs,
    "len": len,
    "sorted": sorted,
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
}
"""The functions of expressions, beside those of the module ``math``."""


def evaluate(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request, ``{"expression", "input", "values"}``.

    Args:
        request: the expression, the input of the call, and the values of placeholders by their variables.

    Returns:
        ``{"result"}``, or ``{"error"}`` with the last line of what went wrong.
    """
    names = {
        unicodedata.normalize("NFKC", key): value
        for key, value in request["input"].items()
        if key.isidentifier() and not keyword.iskeyword(key)
    }
    # The names of this page win: an input decides no meaning of an expression.
    names |= request["values"] | FUNCTIONS | {"math": math, "input": request["input"], "__builtins__": {}}
    try:
        code = compile(request["expression"], "<expression>", "eval", dont_inherit=True)
        value = eval(code, names)  # noqa: S307 - what this program is for
        check_json(value)
        check_size(value)
    except NotJsonError as exc:
        return {"error": str(exc)}
    except Exception as exc:  # noqa: BLE001 - any error of the expression is its answer
        return {"error": f"{type(exc).__name__}: {exc}"[:ERROR_CHARACTERS_MAX]}
    return {"result": value}


def check_json(value: Any, depth: int = 0) -> None:
    """Refuse a value that JSON cannot carry as it is.

    Raises:
        NotJsonError: it is of another type, not finite, too large or nested too deep.
    """
    if depth > DEPTH_MAX:
        raise NotJsonError(f"the result is nested deeper than {DEPTH_MAX} levels")
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, int | float):
        _check_number(value)
    elif isinstance(value, list | tuple):
        for each in value:
            check_json(each, depth + 1)
    elif isinstance(value, dict):
        for key, each in value.items():
            _check_text(key)
            check_json(each, depth + 1)
    else:
        kind = type(value).__name__
        raise NotJsonError(f"the result has a value of type {kind}; give numbers, texts, lists and dicts")


def check_size(value: Any) -> None:
    """Refuse a value that is too large.

    Raises:
        NotJsonError: it has more than `RESULT_BYTES_MAX` as JSON.
    """
    size = len(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
    if size > RESULT_BYTES_MAX:
        raise NotJsonError(f"the result is too large (limit {RESULT_BYTES_MAX} bytes as JSON, got {size})")


def _check_number(value: float) -> None:
    try:
        str(value)
    except ValueError:
        limit = sys.get_int_max_str_digits()
        raise NotJsonError(f"the result has a whole number of more than {limit} digits; round it") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise NotJsonError(f"the result has the number {value}, which JSON does not have")


def _check_text(text: Any) -> None:
    if not isinstance(text, str):
        raise NotJsonError("the result has a dict with a key that is not a text; use str(key)")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotJsonError("the result has a text with half of a surrogate pair; give whole characters") from None


if __name__ == "__main__":
    answer = evaluate(json.load(sys.stdin))
    sys.stdout.buffer.write(b"\n" + json.dumps(answer, separators=(",", ":")).encode() + b"\n")
