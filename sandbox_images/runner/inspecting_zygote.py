"""The zygote of inspectors: it has imported what opens promised files, and its forks open them."""

import os
import socket
import sys
import warnings

_HERE = os.path.dirname(os.path.abspath(__file__))
# Isolated from its folder and from the environment, as the runner is: what it needs is named here.
sys.path[:0] = [os.path.join(os.path.dirname(_HERE), "inspector"), _HERE]

import zygote  # noqa: E402 - from the folder that was just added

_READ_BYTES = 65_536


def main() -> None:
    """Waits, and in a fork inspects what process 1 asks for."""
    warnings.simplefilter("ignore")
    connection = zygote.serve(socket.socket(fileno=zygote.DOOR_FD)).connection
    status = 1
    try:
        from inspection import inspect  # noqa: PLC0415 - imported by the zygote, as it is told

        request = bytearray()
        while piece := connection.recv(_READ_BYTES):
            request += piece
        with connection.makefile("w", encoding="utf-8") as out:
            inspect(bytes(request), out)
        status = 0
    finally:
        os._exit(status)


main()
