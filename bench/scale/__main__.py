"""Measures many processes of a service over NATS, in network namespaces of one machine.

Usage: python -m bench.scale [--quick] [--only rates added storm operations]. All servers, processes and clients
share the machine. It needs root. Figures are written only if all parts were measured at full size.
"""

import argparse
import asyncio
import os
import platform

from bench.scale.added_time import measure_added_time
from bench.scale.operations import count_operations
from bench.scale.report import Results, build_json, build_text
from bench.scale.throughput import Load, measure_rates
from bench.serving import ROOT
from tests.support.scale.cluster import Cluster
from tests.support.scale.storm import Plan, run_storm

PARTS = ("rates", "added", "storm", "operations")
RESULTS = ROOT / "bench" / "results"
LOAD = Load(sleep_s=12.0, waves=4, rounds=2)
QUICK_LOAD = Load(sleep_s=2.0, waves=3, rounds=1)
PAIRS, QUICK_PAIRS = 150, 20
STORMS, QUICK_STORMS = 3, 1
COUNTED, QUICK_COUNTED = 60, 12
IDLE_S, QUICK_IDLE_S = 30.0, 8.0


def describe_machine(load_before: float) -> str:
    """What it was measured on."""
    kernel = platform.release().split("-")[0]
    return (
        f"{os.cpu_count()} cores, Linux {kernel}, Python {platform.python_version()}; load average "
        f"{load_before:.1f} before. All servers, processes, containers and clients shared these cores, so rates of "
        "programs that compute would not grow with workers. PostgreSQL does not wait for the disk.\n"
    )


async def measure(results: Results, part: str, *, is_quick: bool) -> None:
    """Measure one part."""
    if part == "rates":
        results.rates = await measure_rates(QUICK_LOAD if is_quick else LOAD)
    elif part == "added":
        results.added = await measure_added_time(QUICK_PAIRS if is_quick else PAIRS)
    elif part == "storm":
        for number in range(QUICK_STORMS if is_quick else STORMS):
            with Cluster() as cluster:
                await asyncio.to_thread(cluster.start)
                results.storms.append(await run_storm(cluster, Plan(), f"storm{number}"))
    else:
        seconds = QUICK_IDLE_S if is_quick else IDLE_S
        results.operations = await count_operations(QUICK_COUNTED if is_quick else COUNTED, seconds, seconds)


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes; nothing is written")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    results = Results(describe_machine(os.getloadavg()[0]))
    for part in arguments.only:
        alone = Results(results.machine)
        asyncio.run(measure(alone, part, is_quick=arguments.quick))
        print(build_text(alone), flush=True)
        results.add(alone)
    if arguments.quick or set(arguments.only) != set(PARTS):
        return
    (RESULTS / "scale.md").write_text(build_text(results), encoding="utf-8")
    (RESULTS / "scale.json").write_text(build_json(results), encoding="utf-8")


if __name__ == "__main__":
    main()
