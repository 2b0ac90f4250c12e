"""Podman behind the Docker API: what it takes in another form, or not at all.

Tried with Debian's 4.3.1; docs/engines.md lists what differs for programs.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

_NAME = "Podman Engine"
_UNKNOWN_TMPFS_OPTIONS = ("nr_inodes=", "uid=", "gid=", "mode=")
# U: it belongs to the user of the container, as uid= and gid= would have it. Nothing is copied from the image.
_TMPFS_OPTIONS = ("U", "mode=0755", "notmpcopyup")
_PROFILE = "seccomp.json"
_ETC = ("hosts", "resolv.conf")  # empty, as where an engine has no network for a container
# Podman adds them to a container whose root is read-only, writable and without a bound.
_OWN_TMPFS = ("/run", "/var/tmp")  # noqa: S108 - the container's own
_NO_ROOM = "ro,nosuid,nodev,noexec,size=4096,mode=0755,notmpcopyup"


def is_podman(version: dict[str, Any]) -> bool:
    """Whether an engine is Podman, by its answer to ``GET /version``."""
    return any(part.get("Name") == _NAME for part in version.get("Components") or ())


class PodmanFiles:
    """Files for Podman on this machine: the seccomp profile, whose text it does not take, and two of ``/etc``.

    Without these it gives containers the name servers and host names of the machine.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None

    def write(self, profile: str) -> Path:
        """Writes the files, once, and returns their folder.

        Raises:
            OSError: they cannot be written.
        """
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="proofbox-podman-"))
            self._folder.chmod(0o755)  # a rootless engine is another user
            for name, text in {_PROFILE: profile, **dict.fromkeys(_ETC, "")}.items():
                path = self._folder / name
                path.write_text(text, encoding="utf-8")
                path.chmod(0o644)
        return self._folder

    def remove(self) -> None:
        """Removes them; never raises."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def podman_form(config: dict[str, Any], files: Path) -> dict[str, Any]:
    """The body of ``POST /containers/create`` as Podman takes it.

    Args:
        config: the body for Docker.
        files: the folder of `PodmanFiles`.
    """
    host = dict(config["HostConfig"])
    host["SecurityOpt"] = [
        "no-new-privileges",
        f"seccomp={files / _PROFILE}",
        f"mask={':'.join(host.pop('MaskedPaths'))}",
    ]
    host.pop("ReadonlyPaths")  # its own list is the same, and cannot be given
    host["Tmpfs"] = {
        **{path: _tmpfs_options(options) for path, options in host["Tmpfs"].items()},
        **dict.fromkeys(_OWN_TMPFS, _NO_ROOM),
    }
    host["Binds"] = [f"{files / name}:/etc/{name}:ro,nosuid,nodev,noexec" for name in _ETC]
    # Without a limit of ours it sets one for which it may lack CAP_SYS_RESOURCE. PidsLimit counts first.
    most = 2 * host["PidsLimit"]
    host["Ulimits"] = [*host["Ulimits"], {"Name": "nproc", "Soft": most, "Hard": most}]
    return {**config, "HostConfig": host}


def _tmpfs_options(options: str) -> str:
    known = [option for option in options.split(",") if not option.startswith(_UNKNOWN_TMPFS_OPTIONS)]
    return ",".join([*known, *_TMPFS_OPTIONS])
