"""Paths that models write, in forms of other sandboxes too: the file is there, is found, or the report names it."""

import pytest

from proofbox.contracts.tools import Language
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize(
    "path",
    [
        "sales.csv",
        "./sales.csv",
        "attachments/sales.csv",
        "files/sales.csv",
        "turn_1/attachments/sales.csv",
        "/mnt/data/sales.csv",
        "/mnt/user-data/uploads/sales.csv",
        "../../turn_1/attachments/sales.csv",
    ],
)
@pytest.mark.parametrize("turn", ["turn_1", "turn_2"])
async def test_an_attachment_is_read_by_any_path_that_a_model_writes(call: Caller, path: str, turn: str) -> None:
    await call.attach("sales.csv", b"a,b\n1,2\n")
    response = await call(f"print(open({path!r}).read(), end='')", turn_id=turn)
    assert (response.ok, await call.output()) == (True, "a,b\n1,2\n"), response.report


@pytest.mark.parametrize(
    "expression",
    [
        "os.path.join('turn_1', 'files', 'notes.txt')",
        "pathlib.Path('turn_1') / 'files' / 'notes.txt'",
        "os.path.join(os.environ['OUT_DIR'], 'turn_1/files/notes.txt')",
        "pathlib.Path.cwd() / 'turn_1' / 'files' / ('notes' + '.txt')",
        "'turn_2/../turn_1/files/notes.txt'",
        "'/mnt/data/notes.txt'",
        "'/mnt/user-data/outputs/notes.txt'",
        "glob.glob('/out/turn_*/files/*.txt')[0]",
    ],
)
async def test_a_file_of_an_earlier_turn_is_there_however_its_path_is_made(call: Caller, expression: str) -> None:
    await call("open('files/notes.txt', 'w').write('kept')", ["notes.txt"])
    code = f"import glob, os, pathlib\nprint(open({expression}).read())"
    response = await call(code, turn_id="turn_2")
    assert (response.ok, await call.output()) == (True, "kept\n"), response.report


@pytest.mark.parametrize(
    "path",
    [
        "out.txt",
        "files/out.txt",
        "/mnt/data/out.txt",
        "/mnt/user-data/outputs/out.txt",
        "/tmp/out.txt",
        "outputs/out.txt",
        "~/out.txt",
        "turn_1/files/out.txt",
    ],
)
@pytest.mark.parametrize("promise", ["out.txt", "sandbox:/mnt/data/out.txt", "/mnt/data/out.txt"])
async def test_a_promised_file_is_found_where_a_model_writes_it(call: Caller, path: str, promise: str) -> None:
    code = f"import pathlib\npath = pathlib.Path({path!r}).expanduser()\n"
    response = await call(f"{code}path.parent.mkdir(parents=True, exist_ok=True)\npath.write_text('x')", [promise])
    assert response.ok, response.report
    assert await call.text("out.txt") == "x"


async def test_files_that_are_lost_with_tmp_are_named_and_temporary_ones_are_not(call: Caller) -> None:
    write = "import os, tempfile\nfor name in {}: open('/tmp/' + name, 'w').write('x')\n"
    response = await call(f"{write.format(['out.csv', 'chart.png', 'gone.csv'])}os.remove('/tmp/gone.csv')")
    note = "Note: files in /tmp ended with the call: chart.png, out.csv; write to files/ what is to stay"
    assert note in response.report.splitlines()
    response = await call(f"__import__('os').makedirs('/tmp/a/b')\n{write.format(['a/x.pdf', 'a/b/y.pdf'])}")
    assert "Note: files in /tmp ended with the call: a/x.pdf; write" in response.report
    response = await call(f"{write.format(['.hidden.csv', 'fifo'])}os.write(tempfile.mkstemp('.csv')[0], b'x')")
    assert response.report == "Runtime error: none"
    response = await call(f"{write.format(['out.csv'])}os.chmod('/tmp', 0)")
    assert response.report == "Runtime error: none"


async def test_a_file_that_was_written_bare_stays_reachable_by_its_bare_name(call: Caller) -> None:
    await call("open('helper.py', 'w').write('value = 42')\nopen('data.txt', 'w').write('1')")
    code = "import helper\nprint(helper.value, open('data.txt').read(), open('files/data.txt').read())"
    response = await call(code)
    assert (response.ok, await call.output()) == (True, "42 1 1\n"), response.report
    await call("open('data.txt', 'a').write('2')")
    await call("print(open('files/data.txt').read(), open('data.txt').read())")
    assert await call.output() == "12 12\n"


