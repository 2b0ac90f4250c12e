"""What names of the web stand for."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host name; raises OSError if it has none."""

RESOLVER_THREADS = 8
"""Names that one resolver looks up at the same time, unless it is made with more."""


class SystemResolver:
    """Resolves names as this machine does, on threads of its own: a slow name server delays nothing else.

    Args:
        threads: how many names at the same time; more wait.
    """

    def __init__(self, threads: int = RESOLVER_THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="resolver")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """See `Resolver`."""
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(row[4][0]) for row in found))

    def close(self) -> None:
        """Lets the threads go; never waits for one."""
        self._threads.shutdown(wait=False, cancel_futures=True)
