"""The zygote of inspectors: it has imported the libraries that open promised files, and its forks open them."""

import os
import socket
import sys
import warnings

_RUNNER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Isolated from its folder and from the environment, as the runner is: what it needs is named here.
sys.path[:0] = [os.path.join(os.path.dirname(_RUNNER), "inspector"), _RUNNER]

from zygote.main import SERVICE_FD, serve  # noqa: E402 - from the folder that was just added

_READ_BYTES = 65_536


def main() -> None:
    """Serves as a zygote; in a fork, inspects the files that process 1 names."""
    warnings.simplefilter("ignore")
    connection = serve(socket.socket(fileno=SERVICE_FD)).connection
    status = 1
    try:
        from session import inspect  # noqa: PLC0415 - imported by the zygote, as its settings demand

        request = bytearray()
        while piece := connection.recv(_READ_BYTES):
            request += piece
        with connection.makefile("w", encoding="utf-8") as out:
            inspect(bytes(request), out)
        status = 0
    finally:
        os._exit(status)


main()
