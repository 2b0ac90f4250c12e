"""A process of a service of many, which a test stops or kills. Arguments: `Place.dump`, the role, settings as JSON.

It prints a line when it has started.
"""

import asyncio
import json
import sys
from pathlib import Path

from pydantic import SecretStr

from tests.support.dispatching import Place, opened_process, submit

_CALL = "call-1"


async def main():
    folder, url, nats = json.loads(sys.argv[1])
    place = Place(Path(folder), SecretStr(url), nats)
    async with opened_process(place, sys.argv[2], **json.loads(sys.argv[3])) as process:
        sys.stdout.write("started\n")
        sys.stdout.flush()
        if sys.argv[2] == "api":
            ticket = await submit(process.calls, _CALL, hold="go")
            await ticket.answer()
        await asyncio.Event().wait()


asyncio.run(main())
