"""Measures calls of Proofbox beside ``docker run``, llm-sandbox, epicbox and four floors, all in one run.

Usage: python -m bench.speed [--quick] [--only NAME ...]. A full run takes half an hour and writes
bench/results/speed.md and .json, docs/bench/speed.svg and -dark.svg; the bar into docs/speed.md and the chart into
README.md, between their markers. A quick one takes less than two minutes and only prints, and so does one of some
parts.
"""

import argparse
import asyncio
import sys
import time

from bench.speed.machine import machine
from bench.speed.measure import Run, left_behind
from bench.speed.model import CallFailedError, Results
from bench.speed.plan import FULL, PARTS, QUICK
from bench.speed.report import text_of, write


def main() -> None:
    """Measures, prints, and writes if all was measured in full."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds of most parts; nothing is written")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="NAME", help=", ".join(PARTS))
    arguments = parser.parse_args()
    began = time.perf_counter()
    run = Run(QUICK if arguments.quick else FULL, frozenset(arguments.only or PARTS), Results(machine()))
    failure: BaseException | None = None
    try:
        asyncio.run(run.measure())
    except* CallFailedError as failed:
        failure = _first(failed)
    left = left_behind()
    if left:
        print(f"containers were left behind: {'; '.join(left)}", file=sys.stderr)
    if failure is not None:
        sys.exit(f"a call failed, and with it the benchmark: {failure}")
    print(text_of(run.results))
    print(f"Measured in {time.perf_counter() - began:.0f} s.")
    if not arguments.quick and arguments.only is None:
        write(run.results)
    sys.exit(1 if left else 0)


def _first(failed: BaseException) -> BaseException:
    while isinstance(failed, BaseExceptionGroup):
        failed = failed.exceptions[0]
    return failed


if __name__ == "__main__":
    main()
