"""The records of calls in spaces: each function writes within the transaction of its caller.

The order of a call: `bind`, `start_record`, for each wait `suspend_record` and `resume_record`, then `end_record`.
A record has exactly one event ``tool-call.start`` and exactly one of ``tool-call.complete`` and ``.error``.
`end_streams` and `announce_run` belong to the changes of a run's status.
"""

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, insert, select, update

from proofbox.service.gateway.posting import (
    NO_ACTIVE_SPACE,
    OPEN_STATES,
    EndRecord,
    LeftSpaceError,
    NoActiveSpaceError,
    Posting,
    RecordedCall,
    RecordEnding,
    RecordError,
    ResumeRecord,
    ShownTool,
    WaitCard,
    left_ending,
    new_message_id,
)
from proofbox.service.gateway.spaces import records
from proofbox.service.gateway.spaces.input_stream import StartedStream
from proofbox.service.gateway.spaces.records import Json, MessageHead
from proofbox.service.storage.conversation_rows import utc_now
from proofbox.service.storage.gateway.message_rows import SendingRun, build_head
from proofbox.service.storage.gateway.schema import agents, messages, runs, spaces
from proofbox.service.storage.gateway.space_rows import (
    EntityRow,
    SpaceRow,
    add_event,
    agent_of_run,
    is_member,
    json_of,
    lock_space,
)

_RUN: Select[Any] = select(
    runs.c.id, runs.c.run_id, runs.c.space, runs.c.status, runs.c.trigger, agents.c.agent_id
).join_from(runs, agents)
_RUN_BY_ID = _RUN.where(runs.c.run_id == bindparam("of_run_id"))
_RUN_BY_ROW = _RUN.where(runs.c.id == bindparam("of_run"))
_SPACE_ROW = select(spaces.c.id).where(spaces.c.space_id == bindparam("of_space_id"))
_SPACE_ID = select(spaces.c.space_id, spaces.c.archived).where(spaces.c.id == bindparam("of_space"))
_MESSAGE: Select[Any] = select(
    messages.c.id, messages.c.message_id, messages.c.space, messages.c.state, messages.c.body, messages.c.entity
)
_OF_CALL = _MESSAGE.where(messages.c.run == bindparam("of_run"), messages.c.stream_id == bindparam("of_call"))
_STREAMED = (
    select(spaces.c.space_id, messages.c.message_id)
    .join_from(messages, spaces)
    .where(
        messages.c.run == bindparam("of_run"),
        messages.c.stream_id == bindparam("of_call"),
        messages.c.state == "streaming",
    )
)
_OPEN_OF_RUN = _MESSAGE.where(
    messages.c.run == bindparam("of_run"),
    messages.c.stream_id.is_not(None),
    messages.c.state == bindparam("in_state"),
).order_by(messages.c.id)
_CHANGED = (
    update(messages)
    .where(messages.c.id == bindparam("of_message"))
    .values(
        state=bindparam("new_state"),
        revision=bindparam("new_revision"),
        body=bindparam("new_body"),
        updated=bindparam("new_time"),
    )
)
_FREED = update(messages).where(messages.c.id == bindparam("of_message")).values(stream_id=None)


def bind(connection: Connection, run_id: str, tool: ShownTool, tool_call_id: str | None = None) -> Posting:
    """Return the place of the record of a call that is accepted now; stores nothing.

    That is the active space of its run if its agent is a member of it and it is not archived. A call whose
    arguments are being written stays where their stream began.
    """
    run = connection.execute(_RUN_BY_ID, {"of_run_id": run_id}).one()
    if tool_call_id is not None and tool.is_shown_from_start:
        streamed = connection.execute(_STREAMED, {"of_run": run.id, "of_call": tool_call_id}).first()
        if streamed is not None:
            return Posting(streamed.space_id, streamed.message_id)
    space = _active_space(connection, run)
    if space is None:
        return Posting(warning=None if tool.is_hidden else NO_ACTIVE_SPACE)
    space_id = str(connection.execute(_SPACE_ID, {"of_space": space}).one().space_id)
    return Posting(space_id, None if tool.is_hidden else new_message_id())


