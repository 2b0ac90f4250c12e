"""The memory of a process that serves for long: what the C library and the collector would keep without need."""

import contextlib
import ctypes
import gc
import os

_M_ARENA_MAX = -8  # of malloc.h
_ARENAS = 2


def share_arenas() -> None:
    """Has threads share two pools of memory in place of one each, which keeps what its thread once needed.

    To be called before there are threads. C libraries other than glibc have no such pools; what the operator says
    of them stands.
    """
    if "MALLOC_ARENA_MAX" in os.environ:
        return
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def settle() -> None:
    """To be called when all is loaded, which stays: no collection looks at it again, the rest is given back."""
    gc.collect()
    gc.freeze()
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
