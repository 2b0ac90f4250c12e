"""All that a program can see, open, call and change in a sandbox is what somebody has looked at and let stand.

The probe's whole output is in ``golden/<tier>.json``; `docs/sandbox.md` says why each thing in it is there.
``make golden-probe`` renews the files: look at what changed before you commit it.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from syscall_table import NOT_YET, X86_64

from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.hardening import MASKED_PATHS, NEW_TERMINALS, READ_ONLY_PATHS
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
RENEWS = "PROOFBOX_TEST_RENEW_PROBE" in os.environ
# Beside the masked paths: what is readable on most machines, and must not be.
SECRETS = (
    "/dev/kmsg",
    "/dev/mem",
    "/dev/vda",
    "/etc/gshadow",
    "/etc/shadow",
    "/proc/1/environ",
    "/proc/1/maps",
    "/proc/1/mem",
    "/proc/1/root",
    "/proc/iomem",
    "/proc/kpagecount",
    "/proc/pagetypeinfo",
    "/proc/slabinfo",
    "/proc/vmallocinfo",
    "/root",
    "/run/secrets",
    "/sys/fs/bpf",
    "/sys/fs/pstore",
    "/var/run/docker.sock",
)
# What the kernel has for each process, some of it depending on how it was built. A process that writes to its own
# changes nothing for others; the maps of ids need a user namespace of one's own.
OWN_FILES = {
    *("autogroup", "clear_refs", "comm", "coredump_filter", "gid_map", "loginuid", "mem", "oom_adj"),
    *("oom_score_adj", "projid_map", "sched", "setgroups", "timens_offsets", "timerslack_ns", "uid_map"),
}
# Limits that are those of the machine's engine.
OF_THE_MACHINE = ("nproc", "stack")
LIMITS = {"memory_bytes": 512 << 20, "cpus": 1.0, "pids": 64, "out_dir_bytes": 8 << 20, "wall_s": 240.0}


async def probed(**settings: Any) -> dict[str, Any]:
    """What the probe writes down in a sandbox with these settings."""
    program = (HERE / "probe_program.py").read_text()
    given = {"CALLS": X86_64, "UNGIVEN": NOT_YET, "UNREADABLE": sorted({*MASKED_PATHS, *SECRETS})}
    code = "\n".join([*(f"{name} = {value!r}" for name, value in given.items()), program])
    service = build(Settings(pool_size=0, ready_s=120, sandbox_user_first=20_007, sandbox_users=1, **settings))
    async with running(service):
        call = Caller(service)
        response = await call(code, limits=LIMITS)
        assert response.ok, response.report + await call.output("stderr")
        told: dict[str, Any] = json.loads(await call.text("probe.json"))
        told["sandbox"] = response.sandbox.model_dump(include={"engine", "runtime", "tier", "user_namespace"})
    return told


def reduced(told: dict[str, Any]) -> dict[str, Any]:
    """What the probe told, without what depends on the machine and not on us."""
    told["namespaces"] = {
        kind: "the machine's" if seen == str(Path(f"/proc/self/ns/{kind}").readlink()) else "own"
        for kind, seen in told["namespaces"].items()
    }
    told["mounts"] = {
        where: sorted({_reduced_mount(where, mount) for mount in mounts} - {""})
        for where, mounts in told["mounts"].items()
        if where
        not in {
            *MASKED_PATHS,
            *READ_ONLY_PATHS,
            NEW_TERMINALS,
        }  # not every kernel has each; what is left of them is below
    }
    own = told["writable below /proc and /sys"]["own"]
    told["writable below /proc and /sys"]["own"] = [p for p in own if p.rpartition("/")[2] not in OWN_FILES]
    for name in OF_THE_MACHINE:
        told["limits"]["resources"][name] = "the machine's"
    # Which error a call gets that is in no family is the runtime's choice; both are a refusal.
    seen = told["calls"]
    told["calls"] = {"let through": seen["let through"], "ends the process": seen["SIGSYS"]}
    return told


def _reduced_mount(where: str, mount: str) -> str:
    kind, _, options = mount.partition(" ")
    if where == "/sys/fs/cgroup" and kind != "cgroup":
        return ""  # version 1 has a folder around its hierarchies; whether it can be written to is told below
    if where == "/" or where.startswith("/etc/"):
        kind = "image"
    return f"{kind} {options}"


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param("docker-runc", {"engine": "docker"}, marks=pytest.mark.slow),
        pytest.param("docker-runc-remapped", {"engine": "docker"}, marks=pytest.mark.slow),
        pytest.param("docker-runsc", {"engine": "docker", "runtime": "runsc"}, marks=pytest.mark.slow),
        ("oci-crun", {"engine": "oci", "oci_runtime": "crun"}),
        ("oci-runc", {"engine": "oci", "oci_runtime": "runc"}),
    ],
)
async def test_what_is_in_reach_of_a_program_is_what_was_reviewed(name, settings, tmp_path, request):
    if settings["engine"] == "docker":
        engine = request.getfixturevalue("remapped_docker" if "remapped" in name else "private_docker")
        settings = {**settings, "engine_host": engine.host}
    told = reduced(await probed(data_dir=tmp_path, **settings))
    golden = GOLDEN / f"{name}.json"
    if RENEWS:
        golden.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
    assert told == json.loads(golden.read_text())
