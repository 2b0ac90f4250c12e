"""The direct socket to the service, in place of the stream that an engine relays.

An engine hands no socket to a container, but a service on the same machine can take one from a process that runs in
it. So one end is laid out for the service, and the stream on which it sends first is the one that stays.
"""

from __future__ import annotations

import _socket
import os
import select
import stat

from runner_protocol.descriptors import LAID_OUT_FD

TYPE_CHECKING = False
if TYPE_CHECKING:
    import frames


def offer_socket() -> _socket.socket | None:
    """Lays out one end of a socket; returns the other, or None if there is none or the stream is one already."""
    if stat.S_ISSOCK(os.fstat(0).st_mode):
        return None
    try:
        ours, theirs = _socket.socketpair()
    except OSError:
        return None
    os.dup2(theirs.fileno(), LAID_OUT_FD, inheritable=False)
    theirs.close()
    return ours


def use_if_chosen(ours: _socket.socket, channel: frames.Channel) -> None:
    """Waits until the service sends or hangs up, and closes the stream on which it does not send.

    Until then this process holds both ends of the socket, so only the end of the other stream shows that the
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
