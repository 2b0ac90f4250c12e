"""JSON Schema: the contract's schema held against a value, with nothing fetched from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import Draft202012Validator, validator_for
from jsonschema_specifications import REGISTRY as META_SCHEMAS
from model import Problem, one_line, quoted
from referencing.exceptions import Unresolvable

_MESSAGE_CHARS_MAX = 160
_PATH_CHARS_MAX = 80
_LITERAL_KEYWORDS = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose values are data: what looks like a reference in there is none."""
_META_SCHEMAS = frozenset(identifier.rstrip("#") for identifier in META_SCHEMAS)


def schema_check(schema: Any) -> Callable[[Any, str], None]:
    """Return a function that holds one value against the schema.

    It takes the value and where it was found (``""`` or ``"line 3: "``) and raises ``Problem`` if the value does
    not satisfy the schema. The draft is the one of ``$schema``, otherwise 2020-12.

    Raises:
        Problem: The schema is not a valid one, or refers to something outside of itself.
    """
    _refuse_remote(schema)
    validator_class = validator_for(schema, default=Draft202012Validator)
    try:
        validator_class.check_schema(schema)
    except SchemaError as error:
        message = one_line(error.message, _MESSAGE_CHARS_MAX)
        raise Problem(f"cannot be checked: the contract's json_schema is not a valid schema: {message}") from error
    # A registry of our own: the library's default would fetch an unknown reference from the network.
    validator = validator_class(schema, registry=META_SCHEMAS)

    def check(value: Any, where: str) -> None:
        try:
            error = next(validator.iter_errors(value), None)
        except Unresolvable as unresolvable:
            raise _cannot_refer(str(unresolvable.ref)) from unresolvable
        if error is not None:
            raise Problem(f"does not satisfy the contract's json_schema: {where}{_in_words(error)}")

    return check


def _in_words(error: ValidationError) -> str:
    path = one_line(error.json_path, _PATH_CHARS_MAX)
    return f"at {path}: {one_line(error.message, _MESSAGE_CHARS_MAX)}"


def _cannot_refer(reference: str) -> Problem:
    return Problem(
        f"cannot be checked: the contract's json_schema refers to {quoted(reference)}, and nothing is fetched"
    )


def _refuse_remote(schema: Any) -> None:
    """Refuse a reference to another document, also in a branch that no value would reach."""
    nodes = list(_nodes(schema))
    known = _META_SCHEMAS.union(node["$id"].rstrip("#") for node in nodes if isinstance(node.get("$id"), str))
    for node in nodes:
        for keyword in ("$ref", "$dynamicRef"):
            reference = node.get(keyword)
            if isinstance(reference, str) and "://" in reference and reference.split("#")[0] not in known:
                raise _cannot_refer(reference)


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a schema that may be a schema itself, without recursion."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(value for keyword, value in node.items() if keyword not in _LITERAL_KEYWORDS)
        elif isinstance(node, list):
            waiting.extend(node)
