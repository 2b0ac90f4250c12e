"""The inspector: opens each promised file with its format's own library and judges whether it is what it promises.

It runs inside the sandbox, on what a hostile program left there, in a fork of a zygote or of the runner, or by hand
as ``python3 -I inspector``: one JSON request on stdin, one JSON line per file on stdout, in order and as soon as
each is judged::

    request  {root, seconds_per_file, wall_seconds_per_file, image_pixels_max, unpacked_bytes_max, members_max,
              pages_max, memory_bytes_max?, files: [{id, path, checks}]}
    line     {id, ok, mime, problem, facts}

The exit status is 0 whatever the files are; it is 2, with a sentence on stderr, only for a request that is no
request.
"""

from __future__ import annotations

import sys

from request import MalformedRequest
from session import inspect

_BAD_REQUEST_STATUS = 2


def main() -> int:
    """Judge the files of the request on stdin; returns the exit status."""
    try:
        inspect(sys.stdin.buffer.read(), sys.stdout)
    except MalformedRequest as error:
        sys.stderr.write(f"inspector: {error}\n")
        return _BAD_REQUEST_STATUS
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
