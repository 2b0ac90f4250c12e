"""The workspace between real containers: each file once, each name its newest version, in every call and turn."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from proofbox.contracts.paths import FilePath
from proofbox.contracts.tools import Language
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

BASH = {"explore": True, "language": Language.BASH}
LOOK = {"explore": True}
FILL = r"""
mkdir -p src/deep empty locked
echo 'echo ran' >run; chmod 750 run
echo secret >locked/s; chmod 000 locked/s; chmod 500 locked
ln -s run link; ln -s /etc/passwd out; ln run src/hard
for n in $(seq 200); do echo $n >src/deep/$n; done
echo odd >$'two\nlines'; printf x >$'\377'
"""
SHOW = r"""find . -printf '%y %m %n %l %P\0' | sort -z | tr '\0' '\n' | grep -v ' $'"""
WALKS = {
    "os.walk": "import os\nprint(sum(name.endswith('.csv') for _, _, names in os.walk('.') for name in names))",
    "rglob": "import pathlib\nprint(len(list(pathlib.Path('.').rglob('*.csv'))))",
    "glob": "import glob\nprint(len(glob.glob('**/*.csv', recursive=True)))",
    "make_archive": (
        "import shutil, zipfile\nshutil.make_archive('/tmp/all', 'zip', '.')\n"
        "print(sum(name.endswith('.csv') for name in zipfile.ZipFile('/tmp/all.zip').namelist()))"
    ),
    "copytree": (
        "import shutil, pathlib\nshutil.copytree('.', '/tmp/all')\n"
        "print(len(list(pathlib.Path('/tmp/all').rglob('*.csv'))))"
    ),
    "dataset": "import pyarrow.dataset\nprint(len(pyarrow.dataset.dataset('.', format='csv').files))",
    "tarfile": (
        "import tarfile\nwith tarfile.open('/tmp/all.tar', 'w') as tar: tar.add('files')\n"
        "print(sum(name.endswith('.csv') for name in tarfile.open('/tmp/all.tar').getnames()))"
    ),
    "all of mnt": "import glob\nprint(len(glob.glob('/mnt/**/*.csv', recursive=True)))",
    "find": "find . -type f -name '*.csv' | wc -l",
    "find data": "find /mnt/data -type f | wc -l",
    "find files": "find files -name '*.csv' | wc -l",
    "grep": "grep -rl v . | wc -l",
    "patterns": "cat *.csv */*.csv 2>/dev/null | grep -c v",
    "grep pattern": "grep -r v * | wc -l",
    "zip": "zip -qr /tmp/all.zip . && unzip -l /tmp/all.zip | grep -c csv",
    "zip pattern": "zip -qr /tmp/all.zip * && unzip -l /tmp/all.zip | grep -c csv",
    "zip data": "zip -qr /tmp/all.zip /mnt/data && unzip -l /tmp/all.zip | grep -c csv",
    "tar": "tar cf /tmp/all.tar files && tar tf /tmp/all.tar | grep -c csv",
    "cp": "cp -r files /tmp/all && ls /tmp/all | wc -l",
    "readdir": (
        "const names = require('fs').readdirSync('.', {recursive: true})\n"
        "console.log(names.filter(f => f.endsWith('.csv')).length)"
    ),
    "stat": (
        "const fs = require('fs'), path = require('path'); let n = 0\n"
        "const walk = d => { for (const f of fs.readdirSync(d)) { const p = path.join(d, f)\n"
        "  fs.statSync(p).isDirectory() ? walk(p) : n++ } }\nwalk('files'); console.log(n)"
    ),
}


@pytest.mark.parametrize("naming", ["", "x = 'files/a.csv', 'attachments/a.csv', 'turn_1/attachments/a.csv'"])
@pytest.mark.parametrize("walk", WALKS)
async def test_whoever_walks_the_folder_meets_each_file_once(call: Caller, walk: str, naming: str) -> None:
    await call.attach("a.csv", b"v\n1\n")
    await call.attach("b.csv", b"v\n2\n")
    await call("open('c.csv', 'w').write('v')", **LOOK)
    language = Language.PYTHON if "import" in WALKS[walk] else Language.BASH
    if "console" in WALKS[walk]:
        language, naming = Language.NODE, naming and "// files/a.csv attachments/a.csv turn_1/attachments/a.csv"
    elif language is Language.BASH:
        naming = naming and "# files/a.csv attachments/a.csv turn_1/attachments/a.csv"
    response = await call(f"{WALKS[walk]}\n{naming}", turn_id="turn_2", language=language, **LOOK)
    assert response.output.stdout.strip() == "3", response.report


async def test_out_dir_has_each_file_once_where_no_turn_is_named(call: Caller) -> None:
    await call.attach("a.csv", b"v\n1\n")
    code = "import glob\n# files/a.csv\nprint(glob.glob('/out/**/*.csv', recursive=True))"
    for turn in ("turn_1", "turn_2"):
        response = await call(code, turn_id=turn, **LOOK)
        assert response.output.stdout == f"['/out/{turn}/files/a.csv']\n"


@pytest.mark.parametrize(
    "code",
    [
        "import os; print(sorted(os.listdir('files')), os.path.isfile('files/a.csv'))",
        "import pathlib; print(sorted(p.name for p in pathlib.Path('files').iterdir()), True)",
        "import glob; print(sorted(p[6:] for p in glob.glob('files/*')), True)",
    ],
)
async def test_a_folder_that_stands_for_the_workspace_lists_its_files_alone(call: Caller, code: str) -> None:
    await call.attach("a.csv", b"v\n1\n")
    assert (await call(code, **LOOK)).output.stdout == "['a.csv'] True\n"


async def test_each_name_of_the_workspace_is_a_folder_that_can_be_emptied_but_not_removed(call: Caller) -> None:
    await call.attach("a.csv", b"v\n1\n")
    code = "import os, shutil\nos.makedirs('files', exist_ok=True)\nshutil.rmtree('{0}')\nprint(os.listdir())\n"
    again = (
        "os.makedirs('{0}')\nopen('{0}/b.csv', 'w').write('b')\nprint(os.listdir('files'), os.path.islink('{0}'))"
    )
    for name in ("files", "/mnt/data", "/out/turn_1/files/files"):
        response = await call((code + again).replace("{0}", name), **LOOK)
        assert response.output.stdout == "[]\n['b.csv'] False\n", response.report
    bash = await call(
        "mv files results || cp -r files backup || echo b >files/c; cd files && env -u PWD /bin/pwd; ls", **BASH
    )
    assert bash.output.stdout.split() == ["/out/turn_1/files", "b.csv", "backup", "c"], bash.report


@pytest.mark.parametrize(
    ("language", "code", "printed"),
    [
        (Language.BASH, "mkdir -p /mnt/data/a/b ~/c /mnt/user-data/outputs files/d; ls", "a c d s.txt"),
        (Language.BASH, "for i in 1 2; do echo $i >turn_$i.csv; done; cat turn_*.csv", "1 2"),
        (Language.BASH, "sed -i s/o/a/ files/s.txt /mnt/data/s.txt; cat s.txt; ls", "aa s.txt"),
        (Language.BASH, "cd /mnt; ls data; cat //mnt//data/./s.txt /tmp/../mnt/data/s.txt", "s.txt oo oo"),
        (Language.BASH, "mkdir sub; cd sub; cat ../files/s.txt; echo 1 >../files/t; ls ..", "oo s.txt sub t"),
        (Language.BASH, "mkdir data; echo 1 >data/x; cat files/data/x /mnt/data/data/x; ls data", "1 1 x"),
        (Language.PYTHON, "import tempfile; print(len(tempfile.mkstemp(dir='files')[1].split('/')))", "6"),
        (Language.NODE, "console.log(require('fs').mkdtempSync('files/t-').length)", "14"),
    ],
)
async def test_a_name_of_the_workspace_is_taken_by_all_that_takes_paths(
    call: Caller, language: Language, code: str, printed: str
) -> None:
    await call.attach("s.txt", b"oo\n")
    response = await call(code, language=language, **LOOK)
    assert response.output.stdout.split() == printed.split(), response.report


async def test_a_deleted_attachment_is_there_under_the_path_of_its_turn(call: Caller) -> None:
    await call.attach("a.csv", b"given")
    await call("import os; os.remove('a.csv')", **LOOK)
    for turn in ("turn_1", "turn_2"):
        code = "import os; print(os.listdir(), open('turn_1/attachments/a.csv').read())"
        assert (await call(code, turn_id=turn, **LOOK)).output.stdout == "[] given\n"


async def test_a_folder_whose_name_begins_as_that_of_a_turn_lasts(call: Caller) -> None:
    await call("mkdir turn_rates; echo 1 >turn_rates/a; echo 2 >turn_off.txt", **BASH)
    assert (await call("cat turn_rates/a turn_off.txt", turn_id="turn_2", **BASH)).output.stdout == "1\n2\n"


async def test_an_attachment_with_the_name_of_the_workspace_hides_no_file(call: Caller) -> None:
    await call.attach("files", b"one")
    await call.attach("a.csv", b"two")
    response = await call("print(open('files').read(), open('files/a.csv').read())", **LOOK)
    assert response.output.stdout == "one two\n"


async def test_all_names_of_a_file_have_one_real_path(call: Caller) -> None:
    await call.attach("a.csv", b"v")
    code = (
        "import os, pathlib\nnames = ['a.csv', 'files/a.csv', '/mnt/data/a.csv', '/out/files/a.csv']\n"
        "print({os.path.realpath(n) for n in names}, {str(pathlib.Path(n).resolve(strict=True)) for n in names},"
        " os.path.realpath(b'files/new/x'), os.path.realpath('/tmp/files/x'))"
    )
    shown = "{'/out/turn_1/files/a.csv'} {'/out/turn_1/files/a.csv'} b'/out/turn_1/files/new/x' /tmp/files/x"
    for program in (code, f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {code!r}], check=True)"):
        response = await call(program, **LOOK)
        assert response.output.stdout.strip() == shown, response.report


async def test_a_real_path_is_found_without_opening_a_file(call: Caller) -> None:
    await call.attach("a.csv", b"v")
    code = (
        "import os, sys\nopened = []\ndef hook(event, arguments):\n"
        "    if event == 'open' and isinstance(arguments[0], str):\n"
        "        opened.append(os.path.realpath(arguments[0]))\n"
        "sys.addaudithook(hook)\nos.path.realpath('files/a.csv')\n"
        "os.close(os.open('files/a.csv', 0))\nprint(opened)"
    )
    response = await call(code, **LOOK)
    assert response.output.stdout == "['/out/turn_1/files/a.csv']\n", response.report


@pytest.mark.parametrize("target", ["/mnt/data/a.csv", "$PWD/a.csv", "a.csv"])
async def test_a_link_leads_to_what_its_target_stands_for(call: Caller, target: str) -> None:
    await call.attach("a.csv", b"v")
    linked = await call(f"mkdir d; ln -s {target} l; ln -s /mnt/data/a.csv d/l; cat l d/l", **BASH)
    assert linked.output.stdout == "vv", linked.report
    again = await call("cat l d/l", turn_id="turn_2", **BASH)
    assert again.output.stdout == "vv", again.report


async def test_a_name_means_its_newest_version_whatever_the_program_says(call: Caller) -> None:
    await call.attach("s.csv", b"old")
    await call("open('s.csv', 'w').write('new')", turn_id="turn_2", **LOOK)
    names = ["s.csv", "files/s.csv", "/mnt/data/s.csv", "attachments/s.csv", "turn_3/files/s.csv"]
    code = f"# as in turn_1/attachments/s.csv\nprint({{open(name).read() for name in {names}}})"
    assert (await call(code, turn_id="turn_3", **LOOK)).output.stdout == "{'new'}\n"
    for explicit in (
        "open('turn_1/attachments/s.csv').read(), open('turn_2/files/s.csv').read()",
        "*(open(os.path.join(turn, 's.csv')).read() for turn in ('turn_1/attachments', 'turn_2/files'))",
        "*(open(f'turn_{n}/{kind}/s.csv').read() for n, kind in [(1, 'attachments'), (2, 'files')])",
        "*(open(name).read() for name in sorted(glob.glob('/out/turn_[12]/*/s.csv')))",
    ):
        code = f"import glob, os\nprint({explicit})"
        assert (await call(code, turn_id="turn_3", **LOOK)).output.stdout == "old new\n"
    pattern = await call("import glob; print(glob.glob('turn_*/files/s.csv'))", turn_id="turn_3", **LOOK)
    assert "Note: a pattern such as turn_* matches nothing in the working directory" in pattern.report
    await call.attach("s.csv", b"third", turn_id="turn_4")
    assert (await call("print(open('s.csv').read())", turn_id="turn_4", **LOOK)).output.stdout == "third\n"


async def test_a_version_stays_what_it_was_when_its_name_is_changed(call: Caller) -> None:
    await call.attach("s.csv", b"1")
    code = "open('s.csv', 'a').write('2')\nprint(open('turn_1/attachments/s.csv').read(), open('s.csv').read())"
    assert (await call(code, **LOOK)).output.stdout == "1 12\n"


async def test_what_is_written_beside_the_program_or_at_home_is_in_the_workspace(call: Caller) -> None:
    await call.attach("in.csv", b"1")
    code = (
        "from pathlib import Path\nhere = Path(__file__).resolve().parent\n(here / 'output').mkdir()\n"
        "(here / 'output' / 'r.csv').write_text((here / 'in.csv').read_text())\n"
        "Path('~/h.csv').expanduser().write_text(Path.home().joinpath('in.csv').read_text())"
    )
    assert (await call(code, ["r.csv"])).ok
    assert (await call("import os; print(sorted(os.listdir()))", **LOOK)).output.stdout == (
        "['h.csv', 'in.csv', 'r.csv']\n"
    )


async def test_a_workspace_comes_back_as_it_was(call: Caller) -> None:
    response = await call(f"{FILL}\n{SHOW}", **BASH)
    assert response.ok, response.report
    again = await call(SHOW, **BASH)
    assert again.output.stdout == response.output.stdout
    assert "d 500 2" in again.output.stdout
    assert "f 750 2" in again.output.stdout
    third = await call("./link; cat src/deep/1; rm -r src", turn_id="turn_2", **BASH)
    assert third.output.stdout == "ran\n1\n"
    left = await call("ls -d [a-z]*", turn_id="turn_3", **BASH)
    assert left.output.stdout.split() == ["empty", "link", "locked", "out", "run", "two", "lines"]


async def test_a_project_goes_on_in_the_next_turn(call: Caller) -> None:
    await call("mkdir app; echo 'print(open(\"data.txt\").read())' >app/run.py; echo -n 1 >app/data.txt", **BASH)
    assert (await call("cd app && python run.py", turn_id="turn_2", **BASH)).output.stdout == "1\n"


async def test_a_script_of_the_workspace_finds_the_folders_that_it_names(call: Caller) -> None:
    await call.attach("a.csv", b"v")
    await call("open('run.py', 'w').write('print(open(\"files/\" + \"a.csv\").read())')", **LOOK)
    assert (await call("python run.py", turn_id="turn_2", **BASH)).output.stdout == "v\n"


async def test_a_large_upload_is_there_by_each_of_its_names(call: Caller) -> None:
    await call.attach("big.csv", b"v" * 12_000_000)
    names = ["big.csv", "files/big.csv", "/mnt/data/big.csv", "attachments/big.csv", "turn_1/attachments/big.csv"]
    code = f"import os\nprint([os.path.getsize(name) for name in {names}])"
    assert (await call(code, turn_id="turn_2", **LOOK)).output.stdout == f"{[12_000_000] * 5}\n"


async def test_a_large_file_hides_no_other_and_is_there_when_it_is_named(call: Caller) -> None:
    await call("open('big.bin', 'wb').truncate(90_000_000)\nopen('small.csv', 'w').write('a')", **LOOK)
    response = await call("import os; print(os.listdir())", **LOOK)
    assert response.output.stdout == "['small.csv']\n"
    assert (
        "Note: not in the working directory: big.bin (90,000,000 bytes); name a file in the code" in response.report
    )
    named = await call("import os; print(os.path.getsize('big.bin'), sorted(os.listdir()))", **LOOK)
    assert named.output.stdout == "90000000 ['big.bin', 'small.csv']\n"


async def test_files_that_a_call_does_not_list_exist_for_every_tool(call: Caller) -> None:
    fill = "import os; os.mkdir('m')\nfor n in range(120): open(f'm/f{n}.txt', 'w').write(f'needle{n}\\n')"
    assert (await call(fill, **LOOK)).report.endswith(" and 70 more")
    read = await call.tool("react.read", {"paths": ["m/f99.txt"]})
    assert "needle99" in read.text
    found = await call.tool("react.search_files", {"content_regex": "needle"})
    assert found.ret["total"] == 120
    patch = {"path": "m/f119.txt", "patch": "new", "channel": "internal", "kind": "file"}
    assert (await call.tool("react.patch", patch)).ok
    later = await call("print(open('turn_1/files/m/f99.txt').read())", turn_id="turn_2", **LOOK)
    assert later.output.stdout == "needle99\n\n"
    removed = await call("import os; os.remove('m/f118.txt')", turn_id="turn_2", **LOOK)
    assert "Deleted: turn_1/files/m/f118.txt" in removed.report


async def test_a_removal_lasts_through_turns_until_the_name_comes_again(call: Caller) -> None:
    await call.attach("a.csv", b"1")
    await call("open('b.csv', 'w').write('2')", **LOOK)
    await call("import os; os.remove('a.csv'); os.remove('b.csv')", turn_id="turn_2", **LOOK)
    assert (await call("ls", turn_id="turn_3", **BASH)).output.stdout == ""
    old = await call("cat turn_1/attachments/a.csv turn_1/files/b.csv", turn_id="turn_3", **BASH)
    assert old.output.stdout == "12"
    await call.attach("a.csv", b"3", turn_id="turn_4")
    assert (await call("cat *", turn_id="turn_4", **BASH)).output.stdout == "3"


@pytest.mark.parametrize("edit", ["", "open('d.csv', 'w').write('new'); "])
async def test_an_attachment_that_comes_again_as_it_was_is_back(call: Caller, edit: str) -> None:
    await call.attach("d.csv", b"1")
    await call(f"{edit}None", **LOOK)
    await call("import os; os.remove('d.csv')", **LOOK)
    again = [await call.attach("d.csv", b"1") for _ in range(2)]
    assert again[0] == again[1]
    assert (await call("cat d.csv", **BASH)).output.stdout == "1"


async def test_a_read_leaves_the_workspace_unchanged_and_none_has_what_it_names(call: Caller) -> None:
    await call("echo 1 >a; echo 2 >b; mkdir c", **BASH)
    read = await call("cat a; rm a; rmdir c", workspace="read", **BASH)
    assert read.output.stdout == "1\n"
    assert (await call("ls -A", **BASH)).output.stdout == "a\nb\nc\n"
    assert (await call("ls -A; cat b", workspace="none", **BASH)).output.stdout == "b\n2\n"


@pytest.mark.parametrize("same", ["a_same", "z_same"])  # stored by itself, and with the rest of the workspace
async def test_calls_side_by_side_lose_nothing_and_wait_for_none(call: Caller, same: str) -> None:
    fill = "mkdir d{n}; ln -s x l{n}; for i in $(seq 60); do echo $i >f{n}_$i; done; echo {n} >" + same
    codes = [f"ls | wc -l; {fill}".replace("{n}", str(number)) for number in range(4)]
    responses = await asyncio.gather(*(call(code, **BASH) for code in codes))
    assert all(response.ok for response in responses)
    listed = await call("ls -d d* | wc -l; ls -d l* | wc -l; ls f* | wc -l", turn_id="turn_2", **BASH)
    assert listed.output.stdout.split() == ["4", "4", "240"]
    replaced = sum(f"{same}: another call wrote it while this one ran" in each.report for each in responses)
    assert replaced >= sum(each.output.stdout.strip() == "0" for each in responses) - 1


async def test_what_calls_side_by_side_leave_stays_within_the_bounds_of_one(call: Caller) -> None:
    code = "import os\nos.mkdir('{n}')\nfor i in range(6_000): os.symlink('x', f'{n}/{i}')"
    responses = await asyncio.gather(*(call(code.replace("{n}", n), **LOOK) for n in "ab"))
    assert sum("only the files that other tools see were stored" in each.report for each in responses) == 1
    after = await call("ls | wc -l; ls * | wc -l", turn_id="turn_2", **BASH)
    assert after.output.stdout.split() == ["1", "6000"]


async def test_what_cannot_be_stored_is_noted_and_the_rest_stays(call: Caller) -> None:
    await call("echo 1 >a", **BASH)
    response = await call(
        "mkfifo p; echo 2 >b; for i in $(seq 40); do mkdir d$i; done; sleep 60", timeout_s=3, **BASH
    )
    assert "Note: 1 entry of the working directory cannot be stored" in response.report
    assert (await call("cat a b; ls -d d* | wc -l", **BASH)).output.stdout == "1\n2\n40\n"


async def test_a_promised_file_is_checked_as_ever_and_an_old_one_is_stale(call: Caller) -> None:
    made = await call("open('t.csv', 'w').write('a,b\\n1,2\\n')", ["t.csv"])
    assert made.ok, made.report
    stale = await call("print(open('t.csv').read())", ["t.csv"], turn_id="turn_2")
    assert (stale.error.code, stale.output.stdout) == ("stale_file", "a,b\n1,2\n\n")
    assert "t.csv: file was there before the run and did not change" in stale.report


async def test_each_change_that_is_not_hosted_says_that_the_user_has_an_older_version(call: Caller) -> None:
    edit = "open('h.txt', 'a').write('more')"
    note = "Note: h.txt: the copy that the user has is an older version; promise the file to renew it"
    assert "Note:" not in (await call(edit, ["h.txt"])).report
    for turn in ("turn_1", "turn_2"):
        assert (await call(edit, turn_id=turn, **LOOK)).report.count(note) == 1
    beside = await call(f"{edit}\nopen('o.txt', 'w').write('o')", ["o.txt"], turn_id="turn_2")
    assert (note in beside.report, "o.txt:" in beside.report) == (True, False)
    assert "Note:" not in (await call(edit, ["h.txt"], turn_id="turn_3")).report
    assert note in (await call(edit, workspace="read", turn_id="turn_3", **LOOK)).report
    removed = await call("import os; os.remove('h.txt')", turn_id="turn_3", **LOOK)
    assert removed.report.count("Note:") == removed.report.count("Note: the user still has a copy of h.txt") == 1


async def test_a_lost_blob_costs_one_file(
    call: Caller, caplog: pytest.LogCaptureFixture, take_away: Callable[[Path], None]
) -> None:
    code = f"for name in 'ab': open(name + '.txt', 'w').write(name + {call.conversation!r})"
    await call(code, ["a.txt", "b.txt"])
    path = FilePath.from_physical("turn_1/files/a.txt")
    artifact = await call.service.artifacts.latest(call.scope, path)
    assert artifact is not None
    (blob,) = call.service.settings.data_dir.rglob(artifact.sha256)
    take_away(blob)
    with caplog.at_level(logging.WARNING):
        plain = await call("import os; print(os.listdir())", turn_id="turn_2", **LOOK)
        again = await call("import os; print(os.listdir())", turn_id="turn_2", **LOOK)
    assert (plain.output.stdout, again.output.stdout) == ("['b.txt']\n", "['b.txt']\n")
    assert "Note: the stored bytes of a.txt are missing or damaged; the program ran without them" in plain.report
    named = await call("open('turn_1/files/a.txt')", turn_id="turn_2", **LOOK)
    assert named.error.code == "pre_exec_missing_paths"
    assert "; the stored bytes of turn_1/files/a.txt are missing or damaged" in named.report
    by_name = await call("open('a.txt')", turn_id="turn_2", **LOOK)
    assert "Hint: a.txt does not exist; the conversation has files/b.txt" in by_name.report
    assert not any("the conversation has turn_2/files/a.txt" in each.report for each in (named, by_name))
    (line,) = [record.getMessage() for record in caplog.records if "turn_1/files/a.txt" in record.getMessage()]
    assert call.conversation in line


async def test_a_lost_archive_costs_what_is_no_stored_file(
    call: Caller, caplog: pytest.LogCaptureFixture, take_away: Callable[[Path], None]
) -> None:
    await call(f"mkdir {call.conversation}; echo 1 >a", **BASH)
    stored = await call.service.artifacts.workspace(call.scope)
    assert stored is not None
    (blob,) = call.service.settings.data_dir.rglob(stored.sha256)
    take_away(blob)
    with caplog.at_level(logging.WARNING):
        plain = await call("ls", turn_id="turn_2", **BASH)
        await call("ls", turn_id="turn_2", **BASH)
    assert plain.output.stdout == "a\n"
    note = "Note: the stored links, empty folders and modes of the working directory (1 entry) are missing"
    assert note in plain.report
    (line,) = [record.getMessage() for record in caplog.records if "archive" in record.getMessage()]
    assert call.conversation in line
    await call("mkdir new", turn_id="turn_2", **BASH)
    after = await call("ls", turn_id="turn_3", **BASH)
    assert (after.output.stdout, "Note:" in after.report) == ("a\nnew\n", False)
