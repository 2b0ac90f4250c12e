"""Expressions of configurations: a placeholder in one becomes a variable, so no value is read as Python."""

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from proofbox.service.gateway.compute.program import FUNCTIONS
from proofbox.service.gateway.templates import CallIdValue, InputValue, Part, parse_template

EXPRESSION_CHARACTERS_MAX = 20_000
"""The longest expression of a model, as of a configuration."""
OWN_EXPRESSION = "expression"
"""The field of the input that is the model's own expression, for ``{{input.expression}}`` as the whole."""
NAMES = frozenset(FUNCTIONS) | {"math", "input"}
"""What expressions can name beside the top-level keys of the input."""
_CONSTANTS = frozenset({"True", "False", "None"})
_FORM = "give a Python expression such as {{input.price}} * 1.19"


class ExpressionError(ValueError):
    """A text is not an expression; the message is for who wrote it."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that was read.

    Attributes:
        source: it in Python, with a variable in the place of each placeholder.
        values: the placeholders by their variables.
        names: what it names and does not define itself, without functions and variables of placeholders.
    """

    source: str
    values: Mapping[str, Part]
    names: frozenset[str]

    def unknown_names(self, has_key: Callable[[str], bool]) -> list[str]:
        """The names that nothing defines.

        Args:
            has_key: whether the input can have a top-level key.
        """
        return sorted(name for name in self.names if not has_key(name))


def is_own_expression(template: str) -> bool:
    """Whether the model writes the expression: ``{{input.expression}}`` as the whole.

    Raises:
        TemplateError: a placeholder cannot be read.
    """
    return parse_template(template.strip()) == (InputValue((OWN_EXPRESSION,)),)


def parse_expression(template: str) -> Expression:
    """Read an expression that a configuration has.

    Raises:
        TemplateError: a placeholder cannot be read.
        ExpressionError: it is not a Python expression, or a placeholder is not a value of its own in it.
    """
    source, values = _with_variables(parse_template(template.strip()))
    tree = _parse(source)
    nodes = list(ast.walk(tree))
    if any(isinstance(node, ast.Await | ast.Yield | ast.YieldFrom) for node in nodes):
        raise ExpressionError(f"it has await or yield, which no expression here can use; {_FORM}")
    named = [node for node in nodes if isinstance(node, ast.Name)]
    read = Counter(node.id for node in named if isinstance(node.ctx, ast.Load))
    defined = {node.id for node in named if not isinstance(node.ctx, ast.Load)}
    defined |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    for variable, part in values.items():
        if read[variable] != 1 or variable in defined:
            field = part.field if isinstance(part, InputValue) else "call.id"
            raise ExpressionError(
                f"{{{{{field}}}}} stands within a text, a comment or a name, where it is no value; "
                'join texts with +: "Total: " + str({{input.total}})'
            )
    return Expression(source, values, frozenset(read.keys() - values.keys() - defined - NAMES - _CONSTANTS))


def _with_variables(parts: Sequence[Part]) -> tuple[str, dict[str, Part]]:
    literal = "".join(part for part in parts if isinstance(part, str))
    prefix = "value"
    while prefix in literal:
        prefix += "_"
    source = ""
    values: dict[str, Part] = {}
    for part in parts:
        if isinstance(part, InputValue | CallIdValue):
            variable = f"{prefix}{len(values)}"
            values[variable] = part
            source += f" {variable} "
        elif isinstance(part, str):
            source += part
    return source.strip(), values


def _parse(source: str) -> ast.Expression:
    try:
        return ast.parse(source, "<expression>", "eval")
    except SyntaxError as exc:
        raise ExpressionError(f"not a Python expression: {exc.msg}; {_FORM}") from exc
    except (ValueError, MemoryError, RecursionError) as exc:
        raise ExpressionError(f"not an expression that can be read, or nested too deep; {_FORM}") from exc
