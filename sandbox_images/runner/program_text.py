"""A Python program as it is run: byte for byte, but for what notebooks take and Python does not.

The value of a last expression is kept under `VALUE_NAME` of its globals, ``await`` works outside of functions, and
commands of notebooks whose meaning is certain are left out where Python refuses them, line by line.
"""

import _ast
import re
from types import CodeType
from typing import NamedTuple

VALUE_NAME = "__last value__"  # no program can write this name
CO_COROUTINE = 0x80
_ONLY_AST = _ast.PyCF_ONLY_AST
_TOP_LEVEL_AWAIT = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_REPAIRS_MAX = 50
_SHOWN_CHARS = 80
# Calls whose value, a number of bytes or an open file, nobody asks for.
_WRITING = frozenset({"write", "writelines", "write_text", "write_bytes", "open"})
_OUTSIDE = re.compile(r"'(?:await|async for|async with)' outside|asynchronous comprehension outside of an async")
# They set up a notebook, of which there is none.
_SILENT = re.compile(
    r"%(?:matplotlib|config|load_ext|reload_ext|autoreload|xmode|colors|autosave|automagic|pprint)\b[^\n]*"
)
_INSTALL = re.compile(
    r"(?:[!%] ?(?:sudo )?(?:uv )?(?:pip3?|conda|mamba|apt|apt-get)|! ?(?:\{sys\.executable\}|python3?) -m pip)"
    r"(?: -{1,2}[\w-]+)* (?:install|update)\b(?:(?!&&)[^;|\n])*"
)
_OF_CELL = re.compile(r"%%(?:time|capture)\b[^\n]*")
_TIMED = re.compile(r"%time[ \t]+(?=\S)")


class Program(NamedTuple):
    """A program to run.

    Attributes:
        code: the program; a coroutine if it has ``await`` outside of functions.
        notes: what was left out of it, a sentence each.
    """

    code: CodeType
    notes: list[str]


def compile_program(source: bytes, path: str) -> Program:
    """Compiles a program.

    Raises:
        SyntaxError: it is none; line numbers are those of the source.
        ValueError: it holds a zero byte.
    """
    notes: list[str] = []
    flags = repairs = 0
    while True:
        try:
            return Program(_compile(source, path, flags), notes)
        except SyntaxError as exc:
            error = exc
        if _OUTSIDE.match(error.msg or "") and not flags:
            flags = _TOP_LEVEL_AWAIT
            continue
        repaired = _without_command(source, error.lineno or 0, notes)
        if repaired is None or repairs == _REPAIRS_MAX:
            raise error.with_traceback(None)
        source = repaired
        repairs += 1


def _compile(source: bytes, path: str, flags: int) -> CodeType:
    try:
        tree = compile(source, path, "exec", _ONLY_AST | flags, dont_inherit=True)
        _keep_value(tree)
        code: CodeType = compile(tree, path, "exec", flags, dont_inherit=True)
    except (RecursionError, MemoryError):  # a tree is larger and deeper than what it stands for
        code = compile(source, path, "exec", flags, dont_inherit=True)
    return code


def _keep_value(tree: _ast.Module) -> None:
    """Makes the last statement, if it is an expression, assign its value; a text alone is a docstring."""
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, _ast.Expr):
        return
    value = last.value
    is_docstring = len(tree.body) == 1 and isinstance(getattr(value, "value", None), str)
    if isinstance(value, _ast.Constant) and (is_docstring or value.value is Ellipsis):
        return
    if isinstance(value, _ast.Call) and getattr(value.func, "attr", getattr(value.func, "id", "")) in _WRITING:
        return
    place = {name: getattr(last, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}
    target = _ast.Name(VALUE_NAME, _ast.Store(), **place)
    tree.body[-1] = _ast.Assign([target], value, **place)


def _without_command(source: bytes, number: int, notes: list[str]) -> bytes | None:
    """The source without the command of a notebook in a line; None if it has none that can be left out."""
    try:
        lines = source.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None
    if not 0 < number <= len(lines):
        return None
    line = lines[number - 1].rstrip()
    command = line.lstrip()
    margin = line[: len(line) - len(command)]
    is_first = not any(before.strip() and not before.lstrip().startswith("#") for before in lines[: number - 1])
    if timed := _TIMED.match(command):
        lines[number - 1] = margin + command[timed.end() :]
    elif _SILENT.fullmatch(command) or (is_first and _OF_CELL.fullmatch(command)):
        lines[number - 1] = f"{margin}pass"
    elif _INSTALL.fullmatch(command):
        lines[number - 1] = f"{margin}pass"
        notes.append(f"line {number} was left out: {command[:_SHOWN_CHARS]}")
    else:
        return None
    return "\n".join(lines).encode()