def text_space(connection: Connection, run_id: str) -> int | None:
    """Return the row of the active space of a run, if its agent can post texts there."""
    return _active_space(connection, connection.execute(_RUN_BY_ID, {"of_run_id": run_id}).one())


def _active_space(connection: Connection, run: Row[Any]) -> int | None:
    agent = agent_of_run(connection, run.id)
    if run.space is None or agent is None or not is_member(connection, run.space, agent.id):
        return None
    found = connection.execute(_SPACE_ID, {"of_space": run.space}).one()
    return None if found.archived is not None else int(run.space)


def start_record(connection: Connection, call: RecordedCall, posting: Posting | None = None) -> Posting:
    """Post the record of a ``visible`` call that starts, in the state ``running``, with ``tool-call.start``.

    A call whose arguments were streamed has its record already, in the space where the stream began: its input
    becomes the parameters of the call. A stream that was abandoned before leaves its record as it ended, and the
    call gets a new one. Nothing is stored for other visibilities.

    Args:
        connection: the transaction.
        call: the call.
        posting: what `bind` returned; None: bind it now.

    Returns:
        Where it is posted from now on: pass it to the other functions.
    """
    posting = posting or bind(connection, call.run_id, call.tool)
    run = _lock_run(connection, call.run_id)
    streamed = _find_record(connection, run.id, call.tool_call_id)
    if streamed is not None and (started := _start_streamed(connection, streamed, call)) is not None:
        return started
    if streamed is not None and posting.message_id == streamed.message_id:
        posting = Posting(posting.space_id, new_message_id())  # it was abandoned after the call was bound to it
    if posting.space_id is None or not call.tool.is_shown_from_start:
        return posting
    place = _open_place(connection, run, posting.space_id)
    if place is None:
        return Posting(warning=NO_ACTIVE_SPACE)
    _post(connection, place, run, records.build_running, call, posting.message_id)
    return posting


def start_stream(connection: Connection, call: RecordedCall) -> StartedStream | None:
    """Post the record of a ``visible`` call whose arguments are being written, in the state ``streaming``.

    Returns:
        The stream; None for other visibilities, without an active space, and for a call that has a record already.
    """
    posting = bind(connection, call.run_id, call.tool)
    run = _lock_run(connection, call.run_id)
    if posting.space_id is None or posting.message_id is None or not call.tool.is_shown_from_start:
        return None
    place = _open_place(connection, run, posting.space_id)
    if place is None or _find_record(connection, run.id, call.tool_call_id) is not None:
        return None
    event = _post(connection, place, run, records.build_streaming, call, posting.message_id)
    message_id, text = posting.message_id, _require_record(connection, run.id, call.tool_call_id).body
    return StartedStream(place[0].id, message_id, event, json.loads(text))


def suspend_record(connection: Connection, call: RecordedCall, posting: Posting, card: WaitCard) -> Posting:
    """Show that a call waits for a person, with ``tool-call.waiting``; post its record if it has none.

    Returns:
        Where the record is.

    Raises:
        NoActiveSpaceError: nobody could answer: no space, the agent left it, it is archived, or the record ended.
    """
    run = _lock_run(connection, call.run_id)
    found = _find_record(connection, run.id, call.tool_call_id)
    space_id = posting.space_id
    if found is not None:
        space_id = connection.execute(_SPACE_ID, {"of_space": found.space}).one().space_id
    place = None if space_id is None else _open_place(connection, run, space_id)
    if place is None or space_id is None:
        raise NoActiveSpaceError
    if found is None:
        _post(connection, place, run, records.build_running, call, posting.message_id or new_message_id())
    found = _require_record(connection, run.id, call.tool_call_id)
    if found.state not in OPEN_STATES:
        raise NoActiveSpaceError
    message = records.waiting(json.loads(found.body), card, call, utc_now())
    _store(connection, found, message)
    add_event(connection, place[0], "tool-call.waiting", _event(message))
    return Posting(space_id, found.message_id, posting.warning)


