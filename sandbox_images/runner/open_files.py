"""Limits of open files: process 1 has a higher one than the programs of its container.

The kernel refuses to send descriptors over a socket if more of the user's are in flight than the sender may open.
Programs can have about as many in flight as they may open, so process 1 can still send its own.
"""

from __future__ import annotations

import resource


class OpenFiles:
    """Both limits.

    The container begins with the soft limit of programs, and with the hard limit of process 1.
    """

    def __init__(self) -> None:
        self._of_programs, self._of_runner = resource.getrlimit(resource.RLIMIT_NOFILE)

    def raise_own(self) -> None:
        """Gives this process the higher one."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._of_runner, self._of_runner))

    def lower(self) -> None:
        """Gives this process, a child of process 1, the limit of programs for good."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._of_programs, self._of_programs))


LIMITS = OpenFiles()
