"""Events of runs and spaces: bytes in, typed events out, and streams that are resumed after a lost connection."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, get_args

from pydantic import BaseModel, ValidationError

from proofbox.client.api import Api, target
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
from proofbox.contracts.gateway.runs import ENDED_STATUSES, CallAnsweredEvent, Run, RunEvent, RunEventName
from proofbox.contracts.gateway.space_events import (
    MemberEvent,
    MessageCreatedEvent,
    MessageDeltaEvent,
    ResetEvent,
    RunStatusEvent,
    SpaceEventName,
    ToolCallEvent,
    ToolInputDeltaEvent,
)

GatewayEventData: TypeAlias = (
    RunEvent
    | CallAnsweredEvent
    | MessageCreatedEvent
    | MessageDeltaEvent
    | ToolCallEvent
    | ToolInputDeltaEvent
    | RunStatusEvent
    | MemberEvent
    | ResetEvent
)
_OK = 200
_RUN_MODELS: dict[str, type[BaseModel]] = {
    name: CallAnsweredEvent if name == "call.answered" else RunEvent for name in get_args(RunEventName)
}
_SPACE_MODELS: dict[str, type[BaseModel]] = {
    "message.created": MessageCreatedEvent,
    "message.delta": MessageDeltaEvent,
    "tool-call.start": ToolCallEvent,
    "tool-input-delta": ToolInputDeltaEvent,
    "tool-call.waiting": ToolCallEvent,
    "tool-call.complete": ToolCallEvent,
    "tool-call.error": ToolCallEvent,
    "run.status": RunStatusEvent,
    "member.joined": MemberEvent,
    "member.left": MemberEvent,
    "reset": ResetEvent,
}
assert set(_SPACE_MODELS) == set(get_args(SpaceEventName))


@dataclass(frozen=True, slots=True)
class GatewayEvent:
    """An event of a run or space.

    Attributes:
        id: its number; None for a part of a text that is being written.
        name: such as ``run.completed`` or ``message.created``.
        data: what it carries.
    """

    id: int | None
    name: RunEventName | SpaceEventName
    data: GatewayEventData


def watch_run(api: Api, run_id: str, after: int) -> Plan[None]:
    """Deliver the events of a run until it has ended."""

    def has_ended() -> Plan[bool]:
        run = api.parse(Run, (yield from api.request(Request("GET", target("runs", run_id)))))
        return run.status in ENDED_STATUSES

    return _watch(api, target("runs", run_id, "events"), after, _RUN_MODELS, has_ended)


def watch_space(api: Api, space_id: str, after: int) -> Plan[None]:
    """Deliver the events of a space, without an end."""
    return _watch(api, target("spaces", space_id, "events"), after, _SPACE_MODELS, None)


def _watch(
    api: Api,
    where: str,
    after: int,
    models: dict[str, type[BaseModel]],
    has_ended: Callable[[], Plan[bool]] | None,
) -> Plan[None]:
    attempts = api.attempts()
    while True:
        resumed = {"Last-Event-ID": str(after)} if after else {}
        is_open = False
        try:
            reply: Reply = yield Open(Request("GET", where, resumed))
            if reply.status != _OK:
                yield from attempts.wait(api.error(replace(reply, body=(yield from read_all()))))
                continue
            is_open, parser = True, EventParser(lambda fields: _event(fields, models))
            while piece := (yield Read()):
                try:
                    events = list(parser.feed(piece))
                except EventStreamError as exc:
                    raise api.unexpected(reply, str(exc)) from None
                for event in events:
                    after = event.id or after
                    attempts.reset()
                    yield Deliver(event)
            if has_ended is not None and (yield from has_ended()):
                return
            raise ConnectionCut("the stream of events ended")
        except TransportFailure as exc:
            # A stream that was opened and is silent is no failed attempt: nothing may happen for long.
            if not (is_open and isinstance(exc, Silence)):
                yield from attempts.wait(api.unreachable(exc))


def _event(fields: dict[str, list[str]], models: dict[str, type[BaseModel]]) -> GatewayEvent | None:
    name, number = (fields.get(key, [""])[-1] for key in ("event", "id"))
    model = models.get(name)
    if model is None:
        return None
    try:
        data = model.model_validate_json("\n".join(fields.get("data", [])), extra="ignore")
        return GatewayEvent(int(number) if number else None, name, data)  # type: ignore[arg-type]  # by `models`
    except (ValidationError, ValueError) as exc:
        raise EventStreamError(f"an event '{name}' is not what this client knows: {exc}") from exc
