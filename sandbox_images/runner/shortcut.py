"""From the stream that an engine relays to a socket that it has no part in.

An engine hands no socket to a container, but a service on the same machine may take one from a process that runs in
it. So one end is laid out for it, and the stream on which the service speaks first is the one that stays.
"""

from __future__ import annotations

import _socket
import os
import select
import stat

import frames

LAID_OUT_FD = 99
"""Where the service looks for an end that is its own."""


def offered() -> _socket.socket | None:
    """Our end of a socket whose other end is laid out; None if none can be had, or the stream is one already."""
    if stat.S_ISSOCK(os.fstat(0).st_mode):
        return None
    try:
        ours, theirs = _socket.socketpair()
    except OSError:
        return None
    os.dup2(theirs.fileno(), LAID_OUT_FD, inheritable=False)
    theirs.close()
    return ours


def take_if_spoken_on(ours: _socket.socket, channel: frames.Channel) -> None:
    """Waits until the service speaks or hangs up, and lets go of the stream on which it does not.

    Until then this process holds both ends of the socket, so only the end of the other stream tells that the
    service has gone; from then on the service alone holds the one that is not ours.
    """
    poll = select.poll()
    poll.register(ours.fileno(), select.POLLIN)
    poll.register(channel.read_fd, select.POLLIN)
    ready = {fd for fd, _ in poll.poll()}
    os.close(LAID_OUT_FD)
    if ours.fileno() in ready:
        channel.move_to(ours.detach())
    else:
        ours.close()
