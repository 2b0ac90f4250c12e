"""The CIS Docker Benchmark 1.7, section 5 (container runtime), for a running sandbox; it makes `docs/cis.md`.

python tests/security/cis_docker.py    writes docs/cis.md
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[2] / "docs" / "cis.md"
Container = dict[str, Any]


@dataclass(frozen=True)
class Check:
    """One recommendation: how a container keeps it and what is looked at, or why not; `holds` is None then."""

    number: str
    title: str
    how: str
    holds: Callable[[Container], bool] | None


def _host(field: str, *, wanted: Any) -> Callable[[Container], bool]:
    return lambda container: container["HostConfig"].get(field) == wanted


def _no_port(container: Container) -> bool:
    return not container["HostConfig"].get("PortBindings") and not container["NetworkSettings"].get("Ports")


def _nothing_mounted(container: Container) -> bool:
    host = container["HostConfig"]
    return not container.get("Mounts") and not host.get("Binds") and not host.get("Mounts")


def _profiles(container: Container) -> list[str]:
    return [o for o in container["HostConfig"]["SecurityOpt"] if o.startswith("seccomp=")]


CHECKS = (
    Check(
        "5.1",
        "Swarm mode is not enabled",
        "the operator decides",
        None,
    ),
    Check(
        "5.2",
        "An AppArmor profile is enabled",
        "the engine's, on kernels with AppArmor",
        lambda c: not any(o.startswith("apparmor") for o in c["HostConfig"]["SecurityOpt"]),
    ),
    Check(
        "5.3",
        "SELinux security options are set",
        "the engine's, on kernels with SELinux",
        lambda c: not any(o.startswith("label") for o in c["HostConfig"]["SecurityOpt"]),
    ),
    Check(
        "5.4",
        "Capabilities are restricted",
        "all are dropped, none is added",
        lambda c: c["HostConfig"]["CapDrop"] == ["ALL"] and not c["HostConfig"]["CapAdd"],
    ),
    Check("5.5", "Privileged containers are not used", "never", _host("Privileged", wanted=False)),
    Check(
        "5.6",
        "Sensitive host folders are not mounted",
        "none; all writable folders are tmpfs",
        _nothing_mounted,
    ),
    Check(
        "5.7",
        "sshd does not run in containers",
        "process 1 is the runner; it starts one program",
        lambda c: "sshd" not in str(c["Config"]["Cmd"]) + str(c["Config"]["Entrypoint"]),
    ),
    Check("5.8", "Privileged ports are not mapped", "there is no port", _no_port),
    Check("5.9", "Only needed ports are open", "there is no port", _no_port),
    Check(
        "5.10",
        "The host's network namespace is not shared",
        "it has only a loopback",
        _host("NetworkMode", wanted="none"),
    ),
    Check(
        "5.11",
        "Memory is limited",
        "`PROOFBOX_MEMORY_BYTES`, swap included; all together by `PROOFBOX_TOTAL_MEMORY_BYTES`",
        lambda c: 0 < c["HostConfig"]["Memory"] == c["HostConfig"]["MemorySwap"],
    ),
    Check(
        "5.12",
        "CPU priority is set",
        "`PROOFBOX_CPUS`; all together have the weight of one process",
        lambda c: c["HostConfig"]["NanoCpus"] > 0,
    ),
    Check("5.13", "The root file system is read-only", "always", _host("ReadonlyRootfs", wanted=True)),
    Check("5.14", "Incoming traffic is bound to one interface", "there is none", _no_port),
    Check(
        "5.15",
        "The restart policy is on-failure, five times at most",
        "no restart: a container serves one call",
        lambda c: c["HostConfig"]["RestartPolicy"]["Name"] in ("", "no"),
    ),
    Check("5.16", "The host's process namespace is not shared", "it has its own", _host("PidMode", wanted="")),
    Check("5.17", "The host's IPC namespace is not shared", "it has its own", _host("IpcMode", wanted="private")),
    Check(
        "5.18",
        "Host devices are not exposed",
        "none is",
        lambda c: not any(c["HostConfig"].get(f) for f in ("Devices", "DeviceRequests", "DeviceCgroupRules")),
    ),
    Check(
        "5.19",
        "Default ulimits are overwritten where needed",
        "open files, core files, locked memory, priorities, message queues, pending signals",
        lambda c: {"nofile", "core", "memlock", "sigpending"} <= {u["Name"] for u in c["HostConfig"]["Ulimits"]},
    ),
    Check(
        "5.20",
        "Mounts are not propagated as shared",
        "nothing is mounted from outside",
        lambda c: _nothing_mounted(c) and "shared" not in str(c["HostConfig"]["Tmpfs"]),
    ),
    Check("5.21", "The host's UTS namespace is not shared", "it has its own", _host("UTSMode", wanted="")),
    Check(
        "5.22",
        "The default seccomp profile is not disabled",
        "a stricter one: `sandbox_images/seccomp`",
        lambda c: len(_profiles(c)) == 1 and '"defaultAction": "SCMP_ACT_ERRNO"' in _profiles(c)[0],
    ),
    Check(
        "5.23",
        "docker exec is not used with the privileged option",
        "never used",
        lambda c: not c["ExecIDs"],
    ),
    Check(
        "5.24",
        "docker exec is not used with root as the user",
        "never used",
        lambda c: not c["ExecIDs"] and re.fullmatch(r"2[01]\d{3}:10001", c["Config"]["User"]) is not None,
    ),
    Check(
        "5.25",
        "Control groups are confirmed",
        "each is below `/proofbox/<service>`",
        lambda c: c["HostConfig"]["CgroupParent"].startswith("/proofbox/"),
    ),
    Check(
        "5.26",
        "No additional privileges can be acquired",
        "`no-new-privileges`",
        lambda c: "no-new-privileges" in c["HostConfig"]["SecurityOpt"],
    ),
    Check(
        "5.27",
        "Health is checked at run time",
        "by the service in place of the engine; a container that does not answer is removed",
        None,
    ),
    Check(
        "5.28",
        "The latest version of an image is used",
        "the image that the service finds at its start; every answer has its digest",
        lambda c: c["Image"].startswith("sha256:"),
    ),
    Check(
        "5.29", "The number of processes is limited", "`PROOFBOX_PIDS`", lambda c: c["HostConfig"]["PidsLimit"] > 0
    ),
    Check(
        "5.30",
        "The default bridge docker0 is not used",
        "no network is",
        lambda c: set(c["NetworkSettings"]["Networks"]) <= {"none"},
    ),
    Check(
        "5.31",
        "The host's user namespace is not shared",
        "never requested; `userns-remap` of the engine gives containers their own",
        _host("UsernsMode", wanted=""),
    ),
    Check(
        "5.32",
        "The Docker socket is not mounted",
        "no file of the host is mounted",
        lambda c: "docker.sock" not in str(c.get("Mounts")) + str(c["HostConfig"].get("Binds")),
    ),
)


def document() -> str:
    """Build the page of all recommendations."""
    lines = [
        "# The CIS Docker Benchmark",
        "",
        "Section 5 of version 1.7, container runtime. `tests/security/test_running_containers.py` runs the checks;",
        "`tests/security/cis_docker.py` writes this page.",
        "",
    ]
    for check in CHECKS:
        not_met = "" if check.holds else " (not met)"
        lines.append(f"- **{check.number}** {check.title}{not_met}: {check.how}.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
