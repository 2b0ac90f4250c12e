"""Processes of a service of many that end by SIGKILL at points of their calls, some for each line of input.

A line is a JSON list: of each process its ``settings``, ``at`` and ``side`` of the point, and the ``call`` that one
of the API makes in a ``conversation``. Their exit statuses are a line of output. They are forks, as importing takes
longer than a call; one whose call has no such point ends after it.
"""

import asyncio
import json
import os
import signal
import sys

import pytest

from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.settings import Settings
from proofbox.service.dispatch.worker import Worker
from tests.container.calling import Caller
from tests.container.struck import CALLS, submit
from tests.support.kill_points import STRIKE, Strike, install


async def make_call(told):
    """The part of one process."""
    strike = Strike(told["at"], told["side"], lambda: os.kill(os.getpid(), signal.SIGKILL))
    patch, has_ended, handle = pytest.MonkeyPatch(), asyncio.Event(), Worker._handle

    async def handled(self, number, message):
        STRIKE.set(strike)
        await handle(self, number, message)
        has_ended.set()

    install(patch)
    patch.setattr(Worker, "_handle", handled)
    service = build(Settings(**told["settings"]))
    async with running(service):
        if "call" in told:
            STRIKE.set(strike)
            await (await submit(service, Caller(service, told["conversation"]), CALLS[told["call"]])).answer()
        else:
            await has_ended.wait()


def main():
    """Fork for each line."""
    for line in sys.stdin:
        forks = []
        for told in json.loads(line):
            build(Settings(**told["settings"]))  # what that imports the fork has already
            forks.append(os.fork())
            if not forks[-1]:
                asyncio.run(make_call(told))
                return  # a fork reads no line
        statuses = [os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]) for fork in forks]
        sys.stdout.write(f"{json.dumps(statuses)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
