"""What a process that serves does about its memory, in a process of its own."""

import subprocess
import sys

PROGRAM = """
import gc
from proofbox.service.app import malloc_tuning

def anonymous():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Anonymous:"))

malloc_tuning.share_arenas()
kept = [bytearray(100_000) for _ in range(500)]
last = bytearray(100_000)  # above it nothing is free, so the C library returns nothing by itself
del kept
before = anonymous()
malloc_tuning.settle()
print(gc.get_freeze_count() > 1_000, before - anonymous() > 30_000)
"""


def test_what_is_loaded_is_looked_at_no_more_and_what_is_free_is_given_back():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
