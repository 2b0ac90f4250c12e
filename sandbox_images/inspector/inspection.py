"""One inspection: a request, and a line for each of its files as soon as it is judged."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

# Set before numpy is imported: a pool of threads is of no use here and does not survive a fork.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

from child import judge_in_children, judged_together
from judging_here import announcement, judge_here
from request import Request, read_request


def _nothing() -> None:
    """What happens at the end where nothing has to."""


def inspect(data: bytes, out: TextIO, said_all: Callable[[], None] = _nothing) -> None:
    """Judge the files of a request, writing the JSON line of each to ``out``.

    ``said_all`` is called behind the last line, before the last judge is ended, if there is one.

    Raises:
        MalformedRequest: ``data`` is no request; nothing was judged.
    """
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    request = read_request(data)
    for said, line in enumerate(_lines(request), start=1):
        out.write(line + "\n")
        out.flush()
        if said == len(request.files) + request.here:
            said_all()


def _lines(request: Request) -> Iterator[str]:
    root, files, limits = Path(request.root), request.files, request.limits
    if request.here:
        here = judged_together(files)
        yield announcement(files, here=here)
        if here:
            yield from judge_here(root, files, limits)
            return
    yield from (json.dumps(verdict) for verdict in judge_in_children(root, files, limits))
