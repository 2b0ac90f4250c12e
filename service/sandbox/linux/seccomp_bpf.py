"""A seccomp profile as the kernel takes it: what an OCI runtime would install, made by the same library."""

import ctypes
import os
from typing import Any

from proofbox.service.sandbox.containers import NotForkedError

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_EPERM = 1
_OPERATORS = {
    "SCMP_CMP_NE": 1,
    "SCMP_CMP_LT": 2,
    "SCMP_CMP_LE": 3,
    "SCMP_CMP_EQ": 4,
    "SCMP_CMP_GE": 5,
    "SCMP_CMP_GT": 6,
    "SCMP_CMP_MASKED_EQ": 7,
}
_ARGUMENTS_MAX = 6
_NO_SYSTEM_CALL = -1


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("value", ctypes.c_uint64),
        ("value_two", ctypes.c_uint64),
    )


def compiled(profile: dict[str, Any]) -> bytes:
    """The filter of a profile in the form of the OCI runtime specification, as it is for this machine.

    Raises:
        NotForkedError: libseccomp is not there or does not take the profile.
    """
    library = _library()
    context = library.seccomp_init(
        ctypes.c_uint32(_action(profile["defaultAction"], profile.get("defaultErrnoRet")))
    )
    if not context:
        raise NotForkedError("libseccomp refuses the seccomp profile's default action")
    context = ctypes.c_void_p(context)
    try:
        for architecture in profile["architectures"]:
            name = architecture.removeprefix("SCMP_ARCH_").lower().encode()
            token = library.seccomp_arch_resolve_name(name)
            if token and library.seccomp_arch_exist(context, ctypes.c_uint32(token)) != 0:
                _require_done(library.seccomp_arch_add(context, ctypes.c_uint32(token)), architecture)
        for rule in profile["syscalls"]:
            _add(library, context, rule)
        return _export_filter(library, context)
    finally:
        library.seccomp_release(context)


def _library() -> Any:
    try:
        library: Any = ctypes.CDLL("libseccomp.so.2")
    except OSError as exc:
        raise NotForkedError("the library libseccomp is not there: install the package libseccomp2") from exc
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_arch_resolve_name.restype = ctypes.c_uint32
    return library


def _add(library: Any, context: ctypes.c_void_p, rule: dict[str, Any]) -> None:
    action = _action(rule["action"], rule.get("errnoRet"))
    comparisons = (_Comparison * _ARGUMENTS_MAX)()
    arguments = rule.get("args") or []
    for place, argument in zip(comparisons, arguments, strict=False):
        place.argument, place.operator = argument["index"], _OPERATORS[argument["op"]]
        place.value, place.value_two = argument["value"], argument.get("valueTwo", 0)
    for name in rule["names"]:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number == _NO_SYSTEM_CALL:
            continue  # newer than the library: refused by the default action, as by the runtime
        done = library.seccomp_rule_add_array(
            context, ctypes.c_uint32(action), number, ctypes.c_uint(len(arguments)), comparisons
        )
        _require_done(done, name)


def _action(name: str, errno: int | None) -> int:
    if name == "SCMP_ACT_ALLOW":
        return _ALLOW
    if name == "SCMP_ACT_ERRNO":
        return _ERRNO | (_EPERM if errno is None else errno)
    raise NotForkedError(f"the seccomp profile asks for {name}, which a fork cannot be given")


def _export_filter(library: Any, context: ctypes.c_void_p) -> bytes:
    fd = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    try:
        _require_done(library.seccomp_export_bpf(context, fd), "the whole")
        size = os.fstat(fd).st_size
        return os.pread(fd, size, 0)
    finally:
        os.close(fd)


def _require_done(result: int, what: str) -> None:
    if result != 0:
        raise NotForkedError(f"libseccomp does not take {what} of the seccomp profile: {os.strerror(-result)}")