@pytest.mark.parametrize("name", ["data.txt", "files/data.txt", "turn_1/files/data.txt"])
async def test_a_deletion_lasts_within_the_turn(call: Caller, name: str) -> None:
    await call("open('files/data.txt', 'w').write('1')\nopen('files/other.txt', 'w').write('2')")
    removed = await call(f"import os\nos.remove({name!r})")
    assert "Deleted: turn_1/files/data.txt" in removed.report
    response = await call("import os\nprint(os.path.exists('files/data.txt'), os.path.exists('data.txt'))")
    assert await call.output() == "False False\n", response.report
    assert await call.stored("turn_1/files/data.txt") == b"1"


async def test_appending_to_a_file_goes_on_in_a_new_turn(call: Caller) -> None:
    code = "open('files/log.txt', 'a').write('x')"
    await call(code, ["log.txt"])
    assert (await call(code, ["log.txt"], turn_id="turn_2")).ok
    assert await call.stored("turn_2/files/log.txt") == b"xx"


@pytest.mark.parametrize(
    ("language", "code"),
    [
        (Language.PYTHON, "# reads turn_0/files/gone.csv\nprint('ran')"),
        (Language.PYTHON, '"""As turn_0/files/gone.csv was."""\nprint("ran")'),
        (Language.PYTHON, "print('turn_0/files/gone.csv is gone') or print('ran')"),
        (Language.BASH, "# turn_0/files/gone.csv\necho ran"),
        (Language.NODE, "// turn_0/files/gone.csv\n/* turn_0/files/gone.csv */ console.log('ran')"),
    ],
)
async def test_a_path_in_a_comment_stops_no_run(call: Caller, language: Language, code: str) -> None:
    response = await call(code, language=language, turn_id="turn_1")
    assert response.ok, response.report
    assert (await call.output()).endswith("ran\n")


@pytest.mark.parametrize(
    ("language", "code", "hint"),
    [
        (
            Language.PYTHON,
            "open('reports.csv')",
            "reports.csv does not exist; the conversation has files/report.csv",
        ),
        (Language.PYTHON, "open('/data/Report.csv')", "the conversation has files/report.csv"),
        (Language.PYTHON, "open('raport.csv')", "the conversation has files/report.csv"),
        (Language.BASH, "cat Report.csv || exit 1", "the conversation has files/report.csv"),
        (Language.NODE, "require('fs').readFileSync('raport.csv')", "the conversation has files/report.csv"),
        (Language.PYTHON, "import tensorflow", "the library tensorflow is not installed"),
        (Language.PYTHON, "import tensorflow", "use sklearn"),
        (Language.PYTHON, "import h5py", "importlib.metadata.distributions() names"),
        (Language.BASH, "pip3 list", "installed are numpy"),
        (Language.NODE, "require('lodash')", "the package lodash is not installed"),
    ],
)
async def test_what_is_not_found_gets_a_hint(call: Caller, language: Language, code: str, hint: str) -> None:
    await call("open('files/report.csv', 'w').write('a')", ["report.csv"])
    response = await call(code, language=language, turn_id="turn_2")
    hints = [line for line in response.report.splitlines() if line.startswith("Hint: ")]
    assert any(hint in line for line in hints), response.report


@pytest.mark.parametrize(
    ("language", "first", "second"),
    [
        (Language.PYTHON, "df = [1]", "print(df)"),
        (Language.PYTHON, "a, *df = range(3)", "print(len(df))"),
        (Language.PYTHON, "def df(): pass", "df()"),
        (Language.PYTHON, "import json as df", "df.dumps(1)"),
        (Language.NODE, "const df = [1]", "console.log(df)"),
    ],
)
async def test_a_name_that_an_earlier_program_assigned_is_explained(
    call: Caller, language: Language, first: str, second: str
) -> None:
    await call(first, language=language, explore=True)
    assigned = call.last_id
    await call("x = df = 2" if language is Language.NODE else "const df = 1", language=Language.BASH, explore=True)
    response = await call(second, language=language, turn_id="turn_2")
    assert f"Hint: df was assigned in the call {assigned}, and variables end with their call" in response.report
    other = await call(second.replace("df", "other"), language=language, turn_id="turn_2")
    assert "was assigned in" not in other.report


async def test_a_write_into_the_folder_of_another_turn_is_named(call: Caller) -> None:
    code = "import os\nfolder = 'turn_' + '0/files'\nos.makedirs(folder)\nopen(folder + '/a.txt', 'w').write('x')"
    response = await call(code)
    assert "Not stored: turn_0/files/a.txt (folder of another turn; write to files/)" in response.report


async def test_links_of_an_earlier_call_lead_no_alias_out_of_the_sandbox(call: Caller) -> None:
    await call("import os\nos.symlink('/etc/passwd', 'files/sales.csv')\nos.symlink('/etc', 'files/folder')")
    await call.attach("sales.csv", b"mine")
    response = await call("print(open('sales.csv').read(), open('/mnt/data/sales.csv').read())")
    assert (response.ok, await call.output()) == (True, "mine mine\n"), response.report
