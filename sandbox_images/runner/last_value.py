"""The text of a value, as a notebook shows that of its last line, within bounds of time, memory and length."""

import re
import resource
import signal
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn

CHARS_MAX = 8_000
_SECONDS_MAX = 2.0
_MEMORY_BYTES = 256 * 1024 * 1024
_ITEMS_MAX = 1_000
_DEPTH_MAX = 20
_INT_BITS_MAX = 32 * 1024
_BRACKETS: dict[type, Sequence[str]] = {
    list: "[]",
    tuple: "()",
    set: "{}",
    frozenset: ("frozenset({", "})"),
    dict: "{}",
}
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,16}(?=[>,) ])")  # differs from run to run, and names nothing
_PAGE_BYTES = resource.getpagesize()


class _SlowError(BaseException):
    """The time is over; no handler of the program's for errors takes it."""


def describe_value(value: object) -> str:
    """The text of a value: that of its `repr`, which runs once; why there is none, if it fails."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    try:
        with _Bounds():
            text = _bounded(_Room().text(value))
            return _ADDRESS.sub("", text).encode("utf-8", "replace").decode("utf-8")
    except _SlowError:
        return f"<{kind}, whose text takes more than {_SECONDS_MAX:.0f} s>"
    except MemoryError:
        return f"<{kind}, whose text takes more than {_MEMORY_BYTES // 2**20} MiB>"
    except Exception as exc:  # noqa: BLE001 - whatever the program's own function raises
        return f"<{kind}, whose text cannot be had: {_first_line(exc)}>"


def _first_line(exc: Exception) -> str:
    try:
        return f"{type(exc).__name__}: {exc}".split("\n", 1)[0][:200]
    except Exception:  # noqa: BLE001 - its text is the program's as well
        return type(exc).__name__


def _bounded(text: str) -> str:
    if len(text) <= CHARS_MAX:
        return text
    half = CHARS_MAX // 2 - 30
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


class _Room:
    """Writes containers piece by piece, as `repr` does, until there is more than what is shown."""

    def __init__(self) -> None:
        self._left = 2 * CHARS_MAX
        self._open: set[int] = set()

    def text(self, value: Any) -> str:
        kind = type(value)
        if kind in _BRACKETS and len(self._open) < _DEPTH_MAX:
            return self._container(value)
        if kind in {str, bytes, bytearray} and len(value) > CHARS_MAX:
            half = CHARS_MAX // 2 - 100
            text = f"{value[:half]!r}… {len(value) - 2 * half} more …{value[-half:]!r}"
        elif kind is int and value.bit_length() > _INT_BITS_MAX:
            text = f"<int of {value.bit_length()} bits>"
        else:
            text = repr(value)
        self._left -= len(text)
        return text

    def _container(self, value: Any) -> str:
        if id(value) in self._open:
            return "..."
        if not value:
            return repr(value)
        self._open.add(id(value))
        pieces = []
        for number, item in enumerate(value.items() if type(value) is dict else value):
            if number == _ITEMS_MAX or self._left <= 0:
                pieces.append(f"… {len(value) - number} more")
                break
            is_pair = type(value) is dict
            pieces.append(f"{self.text(item[0])}: {self.text(item[1])}" if is_pair else self.text(item))
            self._left -= 2
        self._open.discard(id(value))
        first, last = _BRACKETS[type(value)]
        comma = "," if type(value) is tuple and len(value) == 1 else ""
        return f"{first}{', '.join(pieces)}{comma}{last}"


class _Bounds:
    """A limit of memory and a timer, for as long as the block; what was set before is set again."""

    def __enter__(self) -> None:
        self._memory = resource.getrlimit(resource.RLIMIT_AS)
        self._handler = signal.signal(signal.SIGALRM, self._end)
        self._timer = signal.setitimer(signal.ITIMER_REAL, _SECONDS_MAX, 0.1)
        with open("/proc/self/statm", "rb") as file:
            now = int(file.read().split()[0]) * _PAGE_BYTES
        soft, hard = self._memory
        if soft == resource.RLIM_INFINITY or soft > now + _MEMORY_BYTES:
            resource.setrlimit(resource.RLIMIT_AS, (now + _MEMORY_BYTES, hard))

    def _end(self, _number: int, _frame: FrameType | None) -> NoReturn:
        raise _SlowError

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, self._memory)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if self._handler is None else self._handler)
        signal.setitimer(signal.ITIMER_REAL, *self._timer)
