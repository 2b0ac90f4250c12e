"""Judges files in this very process, where it was made for them alone and nobody needs it afterwards.

That saves a fork, and the copies of all that the fork would write to: five milliseconds. A file can end the
process, so whoever asked has to have a second one made, which judges in children.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from child import OUT_OF_MEMORY, confine, end_after
from formats import format_of
from judge import judge
from request import Entry
from verdict import Limits


def announcement(entries: list[Entry], *, here: bool) -> str:
    """Return the line that stands before all others: whether files are judged here, and their media types.

    It is said before any of them is opened, so no file has a part in it.
    """
    mimes = [format_of(entry.path).mime for entry in entries]
    return json.dumps({"here": here, "mimes": mimes})


def judge_here(root: Path, entries: list[Entry], limits: Limits) -> Iterator[str]:
    """Yield a line for each file, in their order: ``{ok, problem, facts}``.

    A file that takes longer than it may ends this process, by SIGPROF or SIGALRM; one for which others have left no
    memory is not judged, nor are those that follow.
    """
    confine(limits)
    for number, entry in enumerate(entries):
        end_after(limits.seconds_per_file, limits.wall_seconds_per_file)
        try:
            verdict = judge(root, entry, limits)
        except MemoryError:
            if number > 0:
                return
            verdict = {"ok": False, "problem": OUT_OF_MEMORY, "facts": {}}
        end_after(0, 0)
        yield json.dumps(verdict)
