"""Opens a socket of each address family, connects none, and prints which could be opened."""
# ruff: noqa: T201 -- what a probe prints is its answer

import errno
import json
import socket

# Numbers, for families that this Python was built without.
FAMILIES = {
    "AF_UNIX": (1, socket.SOCK_STREAM),
    "AF_INET": (2, socket.SOCK_STREAM),
    "AF_INET6": (10, socket.SOCK_STREAM),
    "AF_NETLINK": (16, socket.SOCK_RAW),
    "AF_PACKET": (17, socket.SOCK_RAW),
    "AF_ALG": (38, socket.SOCK_SEQPACKET),
    "AF_VSOCK": (40, socket.SOCK_STREAM),
    "AF_CAN": (29, socket.SOCK_RAW),
    "AF_TIPC": (30, socket.SOCK_SEQPACKET),
    "AF_BLUETOOTH": (31, socket.SOCK_RAW),
    "AF_QIPCRTR": (42, socket.SOCK_DGRAM),
    "AF_XDP": (44, socket.SOCK_RAW),
}

told = {}
for name, (family, kind) in FAMILIES.items():
    try:
        socket.socket(family, kind).close()
        told[name] = "opened"
    except OSError as error:
        told[name] = errno.errorcode[error.errno]
try:
    first, second = socket.socketpair(FAMILIES["AF_TIPC"][0], socket.SOCK_SEQPACKET)
    told["AF_TIPC pair"] = "opened"
except OSError as error:
    told["AF_TIPC pair"] = errno.errorcode[error.errno]
print(json.dumps(told))
