"""What packages have to fit, as the sandbox image shows."""

import platform

from proofbox.service.packages.target import Target
from proofbox.service.sandbox.image_inventory import ImageInventory

_OLD_GLIBC = 28  # of an image that does not name it: what every Debian since 10 has


async def find_target(image: ImageInventory) -> Target | None:
    """What wheels have to fit; None if the image has not answered yet."""
    known = await image.get()
    if not known.is_known:
        return None
    major, _, minor = known.glibc.partition(".")
    glibc = int(minor) if major == "2" and minor.isdecimal() else _OLD_GLIBC
    machine = known.machine or platform.machine()
    return Target(known.image_digest, known.python, machine, glibc, known.libraries)