def resume_record(connection: Connection, effect: ResumeRecord) -> None:
    """Show in the record that its call runs again, without an event; a record that does not wait stays."""
    run = _lock_run(connection, effect.run_id)
    found = _find_record(connection, run.id, effect.tool_call_id)
    if found is not None and found.state == "waiting":
        lock_space(connection, found.space)
        shown, by = json.loads(found.body), effect.answered_by
        _store(connection, found, records.resumed(shown, by, utc_now(), shows_input=effect.shows_input))


def end_record(connection: Connection, effect: EndRecord) -> Json | None:
    """End the record of a call, or post the one of a ``result-only`` call; ``.complete`` or ``.error``.

    If the agent has left the space, or it was archived, the record ends by ``.error`` ``left_space``, no output.

    Returns:
        The message as stored; None if there is no record.

    Raises:
        LeftSpaceError: the agent has left, and ``left_warned`` is false.
    """
    run = _lock_run(connection, effect.run_id)
    found = _find_record(connection, run.id, effect.tool_call_id)
    if found is not None:
        return _end_found(connection, found, effect)
    call, posting = effect.call, effect.posting
    if call is None or posting is None or posting.space_id is None or call.tool.is_hidden:
        return None
    # One that was to be shown from its start has no record only if the agent had left before it.
    is_late = call.tool.is_shown_from_start
    place = None if is_late else _open_place(connection, run, posting.space_id)
    if place is None:
        if not effect.left_warned:
            raise LeftSpaceError
        return None
    space, agent = place
    head = _head(connection, space, agent, run, posting.message_id)
    message = records.build_ended(head, call, effect.ending)
    _insert(connection, space, agent, run, message)
    add_event(connection, space, records.end_event(message), _event(message))
    return message


def end_streams(connection: Connection, run: int, code: str, text: str) -> None:
    """End the records whose arguments were still being written when a run (its row) ended."""
    for found in connection.execute(_OPEN_OF_RUN, {"of_run": run, "in_state": "streaming"}).all():
        _end(connection, found, RecordEnding("failed", error=RecordError(code, text)), None)


def end_stream(connection: Connection, run_id: str, tool_call_id: str, error: RecordError) -> None:
    """End one record whose arguments are still being written; one in another state stays as it is."""
    run = _lock_run(connection, run_id)
    found = _find_record(connection, run.id, tool_call_id)
    if found is not None and found.state == "streaming":
        space = lock_space(connection, found.space)
        found = _reread(connection, found, tool_call_id)
        if found.state == "streaming":
            _end(connection, found, RecordEnding("failed", error=error), None, space)


def announce_run(connection: Connection, run: int) -> None:
    """Add ``run.status`` to the active space of a run (its row), after its status or space was changed."""
    found = connection.execute(_RUN_BY_ROW, {"of_run": run}).one()
    agent = agent_of_run(connection, found.id)
    if found.space is None or agent is None:
        return
    space = lock_space(connection, found.space)
    if is_member(connection, space.id, agent.id):
        data = {"run_id": found.run_id, "agent": agent.sender.to_json(), "status": found.status}
        add_event(connection, space, "run.status", data)


def _start_streamed(connection: Connection, found: Row[Any], call: RecordedCall) -> Posting | None:
    """Go on with the record of a stream; None if it has ended: a record ends once, and its call needs another."""
    space = lock_space(connection, found.space)
    found = _reread(connection, found, call.tool_call_id)
    if found.state not in OPEN_STATES:
        connection.execute(_FREED, {"of_message": found.id})
        return None
    if space.is_archived or not is_member(connection, space.id, found.entity):
        _end(connection, found, left_ending(), call, space)
        return Posting(warning=NO_ACTIVE_SPACE)
    if found.state == "streaming":
        _store(connection, found, records.with_input(json.loads(found.body), call, utc_now()))
    return Posting(space.space_id, found.message_id)


