"""Claims on every database: each call is run by one of them, and one that was lost on its way is made anew."""

import asyncio

from proofbox.service.calls.port import CallKey, CallState, NewCall
from proofbox.service.calls.registration import CallRegistry


def new_call(scope, tool_call_id="call-1", boot_id="boot-1", idempotency_key=None):
    return NewCall(CallKey(scope, tool_call_id), "a" * 64, "request", boot_id, idempotency_key)


class Runs:
    """The calls that are run, and how often each was begun."""

    def __init__(self, store, boot_id="boot-1"):
        self.begun = []
        self.running = set()
        self.claims = CallRegistry(store, boot_id, lambda key: key in self.running)

    async def submit(self, new):
        async with self.claims.register(new) as (stored, is_new):
            if is_new:
                self.begun.append(stored.key)
                self.running.add(stored.key)
            return stored, is_new


async def test_an_open_call_that_nobody_runs_is_claimed_anew(call_store, scope):
    runs = Runs(call_store)
    await call_store.claim(new_call(scope))  # its confirmation is lost
    stored, is_new = await runs.submit(new_call(scope))
    assert (stored.state, is_new, runs.begun) == (CallState.OPEN, True, [stored.key])


async def test_so_is_one_that_is_asked_for_by_its_other_name(call_store, scope):
    runs = Runs(call_store)
    await call_store.claim(new_call(scope, idempotency_key="key-1"))
    stored, is_new = await runs.submit(new_call(scope, "call-2", idempotency_key="key-1"))
    assert (stored.key.tool_call_id, is_new) == ("call-2", True)


async def test_a_call_that_runs_or_has_its_answer_or_is_of_another_life_is_left_as_it_is(call_store, scope):
    runs = Runs(call_store)
    await runs.submit(new_call(scope))
    _, again = await runs.submit(new_call(scope))
    await call_store.finish(CallKey(scope, "call-1"), CallState.DONE, "answer")
    runs.running.clear()
    ended, _ = await runs.submit(new_call(scope))
    await call_store.claim(new_call(scope, "call-2", boot_id="boot-0"))
    other, is_new = await runs.submit(new_call(scope, "call-2"))
    assert (again, ended.answer, other.boot_id, is_new) == (False, "answer", "boot-0", False)
    assert len(runs.begun) == 1


async def test_of_many_claims_at_one_moment_one_begins_it(call_store, scope):
    runs = Runs(call_store)
    await call_store.claim(new_call(scope))
    seen = await asyncio.gather(*(runs.submit(new_call(scope)) for _ in range(20)))
    assert (len(runs.begun), sum(is_new for _, is_new in seen)) == (1, 1)
