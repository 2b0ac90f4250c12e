"""Events of runs and spaces, typed, as they happen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, get_args

from pydantic import BaseModel

from proofbox.client.api import Api, target
from proofbox.client.event_stream import build_event
from proofbox.client.exchange import Plan, Request, Silence
from proofbox.client.followed_stream import FollowedStream
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
_RUN_MODELS: dict[str, type[BaseModel]] = {
    name: CallAnsweredEvent if name == "call.answered" else RunEvent for name in get_args(RunEventName)
}
_LAST_OF_RUN = frozenset(f"run.{status}" for status in ENDED_STATUSES)
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
    yield from _RunStream(api, run_id, after).follow()


def watch_space(api: Api, space_id: str, after: int) -> Plan[None]:
    """Deliver the events of a space, without an end."""
    yield from _GatewayStream(api, target("spaces", space_id, "events"), after, _SPACE_MODELS).follow()


class _GatewayStream(FollowedStream[GatewayEvent]):
    """The events of a space or run, whose data have the models of their names."""

    def __init__(self, api: Api, where: str, after: int, models: Mapping[str, type[BaseModel]]) -> None:
        super().__init__(api, where, after)
        self._models = models

    def build(self, fields: dict[str, list[str]]) -> GatewayEvent | None:
        return build_event(fields, self._models, _make_event)

    def take(self, event: GatewayEvent) -> bool:
        self.after = event.id or self.after
        return True


class _RunStream(_GatewayStream):
    """The events of a run: the service ends the stream after the last one."""

    def __init__(self, api: Api, run_id: str, after: int) -> None:
        super().__init__(api, target("runs", run_id, "events"), after, _RUN_MODELS)
        self._run = Request("GET", target("runs", run_id))
        self._is_over = False  # since before the stream ended

    def take(self, event: GatewayEvent) -> bool:
        self._is_over = self._is_over or event.name in _LAST_OF_RUN
        return super().take(event)

    def has_ended(self) -> Plan[bool]:
        if not self._is_over:
            run = self.api.parse(Run, (yield from self.api.request(self._run)))
            if run.status in ENDED_STATUSES:  # maybe after the service had stopped this stream
                self._is_over = True
                raise Silence("the last events may be left")
        return self._is_over


def _make_event(number: str, name: str, data: BaseModel) -> GatewayEvent:
    return GatewayEvent(int(number) if number else None, name, data)  # type: ignore[arg-type]  # by the models
