"""Builds the programs that run in the sandbox: the text of a caller's program, with what it needs around it."""

import ast
import keyword
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from proofbox.service.facades.librechat.requests import ProgrammaticTool
from proofbox.service.facades.librechat.runs import WORKING_FOLDER

CALLS_FILE = ".proofbox-tool-calls.json"
"""The file in which a program with tools leaves the calls that it waits for; it is not an output."""
HISTORY_TURN = "turn_history"
_PROGRAMS = "proofbox.service.facades.librechat.programs"
# Names that programs use without importing them: LibreChat's description of the tool shows such programs.
_PRELUDE = "import asyncio, json, os, sys\nfrom typing import Any, Dict, List, Optional, Union\n"
# The turn alone: a whole path would be one that the service looks for before the program runs.
_REPLAY = f"_replay = Replay({HISTORY_TURN!r}, {WORKING_FOLDER!r}, {CALLS_FILE!r})"
# Where a word of a script ends with the folder.
_FOLDER = re.compile(rf"{WORKING_FOLDER}(?=[\s;|&)\"'`]|$)")
_SHELL_WORDS = frozenset(
    (
        *("if", "then", "else", "elif", "fi", "case", "esac", "for", "while", "until", "do", "done", "in"),
        *("function", "select", "time", "coproc", "declare", "typeset", "local", "readonly", "export", "unset"),
    )
)


def python_with_tools(code: str, tools: Sequence[ProgrammaticTool]) -> str:
    """Return a Python program whose tools are asynchronous functions."""
    functions = {
        python_name(tool.name): f"_replay.function({tool.name!r}, {_parameters(tool.parameters)!r})"
        for tool in tools
    }
    return "\n".join(
        [
            _text("replay"),
            _PRELUDE,
            _REPLAY,
            *(f"{name} = {function}" for name, function in functions.items()),
            *_launching(code),
            "if _replay.is_waiting: _replay.end()",
            "",
        ]
    )


def with_followed_link(code: str) -> str:
    """Return a bash script whose commands see the files of the folder: it is a link in the image.

    ``ls -l``, ``find``, ``du`` and others do not follow a link unless a slash is behind its name.
    """
    return _FOLDER.sub(f"{WORKING_FOLDER}/", code)


def bash_with_tools(code: str, tools: Sequence[ProgrammaticTool]) -> str:
    """Return a Python program that runs a bash script whose tools are functions."""
    functions = {bash_name(tool.name): tool.name for tool in tools}
    return "\n".join(
        [
            _text("replay"),
            _text("shell"),
            _REPLAY,
            f"run_script({_literal(with_followed_link(code))}, {functions!r}, _replay)",
            "",
        ]
    )


def python_name(name: str) -> str:
    """Return the name of a tool's function in Python, as LibreChat's client derives it."""
    cleaned = _cleaned(name, r"[-\s]")
    return f"{cleaned}_tool" if keyword.iskeyword(cleaned) else cleaned


def bash_name(name: str) -> str:
    """Return the name of a tool's function in bash, as LibreChat's client derives it."""
    cleaned = _cleaned(name, r"[-\s.]")
    return f"{cleaned}_tool" if cleaned in _SHELL_WORDS else cleaned


def _cleaned(name: str, blank: str) -> str:
    cleaned = re.sub(r"[^a-zA-Z0-9_]", "", re.sub(blank, "_", name))
    return f"_{cleaned}" if cleaned[:1].isdigit() else cleaned


def _parameters(schema: dict[str, Any] | None) -> list[str] | None:
    """Return the names of a tool's parameters, the required ones first; None: the schema names none."""
    properties = (schema or {}).get("properties")
    if not isinstance(properties, dict) or not properties:
        return None
    listed = (schema or {}).get("required")
    # A set: a list would be searched once for each property.
    required = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set[str]()
    return [
        *(name for name in properties if name in required),
        *(name for name in properties if name not in required),
    ]


def _launching(code: str) -> list[str]:
    """Return the last lines of a program: the caller's runs with the global names of the whole."""
    # Its first import stands at the beginning of a line: by that its libraries are found.
    newline = "\n"
    return [_text("launch"), f"launch({_literal(newline + code)}[1:], globals())", ""]


@cache
def _text(name: str) -> str:
    """Return the text of a program, without docstrings: programs of the sandbox are sent with each run."""
    source = resources.files(_PROGRAMS).joinpath(f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node) is not None:
            node.body[:1] = [] if len(node.body) > 1 else [ast.Pass()]
    return ast.unparse(tree)


def _literal(text: str) -> str:
    """Return a literal of a text that keeps its lines: what a program imports is read off its lines."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\r", "\\r").replace("\0", "\\x00")
    return f"'''{escaped}'''"
