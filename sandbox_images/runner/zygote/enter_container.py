"""Entering a container: how a fork of a zygote joins its namespaces and gives up every right."""

import base64
import ctypes
import os
import platform
from dataclasses import dataclass
from typing import Any

_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
_KEYCTL_JOIN_SESSION_KEYRING = 1
_KEYCTL = {"x86_64": 250, "aarch64": 219}[platform.machine()]
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES_MAX = 64
_CAP_SETGID, _CAP_SETUID = 1 << 6, 1 << 7
_INSTRUCTION_BYTES = 8
_LABEL = "/proc/self/attr/current"

_libc = ctypes.CDLL(None, use_errno=True)


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


@dataclass(frozen=True, slots=True)
class Confinement:
    """What every process of every container is.

    Attributes:
        group: its group id.
        groups: its supplementary groups.
        umask: its mask of permissions.
        seccomp: the filter of its system calls, as the kernel takes it.
    """

    group: int
    groups: list[int]
    umask: int
    seccomp: bytes

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> "Confinement":
        """Reads what the service sends."""
        seccomp = base64.b64decode(settings["seccomp"], validate=True)
        return cls(settings["group"], settings["groups"], settings["umask"], seccomp)

    def take_user(self, user: int) -> None:
        """Becomes the container's user, and gives up for good what `limit_rights` has left. Raises OSError."""
        os.setgroups(self.groups)
        os.setresgid(self.group, self.group, self.group)
        os.setresuid(user, user, user)
        # Root outside of a container's own namespace of users is nobody's root there, and loses nothing by that.
        _limit_capabilities(0)
        os.umask(self.umask)
        os.chdir("/")
        program = _FilterProgram(len(self.seccomp) // _INSTRUCTION_BYTES, self.seccomp)
        _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program))


def limit_rights() -> None:
    """Gives up all rights but those to take another user and group, and every way to new ones. Raises OSError."""
    _new_session_keyring()
    for capability in range(_CAPABILITIES_MAX):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break  # the kernel knows no further ones
    _limit_capabilities(_CAP_SETGID | _CAP_SETUID)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def take_label(wanted: str) -> None:
    """Takes the label of a security module that the container's processes have, empty where there is none.

    Raises:
        OSError: it cannot be had: then there is no fork, for it would be confined less than they are.
    """
    if wanted == _own_label():
        return
    # As AppArmor takes it; its labels read "name (mode)".
    with open(_LABEL, "wb", buffering=0) as file:
        file.write(b"changeprofile " + wanted.rpartition(" (")[0].encode())
    if _own_label() != wanted:
        raise OSError(f"the security module does not give the label {wanted}")


def _own_label() -> str:
    try:
        with open(_LABEL, "rb", buffering=0) as file:
            return file.read().decode().rstrip("\0\n")
    except OSError:
        return ""


def join_namespaces(namespaces: list[int]) -> None:
    """Joins namespaces, as a process of one thread. Raises OSError."""
    for fd in namespaces:
        os.setns(fd)


def join_control_groups(control_groups: list[int]) -> None:
    """Joins control groups, as a process of one thread. Raises OSError."""
    for fd in control_groups:
        os.write(fd, b"0")


def become_readable() -> None:
    """Lets processes of the same user see this one: it has changed its user, after which the kernel hides it."""
    _prctl(_PR_SET_DUMPABLE, 1)


def _prctl(option: int, *arguments: Any) -> None:
    padded = [*arguments, 0, 0, 0, 0][:4]
    wide = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in padded]
    if _libc.prctl(option, *wide) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _new_session_keyring() -> None:
    if _libc.syscall(_KEYCTL, _KEYCTL_JOIN_SESSION_KEYRING, None) == -1:
        raise OSError(ctypes.get_errno(), "keyctl")


def _limit_capabilities(mask: int) -> None:
    """Empties the ambient set and, but for those of the first 32 in ``mask``, all three of the process."""
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable: those up to the 32nd, then the others.
    sets = (ctypes.c_uint32 * 6)(mask, mask, 0, 0, 0, 0)
    if _libc.capset(ctypes.byref(header), ctypes.byref(sets)) != 0:
        raise OSError(ctypes.get_errno(), "capset")
