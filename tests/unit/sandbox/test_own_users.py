"""The seccomp profile of an engine with user namespaces, as the kernel takes it."""

import json
import platform

import pytest

from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.docker.own_users import own_users_form
from proofbox.service.sandbox.linux.seccomp_bpf import compiled
from proofbox.service.sandbox.linux.seccomp_profile import runtime_form
from tests.support.kernel_filter import ALLOWED, ERRNO, verdict

COLUMN = ("x86_64", "aarch64").index(platform.machine())
# Numbers of asm/unistd.h, x86_64 and aarch64.
READ, EPOLL_CTL, PTRACE = (0, 63), (233, 21), (101, 117)
INOTIFY_INIT1, INOTIFY_ADD_WATCH, INOTIFY_RM_WATCH = (294, 26), (254, 27), (255, 28)


@pytest.mark.parametrize(
    ("call", "plain", "with_own_users"),
    [
        (READ, ALLOWED, ALLOWED),
        (EPOLL_CTL, ALLOWED, ALLOWED),
        (PTRACE, ERRNO | 1, ERRNO | 1),
        (INOTIFY_INIT1, ALLOWED, ERRNO | 38),
        (INOTIFY_ADD_WATCH, ALLOWED, ERRNO | 38),
        (INOTIFY_RM_WATCH, ALLOWED, ERRNO | 38),
    ],
    ids=str,
)
def test_with_users_of_their_own_containers_have_no_inotify_and_all_else(call, plain, with_own_users):
    text = Settings().seccomp_profile.read_text(encoding="utf-8")
    answers = [
        verdict(compiled(runtime_form(json.loads(profile))), call[COLUMN])
        for profile in (text, own_users_form(text))
    ]
    assert answers == [plain, with_own_users]
