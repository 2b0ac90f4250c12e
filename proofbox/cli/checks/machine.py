"""The checks of ``proofbox doctor``, in the order in which one needs the other."""

import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
from pydantic import ValidationError
from pydantic_settings import SettingsError

from proofbox.cli.checks.engine_facts import EngineFacts, engine_address, find_image, open_engine, read_facts
from proofbox.cli.checks.finding import Finding
from proofbox.cli.checks.package_index import check_package_index
from proofbox.cli.checks.processes import check_processes
from proofbox.cli.checks.trial import run_trial
from proofbox.service.app.config.check import find_mistakes, find_warnings
from proofbox.service.app.config.mistakes import ConfigurationError
from proofbox.service.app.extras import EXTRAS, missing_modules
from proofbox.service.app.own_image import FOLDER
from proofbox.service.app.ports import PortUnavailableError, check_port
from proofbox.service.app.settings import Settings
from proofbox.service.errors import EngineUnavailableError, ServiceError
from proofbox.service.sandbox.linux.cgroups import Cgroups
from proofbox.service.sandbox.oci.containers import usable_cgroups
from proofbox.service.sandbox.oci.runtime import Runtime

_FREE_BYTES_MIN = 1024**3
_PATCHED_RUNC = (1, 2, 8)
_BUILD = "run 'proofbox image build'"


def check_all(*, has_trial: bool) -> Iterator[Finding]:
    """Yield each finding as soon as it is known.

    Args:
        has_trial: whether to run a program in a sandbox at the end.
    """
    yield check_python()
    settings, found = read_settings()
    yield from found
    if settings is None:
        return
    yield check_extras()
    yield check_data_folder(settings.data_dir)
    yield check_port_of(settings)
    if settings.package_index:
        yield check_package_index(settings)
    if settings.is_shared:
        yield from check_processes(settings)
    engine = list(check_engine(settings) if settings.engine == "docker" else check_oci(settings))
    yield from engine
    if has_trial and not any(finding.status == "fail" for finding in engine):
        yield from run_trial(settings)


def check_python() -> Finding:
    """The interpreter and the machine."""
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    system = f"{interpreter}, {platform.system()} {platform.machine()}"
    if sys.platform != "linux":
        return Finding("python", "warn", system, "the service needs Linux; use a virtual machine")
    return Finding("python", "ok", system)


def read_settings() -> tuple[Settings | None, list[Finding]]:
    """The settings of the environment and the configuration file; None if they are refused."""
    found = [
        Finding("settings", "fail", f"{mistake.place}: {mistake.problem}".removeprefix(": "), mistake.remedy)
        for mistake in find_mistakes(os.environ)
    ]
    warnings = [
        Finding("settings", "warn", f"{warning.place}: {warning.problem}".removeprefix(": "), warning.remedy)
        for warning in find_warnings(os.environ)
    ]
    try:
        settings = Settings()
    except (ValidationError, SettingsError, ConfigurationError):
        return None, found
    if found:
        return settings, [*found, *warnings]
    changed = sorted(f"PROOFBOX_{name.upper()}" for name in settings.model_fields_set)
    detail = f"set: {', '.join(changed)}" if changed else "all as by default"
    return settings, warnings or [Finding("settings", "ok", detail)]


def check_extras() -> Finding:
    """Which extras of the package are installed."""
    missing = [extra for extra in EXTRAS if missing_modules(extra)]
    installed = [extra for extra in EXTRAS if extra not in missing]
    parts = [f"installed: {', '.join(installed)}"] if installed else []
    parts += [f"not installed: {', '.join(missing)} (pip install 'proofbox[NAME]')"] if missing else []
    return Finding("extras", "ok", "; ".join(parts))


