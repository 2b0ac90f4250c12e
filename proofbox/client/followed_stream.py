"""A stream of events as it is followed: opened, read, and resumed after a lost connection."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Generic, TypeVar

from proofbox.client.api import Api, Attempts
from proofbox.client.errors import ProofboxError
from proofbox.client.event_stream import EventParser, EventStreamError
from proofbox.client.exchange import (
    ConnectionCut,
    Deliver,
    Open,
    Plan,
    Read,
    Reply,
    Request,
    Silence,
    TransportFailure,
    read_all,
)

E = TypeVar("E")
_OK = 200
_EVENT_STREAM = "text/event-stream"


class FollowedStream(ABC, Generic[E]):
    """Events of one thing; a subclass knows what they mean and when they end.

    Args:
        api: the service.
        where: the target of the stream.
        after: the id of the last known event; 0 for none. The stream is resumed after it.
    """

    def __init__(self, api: Api, where: str, after: int) -> None:
        self.api = api
        self.after = after
        self._where = where

    @abstractmethod
    def build(self, fields: dict[str, list[str]]) -> E | None:
        """Build an event of its fields; None for one that is unknown. Raises EventStreamError."""

    @abstractmethod
    def take(self, event: E) -> bool:
        """Note an event, and return whether it is new; others are not delivered."""

    def is_last(self, event: E) -> bool:
        """Whether nothing comes after an event."""
        del event
        return False

    def has_ended(self) -> Plan[bool]:
        """Whether a stream that the service ended has no more events; `Silence` opens it again at once."""
        yield from ()
        return False

    def refine(self, error: ProofboxError) -> ProofboxError:
        """The error to be raised in place of one that the service answered."""
        return error

    def silence_s(self) -> float | None:
        """How long the next stream may be silent; None: as the client's settings. It may raise at a deadline."""
        return None

    def is_stale(self) -> bool:
        """Whether the open stream has to be opened again, with another `silence_s`."""
        return False

    def follow(self) -> Plan[E | None]:
        """Deliver the events, each once, and return the last one; None if the stream ended without one.

        While the service opens the stream, lost connections are no failure: nothing may happen for hours.

        Raises:
            UnreachableError: the service cannot be reached, and the retries are used up.
            ProblemError, UnexpectedResponseError: the answer is an error, or no stream of events.
        """
        attempts = self.api.attempts()
        while True:
            resumed = {"Last-Event-ID": str(self.after)} if self.after else {}
            request = Request("GET", self._where, resumed, silence_s=self.silence_s())
            is_open = False
            try:
                reply: Reply = yield Open(request)
                if reply.status != _OK:
                    error = self.api.error(replace(reply, body=(yield from read_all())))
                    yield from attempts.wait(self.refine(error))
                    continue
                yield from self._require_stream(reply)
                is_open = True
                attempts.renew()
                return (yield from self._read(reply, attempts))
            except TransportFailure as exc:
                # A stream that was opened and is silent is opened again at once.
                if not (is_open and isinstance(exc, Silence)):
                    yield from attempts.wait(self.api.unreachable(exc, request.silence_s))

    def _read(self, reply: Reply, attempts: Attempts) -> Plan[E | None]:
        """Deliver the events of an open stream to its end.

        Raises:
            TransportFailure: it has to be opened again.
        """
        parser = EventParser(self.build)
        while piece := (yield Read()):
            for event in self._parsed(parser, piece, reply):
                if self.take(event):
                    attempts.reset()
                    yield Deliver(event)
                    if self.is_last(event):
                        return event
            if self.is_stale():
                raise Silence("the time is nearly over")
        if not (yield from self.has_ended()):
            raise ConnectionCut("the stream of events ended too early")
        return None

    def _require_stream(self, reply: Reply) -> Plan[None]:
        mime = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
        if mime != _EVENT_STREAM:
            whole = replace(reply, body=(yield from read_all()))
            raise self.api.unexpected(whole, f"'{mime}' is no stream of events")

    def _parsed(self, parser: EventParser[E], piece: bytes, reply: Reply) -> Iterator[E]:
        try:
            yield from parser.feed(piece)
        except EventStreamError as exc:
            raise self.api.unexpected(reply, str(exc)) from None
