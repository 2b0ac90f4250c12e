"""What it was measured on, and with which versions."""

import os
import platform
import re
import subprocess
from pathlib import Path

from bench.speed.docker_run import IMAGE
from bench.speed.model import BWRAP, CRUN, EPICBOX, LLM_SANDBOX, RUNC
from bench.speed.sandbox_libraries import PYTHON

_VERSIONS = {
    RUNC: ("runc", "--version"),
    CRUN: ("crun", "--version"),
    BWRAP: ("bwrap", "--version"),
}


def machine() -> dict[str, str]:
    """Hardware and versions, by name; what is not there is not named."""
    found = {
        "cores": str(os.cpu_count()),
        "processor": _processor(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB",
        "load before": f"{os.getloadavg()[0]:.2f}",
        "Linux": platform.release().split("-")[0],
        "Docker": _first_line("docker", "version", "--format", "{{.Server.Version}}"),
        "Python": platform.python_version(),
        "image": _first_line("docker", "image", "inspect", "--format", "{{.Id}}", IMAGE)[7:19],
    }
    for name, command in _VERSIONS.items():
        version = re.search(r"\d+(?:\.\d+)+", _first_line(*command))
        if version:
            found[name] = version[0]
    given = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("PROOFBOX_"))
    found["settings"] = ", ".join(f"`{setting}`" for setting in given) or "none but the default ones"
    return found | _pinned()


def described(facts: dict[str, str]) -> str:
    """The same as one sentence."""
    versions = ("Docker", "Linux", "Python", RUNC, CRUN, BWRAP, LLM_SANDBOX, EPICBOX)
    listed = ", ".join(f"{name} {facts[name]}" for name in versions if name in facts)
    return (
        f"{facts['cores']} cores of {facts['processor']}, {facts['memory']} of memory, load average before the run "
        f"{facts['load before']}; {listed}; sandbox image `{facts['image']}`; "
        f"settings of Proofbox: {facts['settings']}."
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return ""
    return next(iter(done.stdout.strip().splitlines()), "")


def _pinned() -> dict[str, str]:
    if not PYTHON.exists():
        return {}
    program = "import importlib.metadata as m; print(*(m.version(n) for n in ('llm-sandbox', 'epicbox')))"
    versions = _first_line(str(PYTHON), "-c", program).split()
    return dict(zip((LLM_SANDBOX, EPICBOX), versions, strict=True))
