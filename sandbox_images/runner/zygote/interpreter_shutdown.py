"""The shutdown of an interpreter that was forked from a zygote.

Python takes every module apart when it ends, which for large libraries takes tens of milliseconds and copies most
of what forks share. Here that is done to the program's own modules alone: what they hold is deleted, written and
closed as ever, and then the process ends. Only what a program has put into a library itself is not deleted. A
process in which a daemon thread still runs is left to Python.
"""

import contextlib
import ctypes
import gc
import io
import os
import sys
import types

_WRITERS = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
_MADE_OF = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
    type,
    int,
    float,
    str,
    bytes,
    tuple,
    frozenset,
)
_LONG_MAX = 2**63 - 1
_STATUS_OVERFLOW = 255
_fflush = ctypes.CDLL(None).fflush


class InterpreterShutdown:
    """Takes the program's modules apart and ends the process with the status that Python would give it."""

    def __init__(self) -> None:
        self._libraries: frozenset[str] = frozenset()
        self._status: int | None = None

    def mark_libraries(self) -> None:
        """Takes all modules that are imported now for libraries; later ones are the program's."""
        self._libraries = frozenset(sys.modules) - {"__main__"}

    def set_status(self, exit_: SystemExit | None) -> None:
        """Python is about to end by this exception; None: the program has ended without one."""
        code = None if exit_ is None else exit_.code
        if code is None:
            self._status = 0
        elif not isinstance(code, int):
            self._status = 1  # it is text, which Python writes
        else:
            self._status = code & 0xFF if abs(code) <= _LONG_MAX else _STATUS_OVERFLOW

    def __call__(self) -> None:
        """To be called after all functions that were registered for the end of the interpreter."""
        # A daemon thread would go on in what is taken apart; Python's own end stops it.
        alone = len(sys._current_frames()) == 1  # noqa: SLF001 - there is no other way to see all
        if self._status is not None and alone and self._take_apart():
            os.closerange(1, 3)  # standard output and error: by that process 1 sees at once that this is the end
            os._exit(self._status)

    def _take_apart(self) -> bool:
        """Takes the program's modules apart; False if Python has to end the process, and show why."""
        own = [name for name in sys.modules if name not in self._libraries]
        # As in Python, where nothing can be opened any more to show the lines of a traceback.
        sys.modules["io"] = None  # type: ignore[assignment]
        for name in own:
            sys.modules.pop(name, None)
        gc.collect()
        if _cleared_what_is_held(own):
            gc.collect()
        return _all_written()


def _cleared_what_is_held(own: list[str]) -> bool:
    """A function of the program that a library holds keeps the program's names alive; whether there was one."""
    held = [
        found
        for found in gc.get_objects()
        if type(found) is dict and found.get("__name__") in own and "__builtins__" in found
    ]
    # As in Python: objects go while what they are made of, functions, classes and constants, is still there.
    for names in held:
        for name, value in list(names.items()):
            if name != "__builtins__" and not issubclass(type(value), _MADE_OF):
                names[name] = None
    if held:
        gc.collect()
    for names in held:
        _clear(names)
    return bool(held)


def _clear(names: dict[str, object]) -> None:
    """As Python does it to a module that is still in use: private names first."""
    for private in (True, False):
        for name in list(names):
            if name != "__builtins__" and (name.startswith("_") and not name.startswith("__")) is private:
                names[name] = None


def _all_written() -> bool:
    """Writes what waits to be written; False if that cannot be for what was printed: Python has to show so."""
    for found in gc.get_objects():
        # Not isinstance, which asks a proxy of something deleted, or an object of the program, for its class.
        if issubclass(type(found), _WRITERS):
            with contextlib.suppress(OSError, ValueError):  # as when it is deleted; one that is detached raises too
                if not found.closed:
                    found.flush()
    _fflush(None)
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except (OSError, ValueError, AttributeError):
        return False
    return True
