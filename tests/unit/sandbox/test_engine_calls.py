"""The calls of the Engine API that the service makes are those that deploy/engine-proxy lets through."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.docker.container_config import (
    FULL_SHARES,
    ContainerSettings,
    changing_limits,
    container_config,
)
from proofbox.service.sandbox.limits import CallLimits, limit_names
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.service_cgroup import TotalLimits

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "service" / "sandbox" / "docker"
PROXY = (ROOT / "deploy" / "engine-proxy" / "haproxy.cfg").read_text()
# Methods of the engine's library, and the calls that they make, by their names in the proxy's configuration.
CALLS = {
    "attach_socket": {"attach"},
    "containers": {"list"},
    "create_container_from_config": {"create"},
    "events": {"events"},
    "info": {"info"},
    "inspect_container": {"inspect"},
    "inspect_image": {"image"},
    "ping": {"ping"},
    "post": {"update"},  # which has no method for all limits
    "remove_container": {"remove"},
    "rename": {"rename"},
    "start": {"start"},
    "version": {"version"},
}
NOT_PROXIED = {"get_image"}  # `docker save`, of the engine oci alone
NO_CALLS = {"base_url", "api_version", "trust_env"}


def used_methods():
    """What is used of the engine's library: of ``api``, ``self._api`` and ``self._api()``."""
    found = set()
    for path in DOCKER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in {"api", "self._api", "self._api()"}:
                found.add(node.attr)
    return found - NO_CALLS


def test_every_method_that_is_used_is_in_the_table():
    assert used_methods() == set(CALLS) | NOT_PROXIED


def test_the_proxy_lets_through_what_is_in_the_table_and_no_more():
    names = re.findall(r"set-var\(txn\.call\) str\((\w+)\)", PROXY)
    assert sorted(names) == sorted(set(names)) == sorted(set.union(*CALLS.values()))


def pattern_of(text):
    """A pattern of the proxy, with its parts in place; ``\\Z`` is what PCRE calls ``\\z``."""
    parts = dict(re.findall(r"^ +(?:pre)?setenv (\w+) '(.*)'$", PROXY, re.MULTILINE))
    return re.compile(
        re.sub(r"\$\{(\w+)\}", lambda found: parts.get(found[1], ""), text.replace('\\"', '"')).replace(
            r"\z", r"\Z"
        )
    )


def body_pattern(name, packages=""):
    """A pattern of a body, with the folder of packages as the operator has set it."""
    [text] = re.findall(rf'acl {name} req\.body -m reg "(.*)"', PROXY)
    return pattern_of(text.replace("${PROOFBOX_PROXY_PACKAGES}", packages))


def sandbox_body(flavour=PreloadSet.BARE, **changes):
    settings = Settings(service_name="one")
    container = ContainerSettings(
        image="registry.example.com:5000/team/proofbox-sandbox:latest",
        runtime="",
        seccomp_profile=settings.seccomp_profile.read_text(encoding="utf-8"),
        cgroup_parent="/proofbox/one",
        totals=TotalLimits.of_machine(0, 0, 0),
        service_name="one",
        boot_id="0a1b",
    )
    limits = CallLimits(**{name: getattr(settings, name) for name in limit_names()})
    return container_config(replace(container, **changes), limits, 1_800_000_000, 20_000, flavour)


@pytest.mark.parametrize("flavour", PreloadSet)
@pytest.mark.parametrize(
    "changes", [{}, {"cgroup_parent": ""}, {"cgroup_parent": "proofbox.slice"}, {"image": "proofbox-sandbox"}]
)
def test_the_proxy_takes_each_body_of_the_service(flavour, changes):
    assert body_pattern("is_sandbox").search(json.dumps(sandbox_body(flavour, **changes)))


def test_the_proxy_takes_the_folder_of_packages_that_it_is_set_to_and_no_other():
    body = json.dumps(sandbox_body(packages=Path("/data/packages/mounted")))
    assert body_pattern("is_sandbox", "/data/packages/mounted").search(body)
    assert not body_pattern("is_sandbox", "/data/packages").search(body)
    assert not body_pattern("is_sandbox").search(body)
    assert not body_pattern("is_sandbox", "/data/packages/mounted").search(body.replace("true}]}}", "false}]}}"))


@pytest.mark.parametrize("limits", [{}, {"pids": 1, "memory_bytes": 32 * 1024 * 1024, "cpus": 0.1}])
def test_the_proxy_takes_each_change_of_limits(limits):
    settings = Settings()
    given = {name: getattr(settings, name) for name in limit_names()} | limits
    container = ContainerSettings("", "", "", "", TotalLimits.of_machine(0, 0, 0), "", "")
    pattern = body_pattern("is_limits")
    assert pattern.search(json.dumps(changing_limits(container, CallLimits(**given))))
    assert pattern.search(json.dumps({"CpuShares": FULL_SHARES}))
    assert not pattern.search("{}")


@pytest.mark.parametrize("name", sandbox_body()["HostConfig"])
def test_the_proxy_refuses_a_body_that_lacks_a_part(name):
    body = sandbox_body()
    del body["HostConfig"][name]
    assert bool(body_pattern("is_sandbox").search(json.dumps(body))) == (name == "CgroupParent")


@pytest.mark.parametrize("name", sandbox_body()["HostConfig"])
@pytest.mark.parametrize("value", [0, "", [], {}, False, None, "host", "/proofbox/../system.slice"])
def test_the_proxy_refuses_a_part_with_another_value(name, value):
    body = sandbox_body()
    body["HostConfig"][name] = value
    assert not body_pattern("is_sandbox").search(json.dumps(body))


@pytest.mark.parametrize(
    ("allowed", "asked", "passes"),
    [
        ("", "", True),
        ("", "runsc", False),
        ("runsc", "runsc", True),
        ("runsc", "", False),
        ("runsc", "runc", False),
    ],
)
def test_the_proxy_takes_the_operators_runtime_alone(allowed, asked, passes):
    [text] = re.findall(r'acl is_sandbox req\.body -m reg "(.*)"', PROXY)
    pattern = pattern_of(text.replace("${PROOFBOX_PROXY_RUNTIME}", allowed))
    assert bool(pattern.search(json.dumps(sandbox_body(runtime=asked)))) is passes
