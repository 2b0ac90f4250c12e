"""The filter of forked processes, run here as the kernel runs it: it says of each call what the profile says."""

import json
import platform

import pytest

from service.app.settings import Settings
from service.sandbox.containers import NotForkedError
from service.sandbox.linux.seccomp_bpf import compiled
from service.sandbox.linux.seccomp_profile import runtime_form
from tests.support.kernel_filter import ALLOWED, ERRNO, verdict

COLUMN = ("x86_64", "aarch64").index(platform.machine())
# Numbers of asm/unistd.h, x86_64 and aarch64.
READ, PTRACE, SOCKET, CLONE, CLONE3, SETNS = (0, 63), (101, 117), (41, 198), (56, 220), (435, 435), (308, 268)
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


def test_a_call_of_another_machine_is_never_allowed(profile):
    assert verdict(compiled(profile), READ[COLUMN], architecture=0x40000028 ^ 0xFFFF) != ALLOWED


def test_an_action_that_a_fork_cannot_be_given_is_refused(profile):
    watched = {**profile, "syscalls": [{"names": ["read"], "action": "SCMP_ACT_NOTIFY"}]}
    with pytest.raises(NotForkedError, match="asks for SCMP_ACT_NOTIFY, which a fork cannot be given"):
        compiled(watched)
