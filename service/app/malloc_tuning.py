"""Memory settings of the process: fewer malloc arenas, and no garbage collection of loaded modules."""

import contextlib
import ctypes
import gc
import os

_M_ARENA_MAX = -8  # of malloc.h
_ARENAS = 2


def share_arenas() -> None:
    """Let threads share two malloc arenas in place of one each, which never shrinks.

    Called before threads start. C libraries other than glibc have no arenas; MALLOC_ARENA_MAX has precedence.
    """
    if "MALLOC_ARENA_MAX" in os.environ:
        return
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def settle() -> None:
    """Freeze loaded objects for the collector and return free memory; called after start-up."""
    gc.collect()
    gc.freeze()
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
