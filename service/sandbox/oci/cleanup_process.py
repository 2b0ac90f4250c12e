"""What outlives the service: when the service ends, however, this removes the containers of that process.

    python -m proofbox.service.sandbox.oci.cleanup_process FOLDER CGROUP BOOT_ID WORD

It is started by a shell that waits for the end of its standard input, which only the service holds. The runners of
containers end by themselves when their streams end; only groups and folders are left. WORD is what the
service wrote before its end; unless it is empty the service ended well, and there is nothing to wait for.
"""

import sys
import time
from pathlib import Path

from proofbox.service.sandbox.linux.cgroups import Cgroups
from proofbox.service.sandbox.oci.container_state import ContainerState

_ROUNDS_MAX = 20
_QUIET_ROUNDS = 2  # a runtime that was starting a container when the service died makes it a moment later
_PAUSE_S = 0.3


def main(folder: str, cgroup: str, boot_id: str, word: str) -> None:
    """Removes, ends."""
    place = ContainerState(Path(folder), cgroup, Cgroups.of_machine())
    quiet = _QUIET_ROUNDS - 1 if word else 0
    for _ in range(_ROUNDS_MAX):
        try:
            quiet = 0 if place.remove_all(boot_id) else quiet + 1
        except OSError:
            quiet = 0
        if quiet == _QUIET_ROUNDS:
            break
        time.sleep(_PAUSE_S)
    place.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
