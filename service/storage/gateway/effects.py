"""Which function stores which effect in the transaction of a call."""

from collections.abc import Mapping

from sqlalchemy import Connection

from proofbox.service.calls.port import Effect
from proofbox.service.gateway.agent_runs import StopRun
from proofbox.service.gateway.call_effects import AcceptRunCall, EndLostCall, EndRunCall
from proofbox.service.gateway.posting import EndRecord, Posting, ResumeRecord, StartRecord, SuspendRecord
from proofbox.service.gateway.waits.port import CancelWaits, CloseWait, OpenWait
from proofbox.service.gateway.waits.replies import OpenReplyWait
from proofbox.service.storage.call_row import ApplyEffect, CallRow
from proofbox.service.storage.gateway.agent_runs import stop_run
from proofbox.service.storage.gateway.call_records import end_record, resume_record, start_record, suspend_record
from proofbox.service.storage.gateway.outbox import open_reply_wait
from proofbox.service.storage.gateway.run_calls import accept_run_call, end_run_call, run_id_of_call, store_place
from proofbox.service.storage.gateway.waits import cancel_waits, close_wait, open_wait


def call_effects() -> Mapping[type[Effect], ApplyEffect]:
    """The effects of `SqlCallStore`."""
    return {
        AcceptRunCall: accept_run_call,
        EndRunCall: end_run_call,
        EndLostCall: _end_lost_call,
        StopRun: stop_run,
        OpenWait: open_wait,
        OpenReplyWait: open_reply_wait,
        CloseWait: close_wait,
        CancelWaits: cancel_waits,
        StartRecord: _start_record,
        SuspendRecord: _suspend_record,
        ResumeRecord: _resume_record,
        EndRecord: _end_record,
    }


def _start_record(connection: Connection, call: CallRow, effect: StartRecord) -> None:
    posting = start_record(connection, effect.call, effect.posting)
    if posting != Posting():
        store_place(connection, call, {"posting": posting.to_json()})


def _suspend_record(connection: Connection, _call: CallRow, effect: SuspendRecord) -> None:
    suspend_record(connection, effect.call, effect.posting, effect.card)


def _resume_record(connection: Connection, _call: CallRow, effect: ResumeRecord) -> None:
    resume_record(connection, effect)


def _end_record(connection: Connection, _call: CallRow, effect: EndRecord) -> None:
    end_record(connection, effect)


def _end_lost_call(connection: Connection, call: CallRow, effect: EndLostCall) -> None:
    run_id = run_id_of_call(connection, call)
    if run_id is None:
        return
    cancel_waits(connection, call, CancelWaits(effect.lease_s))
    end_run_call(connection, call, EndRunCall(effect.lease_s))
    end_record(connection, EndRecord(run_id, call.key.tool_call_id, effect.ending, left_warned=True))
