"""What importing the client costs, and what it leaves alone."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import proofbox.client
from proofbox.client import call_bodies
from proofbox.contracts import render_tools, tools
from proofbox.contracts.gateway.runs import Run

FOLDER = Path(proofbox.client.__file__).parent


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code", ["import proofbox.client", "import proofbox; dir(proofbox.client)", "import proofbox"]
)
def test_an_import_loads_nothing_that_is_not_used(code: str) -> None:
    if code.endswith("(proofbox.client)"):
        code = "import proofbox.client, proofbox; dir(proofbox), dir(proofbox.client)"
    assert not modules_after(code) & {"httpx2", "pydantic", "proofbox.contracts", "asyncio"}


def test_a_client_loads_neither_the_service_nor_another_http_library() -> None:
    loaded = modules_after("from proofbox import AsyncClient, Client\nClient(); AsyncClient()")
    packages = {name.partition(".")[0] for name in loaded}
    assert "httpx2" in packages
    assert not packages & {"httpx", "httpcore", "requests", "urllib3", "fastapi", "numpy"}
    slow = {"proofbox.contracts.render_tools", "proofbox.contracts.react_tools"}
    assert not [name for name in loaded if name.startswith("proofbox.service") or name in slow]


def test_modules_import_contracts_the_standard_library_and_one_http_library() -> None:
    allowed = sys.stdlib_module_names | {"httpx2", "pydantic"}
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                ours = name.startswith(("proofbox.client", "proofbox.contracts"))
                assert ours or name.partition(".")[0] in allowed, f"{path.name} imports {name}"


def test_every_exported_name_exists_and_others_do_not() -> None:
    for name in proofbox.client.__all__:
        assert getattr(proofbox.client, name).__name__ == name
    assert (proofbox.Client, proofbox.AsyncClient) == (proofbox.client.Client, proofbox.client.AsyncClient)
    for module in (proofbox, proofbox.client):
        with pytest.raises(AttributeError, match="has no attribute 'Clint'"):
            module.Clint  # noqa: B018
    assert "Client" in dir(proofbox)


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert methods(proofbox.client.Client) == methods(proofbox.client.AsyncClient)
    assert methods(proofbox.client.CallHandle) == methods(proofbox.client.AsyncCallHandle)
    assert methods(proofbox.client.Download) == methods(proofbox.client.AsyncDownload)


@pytest.mark.parametrize("kind", [proofbox.client.Gateway, proofbox.client.AsyncGateway])
def test_methods_of_the_gateway_show_what_users_get(kind: type) -> None:
    methods = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    shown = {name: inspect.signature(method).return_annotation for name, method in methods.items()}
    assert (shown["get_run"], shown["delete_agent"]) == (Run, type(None))
    assert "GatewayEvent" in str(shown["watch_run"])
    assert not [name for name, result in shown.items() if "exchange" in str(result)]
    assert all(method.__doc__ and method.__name__ == name for name, method in methods.items())


def test_names_that_are_not_imported_are_those_of_the_contracts() -> None:
    assert {facts.suffix: str(language) for language, facts in tools.LANGUAGES.items()} == call_bodies.SUFFIXES
    assert tuple(render_tools.OutputFormat) == call_bodies.RENDERED_FORMATS
    prefixes = (tools.EXEC_TOOL_PREFIX, render_tools.RENDER_TOOL_PREFIX)
    assert prefixes == (call_bodies.EXEC_TOOL_PREFIX, call_bodies.RENDER_TOOL_PREFIX)
