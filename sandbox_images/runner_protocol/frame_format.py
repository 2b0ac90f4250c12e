"""The frames of the stream between the service and a runner.

A frame is ``type (1 byte) | nonce (16 bytes) | length (4 bytes, big endian) | payload``. The service draws the
nonce and sends it with its first frame: no process of the program ever holds it, so no program can write a frame
that the service would accept.
"""

import struct

HEADER = struct.Struct(">B16sI")
PAYLOAD_BYTES_MAX = 1024 * 1024
NO_NONCE = bytes(16)

# From the service.
PUT = 1
DATA = 2
JOB = 3
COLLECT = 4
ADOPT = 5
LAUNCH = 6
RESTORE = 7
PING = 8
NET_DATA = 9
NET_END = 10
NET_CREDIT = 11
NET_CLOSE = 12
NET_STOPPED = 13
# From the runner.
READY = 16
PUT_DONE = 17
STDOUT = 18
STDERR = 19
EXIT = 20
FOUND = 21
COLLECTED = 22
FAILED = 23
LAUNCHED = 24
INSPECTOR = 25
WORKSPACE = 26
PRINTED = 27
PONG = 28
NET_OPENED = 29
NET_SENT = 30
NET_ENDED = 31
NET_TAKEN = 32
NET_CLOSED = 33
NET_STOP = 34

OF_PLAIN_FILES = b"\1"
"""The payload of INSPECTOR if no library is needed to open the files."""
OF_LIBRARY_FILES = b"\0"
"""The same if one is needed."""