def check_data_folder(folder: Path) -> Finding:
    """Whether files can be stored, and how much."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            free = shutil.disk_usage(place).free
    except OSError as exc:
        return Finding("data", "fail", f"{folder}: {exc.strerror}", "make it writable, or set PROOFBOX_DATA_DIR")
    detail = f"{folder}: {free / 1e9:.1f} GB free" + (
        ", in use by a service" if _is_locked(folder / "lock") else ""
    )
    if free < _FREE_BYTES_MIN:
        return Finding("data", "warn", detail, "free some space, or set PROOFBOX_DATA_DIR to another disk")
    return Finding("data", "ok", detail)


def _is_locked(lock: Path) -> bool:
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def check_port_of(settings: Settings) -> Finding:
    """Whether the service can listen."""
    try:
        check_port(settings.host, settings.port)
    except PortUnavailableError as exc:
        place, _, remedy = exc.message.partition(": ")
        if _is_locked(settings.data_dir / "lock"):
            return Finding("port", "ok", f"{place}: the service on this data folder runs")
        return Finding("port", "fail", place, remedy)
    return Finding("port", "ok", f"{settings.host}, port {settings.port} is free")


def check_engine(settings: Settings) -> Iterator[Finding]:
    """The Docker engine, its image, runtime and control groups."""
    try:
        with open_engine(settings) as client:
            yield from _check_docker(client, settings)
    except EngineUnavailableError as exc:
        yield Finding("engine", "fail", exc.message, _engine_remedy(settings))


def _check_docker(client: docker.DockerClient, settings: Settings) -> Iterator[Finding]:
    facts = read_facts(client, settings)
    yield Finding("engine", "ok", f"{facts.kind} {facts.version} at {engine_address(settings)}")
    image = find_image(client, settings)
    if not image.is_present:
        yield Finding("image", "fail", f"{image.reference}: the engine does not have it", _BUILD)
    elif settings.image and not image.is_of_this_version:
        yield Finding("image", "warn", image.sentence, "build it again from this version's image")
    else:
        yield Finding("image", "ok", image.sentence)
    yield _check_runtime(facts)
    yield Finding("cgroups", "ok", f"version {facts.cgroups}, managed by {facts.cgroup_driver}")


def _check_runtime(facts: EngineFacts) -> Finding:
    if not facts.has_runtime:
        remedy = "register it in the engine's daemon.json, or unset PROOFBOX_RUNTIME"
        return Finding("runtime", "fail", f"the engine has no runtime {facts.runtime}", remedy)
    numbers = tuple(int(number) for number in re.findall(r"\d+", facts.runc)[:3])
    if facts.runtime == "runc" and numbers and numbers < _PATCHED_RUNC:
        return Finding(
            "runtime",
            "warn",
            f"runc {facts.runc}: versions before 1.2.8 have CVE-2025-31133, unless patched by the distribution",
            "update runc, or use gVisor or userns-remap (docs/isolation.md)",
        )
    return Finding("runtime", "ok", f"{facts.runtime} {facts.runc if facts.runtime == 'runc' else ''}".strip())


def check_oci(settings: Settings) -> Iterator[Finding]:
    """The engine without a daemon: its runtime, control groups and image."""
    try:
        cgroups = usable_cgroups()
        runtime = Runtime.found(settings.oci_runtime, cgroups)
        runtime.close()
    except ServiceError as exc:
        yield Finding("engine", "fail", exc.message, "docs/engines.md lists what the engine oci needs")
        return
    yield Finding("engine", "ok", f"oci, {runtime.name}")
    yield Finding("cgroups", "ok", f"version {2 if Cgroups.of_machine().is_v2 else 1}")
    archive = settings.oci_image_archive
    if archive is None:
        yield from (finding for finding in check_engine(settings) if finding.name in {"engine", "image"})
    elif archive.is_file():
        yield Finding("image", "ok", f"{archive}")
    else:
        yield Finding("image", "fail", f"{archive} does not exist", "docs/engines.md describes how to make it")


def _engine_remedy(settings: Settings) -> str:
    """How to get an engine: one that answers elsewhere, or what to start."""
    command = ["bash", str(FOLDER / "engine.sh"), "--print-host"]
    elsewhere = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=elsewhere)  # noqa: S603 - ours
    if found.returncode == 0 and found.stdout.strip():
        name = "PROOFBOX_ENGINE_HOST" if settings.engine_host else "DOCKER_HOST"
        return f"one answers elsewhere: export {name}={found.stdout.strip()}"
    return "start Docker; as root on Debian or Ubuntu, 'proofbox image build' installs and starts it"
