"""Our seccomp profile, written in Docker's form, in the form of the OCI runtime specification.

Docker's form has conditions that depend on the machine and on the container's capabilities; here they are settled.
Our containers have no capability.
"""

import platform
from typing import Any

_ARCHITECTURES = {"x86_64": ("SCMP_ARCH_X86_64", "amd64"), "aarch64": ("SCMP_ARCH_AARCH64", "arm64")}
_RULE_FIELDS = ("names", "action", "errnoRet")


def runtime_form(profile: dict[str, Any], machine: str = "", kernel: str = "") -> dict[str, Any]:
    """The value of ``linux.seccomp``, for ``machine`` and ``kernel`` as uname returns them (empty: this one's).

    Raises:
        ValueError: a machine that the profile does not cover.
    """
    machine = machine or platform.machine()
    kernel = kernel or platform.release()
    native, docker_name = _ARCHITECTURES.get(machine, ("", ""))
    covered = {row["architecture"]: row["subArchitectures"] for row in profile["archMap"]}
    if native not in covered:
        raise ValueError(f"the seccomp profile does not cover {machine}")
    return {
        "defaultAction": profile["defaultAction"],
        "defaultErrnoRet": profile["defaultErrnoRet"],
        "architectures": [native, *covered[native]],
        "syscalls": [_rule(rule) for rule in profile["syscalls"] if _applies(rule, docker_name, kernel)],
    }


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
    copied = {name: rule[name] for name in _RULE_FIELDS if name in rule}
    # No conditions and an empty list of them are the same to runtimes; one older one refuses the second.
    return {**copied, "args": rule["args"]} if rule.get("args") else copied


def _applies(rule: dict[str, Any], architecture: str, kernel: str) -> bool:
    wanted, unwanted = rule.get("includes") or {}, rule.get("excludes") or {}
    if wanted.get("caps"):  # of which the container has none
        return False
    if architecture in unwanted.get("arches", []):
        return False
    if wanted.get("arches") and architecture not in wanted["arches"]:
        return False
    if "minKernel" in wanted and _version(kernel) < _version(wanted["minKernel"]):
        return False
    return not ("minKernel" in unwanted and _version(kernel) >= _version(unwanted["minKernel"]))


def _version(text: str) -> tuple[int, int]:
    major, minor = [*text.split("."), "0"][:2]
    digits = "".join(c for c in minor.partition("-")[0] if c.isdigit())
    return int(major), int(digits or 0)
