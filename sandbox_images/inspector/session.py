"""One inspection: a request, and a line for each of its files as soon as it is judged."""

from __future__ import annotations

import json
import logging
import os
import warnings
from pathlib import Path
from typing import TextIO

# Set before numpy is imported: a pool of threads is of no use here and does not survive a fork.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

from request import read_request
from subprocess_judge import judge_files


def inspect(data: bytes, out: TextIO) -> None:
    """Judge the files of a request, writing the JSON line of each to ``out``.

    Raises:
        MalformedRequest: ``data`` is not a request; nothing was judged.
    """
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    request = read_request(data)
    for verdict in judge_files(Path(request.root), request.files, request.limits):
        out.write(json.dumps(verdict) + "\n")
        out.flush()
