"""The calls of the Engine API that the service makes are those that deploy/engine-proxy lets through."""

import ast
import re
from pathlib import Path

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


def test_the_proxy_knows_every_name_of_a_request_for_a_sandbox():
    source = (DOCKER / "container_config.py").read_text()
    sandbox = ast.parse(source)
    named = {
        key.value
        for function in sandbox.body
        if isinstance(function, ast.FunctionDef) and function.name != "zygote_container_config"
        for node in ast.walk(function)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant)
    }
    [pattern] = re.findall(r"acl has_other_names req\.body -m reg -i '\"\(\?!\(\?:([^)]+)\)\"\)", PROXY)
    assert len(named) > 20
    assert named - set(pattern.split("|")) == set()
