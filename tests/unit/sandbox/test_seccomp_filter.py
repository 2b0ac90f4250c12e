"""The filter of forked processes, run here as the kernel runs it: it says of each call what the profile says."""

import json
import platform

import pytest

from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.containers import NotForkedError
from proofbox.service.sandbox.linux.seccomp_bpf import compiled
from proofbox.service.sandbox.linux.seccomp_profile import runtime_form
from tests.support.kernel_filter import ALLOWED, ERRNO, verdict

COLUMN = ("x86_64", "aarch64").index(platform.machine())
# Numbers of asm/unistd.h, x86_64 and aarch64.
READ, PTRACE, SOCKET, CLONE, CLONE3, SETNS = (0, 63), (101, 117), (41, 198), (56, 220), (435, 435), (308, 268)
SENDTO, RECVFROM, SENDMSG, RECVMSG = (44, 206), (45, 207), (46, 211), (47, 212)
SENDMMSG, RECVMMSG, SENDFILE, PRCTL = (307, 269), (299, 243), (40, 71), (157, 167)
SETSOCKOPT, GETSOCKOPT = (54, 208), (55, 209)
MSG_OOB, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_ZEROCOPY = 0x1, 0x40, 0x4000, 0x4000000
IP, SOCKET_LEVEL, TCP, UDP, IPV6, TLS = 0, 1, 6, 17, 41, 282
GARBAGE = 0xABCD << 32
"""In the upper half of a register, which the kernel does not read of an int."""
NEW_PROCESS_NAMESPACE = 0x20000000
THREAD_FLAGS = 0x003D0F00


@pytest.fixture(scope="module")
def profile():
    return runtime_form(json.loads(Settings().seccomp_profile.read_text(encoding="utf-8")))


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
    assert verdict(compiled(profile), call[COLUMN], *arguments) == wanted


@pytest.mark.parametrize(
    ("call", "flags_at"),
    [(SENDTO, 3), (RECVFROM, 3), (SENDMMSG, 3), (RECVMMSG, 3), (SENDMSG, 2), (RECVMSG, 2)],
    ids=str,
)
@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (0, ALLOWED),
        (MSG_DONTWAIT | MSG_NOSIGNAL, ALLOWED),
        (MSG_OOB, ERRNO | 1),
        (MSG_OOB | MSG_DONTWAIT, ERRNO | 1),
        (GARBAGE | MSG_OOB, ERRNO | 1),
        (MSG_ZEROCOPY | MSG_NOSIGNAL, ERRNO | 1),
    ],
    ids=hex,
)
def test_messages_are_sent_and_received_without_oob_and_zero_copy(profile, call, flags_at, flags, wanted):
    assert verdict(compiled(profile), call[COLUMN], *[3] * flags_at, flags) == wanted


@pytest.mark.parametrize(
    ("level", "option", "wanted"),
    [
        *((SOCKET_LEVEL, option, ALLOWED) for option in (2, 6, 7, 8, 9, 13, 15, 16, 20, 21, 25, 29)),
        *((TCP, option, ALLOWED) for option in (1, 3, 4, 5, 6, 9, 12, 18, 23)),
        *((IP, option, ALLOWED) for option in (1, 2, 11)),
        *((IPV6, option, ALLOWED) for option in (16, 26)),
        *((SOCKET_LEVEL, option, ERRNO | 1) for option in (26, 32, 36, 37, 46, 50, 51, 52, 60, 61, 75)),
        *((TCP, option, ERRNO | 1) for option in (13, 14, 19, 31, 32, 38)),
        *((IP, option, ERRNO | 1) for option in (3, 4, 16, 19, 35, 41, 64)),
        *((UDP, option, ERRNO | 1) for option in (1, 100, 103, 104)),
        *((IPV6, option, ERRNO | 1) for option in (1, 2, 34, 54, 57, 64)),
        (TLS, 1, ERRNO | 1),
        (GARBAGE | UDP, 100, ERRNO | 1),
        (TCP, GARBAGE | 31, ERRNO | 1),
    ],
)
def test_only_plain_options_of_sockets_can_be_set(profile, level, option, wanted):
    assert verdict(compiled(profile), SETSOCKOPT[COLUMN], 3, level, option) == wanted


@pytest.mark.parametrize(
    ("call", "arguments", "wanted"),
    [
        (GETSOCKOPT, (3, SOCKET_LEVEL, 4), ALLOWED),
        (GETSOCKOPT, (3, TCP, 11), ALLOWED),
        (GETSOCKOPT, (3, TCP, 35), ERRNO | 1),
        (SENDFILE, (3, 4), ERRNO | 22),
        *((PRCTL, (option,), ALLOWED) for option in (1, 15, 21, 23, 24, 31, 32, 36, 38, 47, 59, 63, 0x53564D41)),
        *((PRCTL, (option,), ERRNO | 1) for option in (22, GARBAGE | 22, 1 << 31 | 22, 64 + 22)),
    ],
    ids=str,
)
def test_what_is_left_of_calls_that_reach_shared_pages_and_kernel_programs(profile, call, arguments, wanted):
    assert verdict(compiled(profile), call[COLUMN], *arguments) == wanted


def test_a_call_of_another_machine_is_never_allowed(profile):
    assert verdict(compiled(profile), READ[COLUMN], architecture=0x40000028 ^ 0xFFFF) != ALLOWED


def test_an_action_that_a_fork_cannot_be_given_is_refused(profile):
    watched = {**profile, "syscalls": [{"names": ["read"], "action": "SCMP_ACT_NOTIFY"}]}
    with pytest.raises(NotForkedError, match="asks for SCMP_ACT_NOTIFY, which a fork cannot be given"):
        compiled(watched)
