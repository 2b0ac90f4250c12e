"""Runs a program as ``__main__``, with its own names and lines in tracebacks."""

import ast
import asyncio
import inspect
import linecache
import sys
from typing import Any


def launch(source: str, space: dict[str, Any]) -> None:
    """Run a program whose text may have ``await`` outside of functions.

    Args:
        source: its text.
        space: its global names.
    """
    name = "main.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)

    def show(kind: Any, error: BaseException, trace: Any) -> None:
        while trace is not None and trace.tb_frame.f_code.co_filename != name:
            trace = trace.tb_next
        sys.__excepthook__(kind, error.with_traceback(trace), trace)

    sys.excepthook = show
    code = compile(source, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    result = eval(code, space)  # noqa: S307 - running the caller's code is the purpose
    if inspect.iscoroutine(result):
        asyncio.run(result)