def _end_found(connection: Connection, found: Row[Any], effect: EndRecord) -> Json | None:
    space = lock_space(connection, found.space)
    found = _reread(connection, found, effect.tool_call_id)
    if found.state not in OPEN_STATES:
        message: Json = json.loads(found.body)
        return message
    ending = effect.ending
    if space.is_archived or not is_member(connection, space.id, found.entity):
        if not effect.left_warned:
            raise LeftSpaceError
        ending = left_ending()
    return _end(connection, found, ending, effect.call, space)


def _end(
    connection: Connection,
    found: Row[Any],
    ending: RecordEnding,
    call: RecordedCall | None,
    space: SpaceRow | None = None,
) -> Json:
    space = space or lock_space(connection, found.space)
    message = records.ended(json.loads(found.body), ending, call, utc_now())
    _store(connection, found, message)
    add_event(connection, space, records.end_event(message), _event(message))
    return message


def _lock_run(connection: Connection, run_id: str) -> Row[Any]:
    """Return a run; its other writers wait. It is locked before a space, in each transaction that locks both."""
    row: Row[Any] = connection.execute(
        _RUN_BY_ID.with_for_update(key_share=True, of=runs), {"of_run_id": run_id}
    ).one()
    return row


def _find_record(connection: Connection, run: int, tool_call_id: str) -> Row[Any] | None:
    return connection.execute(_OF_CALL, {"of_run": run, "of_call": tool_call_id}).first()


def _require_record(connection: Connection, run: int, tool_call_id: str) -> Row[Any]:
    return connection.execute(_OF_CALL, {"of_run": run, "of_call": tool_call_id}).one()


def _reread(connection: Connection, found: Row[Any], tool_call_id: str) -> Row[Any]:
    """Return a record as it is now that its space is locked: another transaction may have changed it before."""
    row: Row[Any] = connection.execute(
        _MESSAGE.where(messages.c.id == found.id, messages.c.stream_id == tool_call_id)
    ).one()
    return row


def _open_place(connection: Connection, run: Row[Any], space_id: str) -> tuple[SpaceRow, EntityRow] | None:
    """Return a space, locked, and the agent of a run, if the agent can post there."""
    row = connection.execute(_SPACE_ROW, {"of_space_id": space_id}).scalar_one_or_none()
    agent = agent_of_run(connection, run.id)
    if row is None or agent is None:
        return None
    space = lock_space(connection, row)
    return (space, agent) if not space.is_archived and is_member(connection, space.id, agent.id) else None


def _post(
    connection: Connection,
    place: tuple[SpaceRow, EntityRow],
    run: Row[Any],
    message_of: Callable[[MessageHead, RecordedCall], Json],
    call: RecordedCall,
    message_id: str | None,
) -> int:
    """Post a new record with ``tool-call.start``; the id of that event."""
    space, agent = place
    message = message_of(_head(connection, space, agent, run, message_id), call)
    _insert(connection, space, agent, run, message)
    return add_event(connection, space, "tool-call.start", _event(message))


def _head(
    connection: Connection, space: SpaceRow, agent: EntityRow, run: Row[Any], message_id: str | None
) -> MessageHead:
    return build_head(connection, space, agent, SendingRun(run.id, run.run_id, json.loads(run.trigger)), message_id)


def _insert(connection: Connection, space: SpaceRow, agent: EntityRow, run: Row[Any], message: Json) -> None:
    connection.execute(
        insert(messages),
        {
            "message_id": message["message_id"],
            "space": space.id,
            "seq": message["seq"],
            "revision": message["revision"],
            "kind": message["kind"],
            "entity": agent.id,
            "run": run.id,
            "stream_id": message["tool"]["tool_call_id"],
            "state": message["tool"]["state"],
            "body": json_of(message),
            "ts": message["ts"],
            "updated": message["updated"],
        },
    )


def _store(connection: Connection, found: Row[Any], message: Json) -> None:
    values = {
        "of_message": found.id,
        "new_state": message["tool"]["state"],
        "new_revision": message["revision"],
        "new_body": json_of(message),
        "new_time": message["updated"],
    }
    connection.execute(_CHANGED, values)


def _event(message: Json) -> Json:
    return {"stream_id": message["tool"]["tool_call_id"], "message": message}
