"""The connections of a program that may use the network, as frames of the stream.

Process 1 listens on loopback and carries bytes; it reads none of them. The service parses, checks and connects.
The payload of each frame begins with the number of the connection, 1 for the first of a call. Each side sends at
most `WINDOW_BYTES` of a connection that the other has not passed on, so neither ever holds more.
"""

import struct

PROXY_PORT = 3128
"""Where process 1 listens, on 127.0.0.1."""
CA_BUNDLE = "/job/ca-bundle.pem"
"""Where process 1 writes the certificate authorities for a program: the public ones and those of its call."""
CONNECTION = struct.Struct(">I")
"""The number of a connection."""
CREDIT = struct.Struct(">II")
"""The number of a connection, and how many more bytes of it were passed on."""
WINDOW_BYTES = 512 * 1024
"""Bytes of one direction of a connection that are on their way."""
CREDIT_EVERY_BYTES = WINDOW_BYTES // 4
"""After so many bytes passed on, the other side is sent a credit."""
PIECE_BYTES = 64 * 1024
"""Bytes of one frame."""
