"""Our profile in the runtime's form: nothing is allowed that Docker's form of it does not allow."""

import json

import pytest

from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.linux.seccomp_profile import runtime_form


@pytest.fixture
def profile():
    return json.loads(Settings().seccomp_profile.read_text())


def rule(*names, **conditions):
    return {"names": list(names), "action": "SCMP_ACT_ALLOW", "args": [], **conditions}


def names_in(form):
    return [name for row in form["syscalls"] for name in row["names"]]


def small(*rules):
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X32"]}],
        "syscalls": list(rules),
    }


@pytest.mark.parametrize(("machine", "native"), [("x86_64", "SCMP_ARCH_X86_64"), ("aarch64", "SCMP_ARCH_AARCH64")])
def test_every_rule_of_our_profile_is_there_for_each_machine_that_it_covers(profile, machine, native):
    form = runtime_form(profile, machine, "6.1.0")
    kept = ("names", "action", "errnoRet", "args")
    wanted = [{name: row[name] for name in kept if row.get(name) not in (None, [])} for row in profile["syscalls"]]
    assert form == {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "architectures": [native],
        "syscalls": wanted,
    }


def test_a_rule_for_a_capability_is_left_out_and_one_for_lack_of_it_stays():
    form = runtime_form(
        small(
            rule("mount", includes={"caps": ["CAP_SYS_ADMIN"]}),
            rule("clone", excludes={"caps": ["CAP_SYS_ADMIN"]}),
        ),
        "x86_64",
        "6.1",
    )
    assert names_in(form) == ["clone"]


def test_rules_for_another_machine_are_left_out():
    form = runtime_form(
        small(
            rule("arch_prctl", includes={"arches": ["amd64"]}),
            rule("sync_file_range2", includes={"arches": ["arm64"]}),
            rule("renameat", excludes={"arches": ["amd64"]}),
        ),
        "x86_64",
        "6.1",
    )
    assert (names_in(form), form["architectures"]) == (["arch_prctl"], ["SCMP_ARCH_X86_64", "SCMP_ARCH_X32"])


@pytest.mark.parametrize(
    ("kernel", "names"),
    [("4.7.9", ["old"]), ("4.8", ["ptrace"]), ("4.10.1-amd64", ["ptrace"]), ("6.18.44", ["ptrace"])],
)
def test_kernels_are_compared_as_numbers(kernel, names):
    rules = rule("ptrace", includes={"minKernel": "4.8"}), rule("old", excludes={"minKernel": "4.8"})
    assert names_in(runtime_form(small(*rules), "x86_64", kernel)) == names


def test_a_machine_that_the_profile_does_not_cover_is_refused(profile):
    with pytest.raises(ValueError, match="the seccomp profile does not cover riscv64"):
        runtime_form(profile, "riscv64", "6.1")
