"""Tools for a program that is run again with the results of earlier runs, until it needs no further one.

A call whose result is known returns at once. One whose result is not known never returns: the program is ended, and
the calls that it waits for are written to a file.
"""

import asyncio
import contextlib
import json
import os
import shutil
import sys
from typing import Any

SETTLE_S = 0.05
"""How long a program may go on to make further calls beside one that waits."""


class ToolExecutionError(Exception):
    """A tool failed."""


class Replay:
    """The results of earlier runs, and the calls that this run waits for.

    Args:
        turn: the turn of the files with results.
        folder: the folder of the program's files, emptied when it is ended: the next run writes them again.
        calls: the name of the file for the calls that it waits for.
    """

    def __init__(self, turn: str, folder: str, calls: str) -> None:
        self._folder = folder
        self._calls = os.path.join(folder, calls)
        history = os.path.join(os.environ["OUT_DIR"], turn, "files")
        self._known: dict[str, list[dict[str, Any]]] = {}
        self._waiting: list[dict[str, Any]] = []
        names = os.listdir(history) if os.path.isdir(history) else []
        for name in sorted(names, key=lambda name: int(name.split("-")[1].split(".")[0])):
            with open(os.path.join(history, name), encoding="utf-8") as file:
                for entry in json.load(file):
                    self._known.setdefault(_key(entry["name"], entry["input"]), []).append(entry)

    def take(self, name: str, values: dict[str, Any]) -> "dict[str, Any] | None":
        """Return the result of a call, or note that the program waits for it."""
        known = self._known.get(_key(name, values))
        if known:
            return known.pop(0)
        self._waiting.append({"name": name, "input": values})
        return None

    @property
    def is_waiting(self) -> bool:
        """Whether the program waits for a call."""
        return bool(self._waiting)

    def end(self) -> None:
        """Write the calls that the program waits for, and end it."""
        streams: tuple[Any, ...] = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
        for stream in streams:
            with contextlib.suppress(Exception):  # the program may have replaced or closed it
                stream.flush()
        for entry in os.scandir(self._folder):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)
        with open(self._calls, "w", encoding="utf-8") as file:
            json.dump(self._waiting, file)
        os._exit(0)

    def function(self, name: str, parameters: "list[str] | None") -> Any:
        """Return the function of a tool.

        Args:
            name: the tool.
            parameters: the names of its parameters, the required ones first; None: any.
        """

        async def tool(*args: Any, **options: Any) -> Any:
            entry = self.take(name, _values(name, parameters, args, options))
            if entry is None:
                loop = asyncio.get_running_loop()
                loop.call_later(SETTLE_S, self.end)
                return await loop.create_future()
            await asyncio.sleep(0)  # the others take their turns as they did when nothing was known
            if entry["is_error"]:
                raise ToolExecutionError(entry["error_message"] or "tool execution failed")
            return entry["result"]

        return tool


def _key(name: str, values: Any) -> str:
    return json.dumps([name, values], sort_keys=True)


def _values(name: str, parameters: "list[str] | None", args: Any, options: Any) -> dict[str, Any]:
    """Return the input of a call, also of one that is given as a dict; a parameter that is None is left out."""
    is_whole = len(args) == 1 and isinstance(args[0], dict) and not options
    if is_whole and (parameters is None or set(args[0]) <= set(parameters)):
        args, options = (), args[0]
    given = dict(zip(parameters or (), args, strict=False))
    if len(args) > len(given):
        raise TypeError(f"{name}() takes {len(parameters or ())} positional arguments but {len(args)} were given")
    for option in options:
        if option in given:
            raise TypeError(f"{name}() got multiple values for argument '{option}'")
        if parameters is not None and option not in parameters:
            raise TypeError(f"{name}() got an unexpected keyword argument '{option}'")
    given.update(options)
    return {option: value for option, value in given.items() if value is not None}
