"""JSON Schemas that others write: which ones are accepted, and values that are checked against them.

A schema reads nothing from elsewhere, and its patterns run in linear time: both the check and the validator are
`jsonschema_rs` without retrieval and with the engine of regular expressions that does not backtrack.
"""

import itertools
import json
from collections.abc import Sequence
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from proofbox.contracts.problems import FieldError
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.schema_walk import (
    DEFINITIONS,
    REFERENCES,
    References,
    SchemaPath,
    all_schemas,
    subschemas,
)
from proofbox.service.gateway_errors import GatewayNotInstalledError
from proofbox.service.visible_text import visible_line

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

SCHEMA_BYTES_MAX = 64 * 1024
SCHEMA_DEPTH_MAX = 32
EXPANDED_SCHEMAS_MAX = 10_000
ERRORS_MAX = 20
_MESSAGE_CHARACTERS_MAX = 300
_DETAILED_STEPS_MAX = 10_000
"""Listing all errors of a recursive schema can take branching ** depth steps; above this only one is reported."""


class SchemaRefusedError(Exception):
    """A schema is refused.

    Attributes:
        path: the place in the schema.
        message: what is wrong, and what to do.
    """

    def __init__(self, path: SchemaPath, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


class CheckedSchema:
    """A schema that was accepted, ready to check values.

    Args:
        schema: the schema.

    Raises:
        SchemaRefusedError: it is refused.
        GatewayNotInstalledError: the library that checks is not installed.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        library = load_validator()
        self.schema = schema
        _check_size(schema)
        references = References(schema)
        _check_references(schema, references)
        self._branching = _branching(schema, references)
        try:
            self._validator = library.Draft202012Validator(
                schema, offline=True, pattern_options=library.RegexOptions()
            )
        except library.ValidationError as exc:
            raise _refusal(exc) from exc
        except ValueError as exc:
            raise SchemaRefusedError((), f"not a JSON Schema: {_shortened(str(exc))}") from exc

    def check(self, value: Any, name: str = "input") -> list[FieldError]:
        """What of a value does not fit, at most `ERRORS_MAX`.

        Args:
            value: any JSON.
            name: how fields begin, such as ``input`` or ``result``.
        """
        if self._validator.is_valid(value):
            return []
        if self._branching > 1 and self._branching ** _depth(value) > _DETAILED_STEPS_MAX:
            return [_error(name, "it does not fit the schema; it is too deep to show where")]
        found: list[FieldError] = []
        for error in itertools.islice(self._validator.iter_errors(value), ERRORS_MAX):
            found += _errors_of(error, name)
        return found[:ERRORS_MAX]


def load_validator() -> ModuleType:
    """The library that checks values; a plain installation is without it.

    Raises:
        GatewayNotInstalledError: it is not installed.
    """
    try:
        import jsonschema_rs  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as exc:
        raise GatewayNotInstalledError(
            "the tools of agents are not installed in this service; its operator installs proofbox[gateway]"
        ) from exc
    return jsonschema_rs


def check_schema(schema: dict[str, Any]) -> CheckedSchema:
    """Check a schema; one that was checked lately is not compiled again.

    Raises:
        SchemaRefusedError: it is no schema, too large or deep, refers outside itself, or has a pattern that does
            not run in linear time.
        GatewayNotInstalledError: the library that checks is not installed.
    """
    return _check_text(json.dumps(schema, separators=(",", ":")))


@lru_cache(maxsize=512)
def _check_text(text: str) -> CheckedSchema:
    return CheckedSchema(json.loads(text))


def _check_size(schema: dict[str, Any]) -> None:
    size = len(compact_json(schema).encode(errors="replace"))
    if size > SCHEMA_BYTES_MAX:
        raise SchemaRefusedError((), f"the schema is too large (limit {SCHEMA_BYTES_MAX:,} bytes, got {size:,})")
    depth = _depth(schema)
    if depth > SCHEMA_DEPTH_MAX:
        raise SchemaRefusedError((), f"the schema is nested too deep (limit {SCHEMA_DEPTH_MAX}, got {depth})")


def _check_references(schema: dict[str, Any], references: References) -> None:
    for path, each in all_schemas(schema):
        if not isinstance(each, dict):
            continue
        if path and "$id" in each:
            raise SchemaRefusedError((*path, "$id"), "a schema inside another has no id of its own; leave it out")
        for keyword in REFERENCES:
            reference = each.get(keyword, "#")
            if not isinstance(reference, str) or not reference.startswith("#"):
                raise SchemaRefusedError(
                    (*path, keyword), "a reference leads into the same schema: #/$defs/… or an anchor, no URL"
                )
            if references.target(reference) is None:
                raise SchemaRefusedError((*path, keyword), f"{reference[:100]!r} leads to no schema")
    expanded = _expanded_size(schema, references)
    if expanded > EXPANDED_SCHEMAS_MAX:
        raise SchemaRefusedError(
            (),
            f"the schema has too many parts when its references are followed (limit {EXPANDED_SCHEMAS_MAX:,}); "
            "refer to each definition less often",
        )


def _followed(schema: Any, references: References) -> list[Any]:
    """The schemas that a value meets after this one: those inside it but definitions, and those it refers to."""
    inside = [inner for path, inner in subschemas(schema) if path[0] not in DEFINITIONS]
    return [*inside, *references.targets(schema)]


def _expanded_size(schema: Any, references: References) -> int:
    """The schemas when each reference is replaced by what it leads to, once per cycle."""
    sizes: dict[int, int] = {}
    entered: set[int] = set()
    waiting: list[tuple[Any, bool]] = [(schema, False)]
    while waiting:
        each, is_left = waiting.pop()
        if is_left:
            sizes[id(each)] = 1 + sum(sizes.get(id(inner), 1) for inner in _followed(each, references))
        elif id(each) not in entered:
            entered.add(id(each))
            waiting.append((each, True))
            waiting += [(inner, False) for inner in _followed(each, references)]
    return sizes[id(schema)]


def _branching(schema: Any, references: References) -> int:
    """An upper bound of how often a definition refers to itself at once; 0 for a schema that does not recur."""
    if not _is_recursive(schema, references):
        return 0
    starts = {id(schema): schema}
    for _, each in all_schemas(schema):
        starts |= {id(target): target for target in references.targets(each)}
    return max(_count_references(start, references) for start in starts.values())


def _count_references(schema: Any, references: References) -> int:
    count, waiting = 0, [schema]
    while waiting:
        each = waiting.pop()
        count += len(references.targets(each))
        waiting += [inner for path, inner in subschemas(each) if path[0] not in DEFINITIONS]
    return count


def _is_recursive(schema: Any, references: References) -> bool:
    open_ones: set[int] = set()
    left: set[int] = set()
    waiting: list[tuple[Any, bool]] = [(schema, False)]
    while waiting:
        each, is_left = waiting.pop()
        if is_left:
            open_ones.discard(id(each))
            left.add(id(each))
        elif id(each) in open_ones:
            return True
        elif id(each) not in left:
            open_ones.add(id(each))
            waiting.append((each, True))
            waiting += [(inner, False) for inner in _followed(each, references)]
    return False


def _refusal(exc: "ValidationError") -> SchemaRefusedError:
    path = tuple(exc.instance_path)
    if (path and path[-1] == "pattern") or (len(path) > 1 and path[-2] == "patternProperties"):
        return SchemaRefusedError(
            path,
            "not a regular expression that runs in linear time; leave out look-around and back-references",
        )
    return SchemaRefusedError(path, f"not a JSON Schema (2020-12): {_shortened(exc.message)}")


def _errors_of(error: "ValidationError", name: str) -> list[FieldError]:
    kinds = load_validator().ValidationErrorKind
    field = spell_field(name, error.instance_path)
    kind = error.kind
    if isinstance(kind, kinds.Required):
        return [_error(spell_field(field, [kind.property]), "it is required")]
    if isinstance(kind, kinds.AdditionalProperties | kinds.UnevaluatedProperties):
        return [_error(spell_field(field, [each]), "there is no such field") for each in kind.unexpected]
    if isinstance(kind, kinds.FalseSchema):
        return [_error(field, "nothing is allowed here; leave it out")]
    return [_error(field, _shortened(error.message))]


def _error(field: str, message: str) -> FieldError:
    return FieldError(field=field, code="invalid_input", message=message)


def spell_field(name: str, path: Sequence[str | int]) -> str:
    """A place in JSON as messages name it: ``input.items[0].price``."""
    text = name
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{visible_line(part[:100])}"
    return text


def _shortened(message: str) -> str:
    line = visible_line(message)
    return line if len(line) <= _MESSAGE_CHARACTERS_MAX else f"{line[:_MESSAGE_CHARACTERS_MAX]}…"


def _depth(value: Any) -> int:
    """How deep objects and lists are nested: 0 for a value that is neither, 1 for an empty object."""
    depth = 0
    level = [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth
