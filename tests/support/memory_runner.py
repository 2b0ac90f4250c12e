"""The wire to a runner, with a script on its other side."""

import asyncio
import json

from proofbox.service.sandbox.runner.frames import NO_NONCE, Frame, FrameDecoder, encode

HUNG_UP = object()


class MemoryRunner:
    """A transport whose other side is a script.

    It says READY at once and has an interpreter launched, then answers each frame of the service as ``answers``
    says: by the frame's type, a list of ``(type, payload)``, of raw bytes, of exceptions that the next read raises,
    or of ``HUNG_UP``.
    """

    def __init__(self, answers, *, first=((Frame.READY, {}),)):
        self.received = []
        self.direct_socket_after = None
        self.breaks_writing = False
        self._answers = {Frame.LAUNCH: [(Frame.LAUNCHED, b"")], **answers}
        self._decoder = FrameDecoder()
        self._outgoing = asyncio.Queue()
        for what in first:
            self._say(what)

    @property
    def nonce(self):
        """The nonce that the service drew."""
        return self._decoder.nonce

    def _say(self, what):
        if isinstance(what, tuple):
            kind, payload = what
            payload = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            what = encode(kind, self._decoder.nonce, payload)
        self._outgoing.put_nowait(what)

    async def use_direct_socket(self):
        self.direct_socket_after = list(self.received)

    async def read(self):
        what = await self._outgoing.get()
        if isinstance(what, Exception):
            raise what
        return b"" if what is HUNG_UP else what

    async def write(self, data):
        if self.breaks_writing:
            raise BrokenPipeError
        if self._decoder.nonce == NO_NONCE:
            self._decoder.nonce = data[1:17]
        for kind, payload in self._decoder.feed(data):
            self.received.append((kind, payload))
            for what in self._answers.get(kind, ()):
                self._say(what)
