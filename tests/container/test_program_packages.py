"""Programs with packages of their own, in sandboxes of both engines and under gVisor, with an index on loopback."""

import asyncio

import pytest
import pytest_asyncio

from proofbox.contracts.provenance import AuditLine
from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.settings import Settings
from proofbox.service.errors import PackagesNotAllowedError
from tests.container.calling import Caller
from tests.container.program_engines import engine_settings, program_engines
from tests.support.package_index import PackageIndex
from tests.support.web_server import web_server

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

VERSION = "import tiny; print(tiny.VERSION, tiny.__file__)"


class Box:
    """A service and the index that its calls get packages from."""

    def __init__(self, service, index):
        self.service, self.index = service, index
        self.call = Caller(service)


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=program_engines())
async def box(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    folder.chmod(0o711)
    async with web_server() as server:
        index = PackageIndex(server)
        settings = Settings(
            **engine_settings(request),
            data_dir=folder / "data",
            pool_size=1,
            package_index=index.url,
        )
        service = build(settings)
        async with running(service):
            yield Box(service, index)


async def test_a_program_and_what_it_starts_find_a_package_and_the_answer_lists_it(box):
    sha256 = box.index.add("tiny", "1.0")
    code = f"{VERSION}\nimport subprocess; subprocess.run(['python3', '-c', 'import tiny; print(tiny.VERSION)'])"
    answer = await box.call(code, packages=["tiny==1.*"])
    path, child = answer.output.stdout.splitlines()
    assert path.startswith("1.0 /packages/"), answer.report
    assert child == "1.0"
    [package] = answer.packages
    assert package.model_dump() == {
        "name": "tiny", "version": "1.0", "filename": "tiny-1.0-py3-none-any.whl", "sha256": sha256,
    }  # fmt: skip
    assert "Note: Packages: installed tiny 1.0" in answer.report


async def test_the_second_call_gets_a_waiting_sandbox_and_does_not_ask_the_index(box):
    box.index.add("tiny", "1.0")
    await box.call(VERSION, packages=["tiny"])
    asked = len(box.index.asked)
    while not box.service.engine.pool.ready:  # noqa: ASYNC110 - the pool informs nobody when it has filled itself
        await asyncio.sleep(0.02)
    answer = await box.call(VERSION, packages=["tiny"])
    assert answer.ok, answer.report
    assert (len(box.index.asked), answer.sandbox.acquired) == (asked, "warm")


async def test_modules_are_compiled_once_in_a_sandbox_that_imports_none(box):
    files = {
        "many/__init__.py": "from many import a",
        "many/a.py": "A = 1",
        "many/broken.py": "def",
        "many/ends.py": "import os; os._exit(1)",
        "struct.py": "raise SystemExit('the package is on the path')",
        "many/__pycache__/a.cpython-313.pyc": b"not bytecode",
    }
    box.index.add("many", "1.0", files)
    code = """
import pathlib, subprocess, sys
import many
at = pathlib.Path(many.__file__).parent / "__pycache__"
print(sorted(path.name.partition(".")[0] for path in at.iterdir()), {path.read_bytes()[4] for path in at.iterdir()})
seen = subprocess.run([sys.executable, "-v", "-c", "import many"], capture_output=True, text=True).stderr
print(seen.count("# code object from '/packages/"), seen.count("# wrote '/packages/"))
"""
    answer = await box.call(code, packages=["many"])
    assert answer.output.stdout.splitlines() == ["['__init__', 'a', 'ends'] {1}", "2 0"], answer.report
    assert list(box.service.packages.parts.overlays.mounted.glob("unfinished-*")) == []


@pytest.mark.slow
async def test_a_call_goes_on_without_the_bytecode_that_was_not_made_in_time(box, tmp_path, caplog):
    tmp_path.chmod(0o711)
    box.index.add("tiny", "1.0")
    given = {name: getattr(box.service.settings, name) for name in box.service.settings.model_fields_set}
    given |= {"data_dir": tmp_path / "data", "service_name": "proofbox-uncompiled", "pool_size": 0}
    service = build(Settings(**given, package_compile_s=0.001))
    async with running(service):
        answer = await Caller(service)(VERSION, packages=["tiny"])
        assert answer.output.stdout.startswith("1.0 /packages/"), answer.report
        mounted = service.packages.parts.overlays.mounted
        assert [len(path.name.partition("-")[0]) for path in mounted.iterdir()] == [40]
    assert "packages are used without bytecode" in caplog.text or "has ended early" in caplog.text


async def test_a_shell_finds_packages_and_a_call_without_them_finds_none(box):
    box.index.add("tiny", "1.0")
    answer = await box.call("python3 -c 'import tiny; print(tiny.VERSION)'", language="bash", packages=["tiny"])
    assert answer.output.stdout == "1.0\n", answer.report
    answer = await box.call("import tiny")
    assert not answer.ok
    assert answer.packages is None


async def test_another_version_of_a_library_comes_before_the_one_that_was_imported_while_waiting(box):
    box.index.add("numpy", "9.9", {"numpy/__init__.py": "__version__ = '9.9'"})
    code = "import numpy; print(numpy.__version__)"
    assert (await box.call(code, packages=["numpy==9.9"])).output.stdout == "9.9\n"
    assert (await box.call(code)).output.stdout != "9.9\n"


async def test_packages_can_be_neither_changed_nor_listed(box):
    box.index.add("tiny", "1.0")
    code = """
import os, tiny
def tried(what):
    try:
        what()
        print("done")
    except OSError as exc:
        print(exc.strerror)
tried(lambda: open(tiny.__file__, "w"))
tried(lambda: os.chmod(tiny.__file__, 0o777))
tried(lambda: os.unlink(tiny.__file__))
tried(lambda: open(os.path.dirname(tiny.__file__) + "/new.py", "w"))
tried(lambda: os.listdir("/packages"))
tried(lambda: os.mkdir("/packages/x"))
tried(lambda: os.listdir("/packages/.."))
"""
    answer = await box.call(code, packages=["tiny"])
    lines = answer.output.stdout.splitlines()
    assert set(lines[:4] + lines[5:6]) <= {"Read-only file system", "Permission denied", "Operation not permitted"}
    assert (lines[4], lines[6]) == ("Permission denied", "done"), answer.report


async def test_a_model_reads_why_a_package_cannot_be_had_and_nothing_runs(box):
    answer = await box.call("print(1)", packages=["no-such-package"])
    assert (answer.ok, answer.error.code, answer.error.where) == (False, "package_not_found", "packages")
    assert answer.sandbox is None
    assert answer.report.startswith("Runtime error: package_not_found"), answer.report
    assert "no-such-package" in answer.report


async def test_packages_are_of_python_and_shell_programs_only(box):
    answer = await box.call("1", language="node", packages=["tiny"])
    assert answer.error.code == "invalid_params"
    assert "params.packages: programs in node find no Python packages" in answer.report


async def test_the_loop_can_ask_for_packages_in_place_of_the_model(box):
    box.index.add("tiny", "1.0")
    body = {**box.call.body(VERSION), "packages": ["tiny"]}
    answer = await box.call.of(body)
    assert answer.output.stdout.startswith("1.0 "), answer.report
    with pytest.raises(PackagesNotAllowedError, match=r"packages\[1\]: tiny is asked for twice"):
        await box.call.of({**box.call.body(VERSION), "packages": ["tiny", "tiny==1.0"]})


async def test_a_rerun_runs_with_the_packages_of_the_first_time(box):
    box.index.add("moving", "1.0")
    code = "import moving; open('files/a.txt', 'w').write(moving.VERSION)"
    answer = await box.call(code, ["a.txt"], packages=["moving"])
    assert answer.ok, answer.report
    box.index.add("moving", "2.0")
    scope, call_id = box.call.scope, box.call.last_id
    line = await box.service.provenance.line(scope.principal, call_id, scope.conversation_id)
    assert [package.version for package in AuditLine.model_validate_json(line.text).packages] == ["1.0"]
    report = await box.service.provenance.rerun(scope.principal, call_id, scope.conversation_id, "test")
    assert report.identical, report
