"""A service that dies while it takes an answer: ``dying_submitter.py FOLDER``, the database in DYING_DATABASE_URL.

It kills itself with SIGKILL before the first, second, third … change or commit of the answer, each time in a
process and a data folder of its own (``FOLDER/<number>``), until one comes through. After each it prints ``died``
or ``came through`` and waits for a line: meanwhile the test looks at what is stored, and empties the database.
"""

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path

from pydantic import SecretStr
from sqlalchemy import Engine, event

from tests.support.asking import opened_asking
from tests.support.fresh_database import lay_out

CHANGES = ("INSERT", "UPDATE", "DELETE")


async def answer_and_die(folder, url, die_at):
    async with opened_asking(folder, url) as asking:
        await asking.enter()
        wait = await asking.ask()
        passed = itertools.count(1)

        def die(*_arguments):
            if next(passed) == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

        def die_at_changes(_connection, _cursor, statement, *_more):
            if statement.startswith(CHANGES):
                die()

        event.listen(Engine, "commit", die)
        event.listen(Engine, "before_cursor_execute", die_at_changes)
        await asking.answer(wait, result={"yes": True})
        event.remove(Engine, "commit", die)
        event.remove(Engine, "before_cursor_execute", die_at_changes)


def die_at_every_point(folder, url):
    lay_out(folder / "0")  # what is copied is made here, and not in each process
    for die_at in itertools.count(1):
        child = os.fork()
        if child == 0:
            asyncio.run(answer_and_die(folder / str(die_at), url, die_at))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        has_died = os.WIFSIGNALED(status)
        print("died" if has_died else "came through", flush=True)  # noqa: T201 - the test reads it
        sys.stdin.readline()
        if not has_died:
            return os.waitstatus_to_exitcode(status)
    return 1


if __name__ == "__main__":
    sys.exit(die_at_every_point(Path(sys.argv[1]), SecretStr(os.environ["DYING_DATABASE_URL"])))
