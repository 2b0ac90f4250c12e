"""A service that ends by SIGKILL at a point of a call: dying_service.py DATA_DIR CONVERSATION [CALL AT SIDE].

If the call has no such point it prints how many it has. Without a call it ends while calls wait for a slot.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from proofbox.service.app.bootstrap import build, running
from tests.container.calling import Caller
from tests.container.struck import CALLS, queue_calls, settings_of, submit
from tests.support.kill_points import STRIKE, Strike, install


async def main(data_dir: str, conversation: str, name: str = "", at: str = "0", side: str = "") -> None:
    """Make the calls."""
    install(pytest.MonkeyPatch())
    service = build(settings_of(Path(data_dir)))
    strike = Strike(
        int(at), "before" if side == "before" else "after", lambda: os.kill(os.getpid(), signal.SIGKILL)
    )
    async with running(service):
        if not name:
            await queue_calls(Caller(service, conversation))
            strike.strike()
        STRIKE.set(strike)
        await (await submit(service, Caller(service, conversation), CALLS[name])).answer()
    sys.stdout.write(f"{len(strike.passed)}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
