"""The filter of forked processes, run here as the kernel runs it: it says of each call what the profile says."""

import json
import platform
import struct

import pytest

from service.engines.containers import NotForkedError
from service.engines.forking.seccomp_filter import compiled
from service.engines.oci.seccomp import runtime_form
from service.settings import Settings

ALLOWED = 0x7FFF0000
ERRNO = 0x00050000
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[platform.machine()]
COLUMN = ("x86_64", "aarch64").index(platform.machine())
# Numbers of asm/unistd.h, x86_64 and aarch64.
READ, PTRACE, SOCKET, CLONE, CLONE3, SETNS = (0, 63), (101, 117), (41, 198), (56, 220), (435, 435), (308, 268)
NEW_PROCESS_NAMESPACE = 0x20000000
THREAD_FLAGS = 0x003D0F00


@pytest.fixture(scope="module")
def profile():
    return runtime_form(json.loads(Settings().seccomp_profile.read_text(encoding="utf-8")))


def verdict(program: bytes, call: tuple[int, int], *arguments: int, architecture: int = ARCHITECTURE) -> int:
    """What a filter answers to one call."""
    data = struct.pack("<iIQ6Q", call[COLUMN], architecture, 0, *(*arguments, *[0] * 6)[:6])
    rows = list(struct.iter_unpack("<HBBI", program))
    at, held = 0, 0
    while True:
        code, jump_true, jump_false, value = rows[at]
        at += 1
        kind = code & 0x07
        if kind == 0x00:  # load a word
            held = struct.unpack_from("<I", data, value)[0]
        elif kind == 0x04:  # of arithmetic only "and" is used
            assert code & 0xF0 == 0x50, hex(code)
            held &= value
        elif kind == 0x05:
            test = code & 0xF0
            if test == 0x00:
                at += value
            else:
                is_true = {0x10: held == value, 0x20: held > value, 0x30: held >= value, 0x40: held & value != 0}[
                    test
                ]
                at += jump_true if is_true else jump_false
        else:
            assert kind == 0x06, hex(code)
            return value


@pytest.mark.parametrize(
    ("call", "arguments", "wanted"),
    [
        (READ, (), ALLOWED),
        (PTRACE, (), ERRNO | 1),
        (SETNS, (), ERRNO | 1),
        (SOCKET, (1,), ALLOWED),
        (SOCKET, (2, 1), ALLOWED),
        (SOCKET, (16,), ERRNO | 1),
        (CLONE, (THREAD_FLAGS,), ALLOWED),
        (CLONE, (NEW_PROCESS_NAMESPACE,), ERRNO | 1),
        (CLONE3, (), ERRNO | 38),
    ],
    ids=str,
)
def test_the_filter_answers_as_the_profile_says(profile, call, arguments, wanted):
    assert verdict(compiled(profile), call, *arguments) == wanted


def test_a_call_of_another_machine_is_never_allowed(profile):
    assert verdict(compiled(profile), READ, architecture=0x40000028 ^ 0xFFFF) != ALLOWED


def test_an_action_that_a_fork_cannot_be_given_is_refused(profile):
    watched = {**profile, "syscalls": [{"names": ["read"], "action": "SCMP_ACT_NOTIFY"}]}
    with pytest.raises(NotForkedError, match="asks for SCMP_ACT_NOTIFY, which a fork cannot be given"):
        compiled(watched)
