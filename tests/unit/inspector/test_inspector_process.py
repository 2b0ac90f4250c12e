import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from inspector_run import ENDLESS, ENDLESS_TEXT, INSPECTOR, run_inspector
from inspector_samples import pdf, zipped


def problems(verdicts):
    return [verdict["problem"] for verdict in verdicts]


CPU = " of processor time"


def started(root: Path, files: list[dict], **bounds: float) -> subprocess.Popen:
    """An inspector at work, its request sent."""
    process = subprocess.Popen(
        [sys.executable, "-I", str(INSPECTOR)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps({"root": str(root), "seconds_per_file": 120, "files": files} | bounds).encode())
    process.stdin.close()
    process.stdin = None  # or communicate() would flush it
    return process


def judge_of(process: subprocess.Popen) -> int:
    """The process id of the child that an inspector has at work."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (ids := children.read_text().split()):
        time.sleep(0.01)
    return int(ids[0])


def test_a_file_that_takes_too_long_is_given_up_and_the_next_one_is_judged(tmp_path):
    (tmp_path / "slow.json").write_text(ENDLESS_TEXT)
    (tmp_path / "a.txt").write_text("x")
    verdicts = run_inspector(
        tmp_path,
        [{"id": 0, "path": "slow.json", "checks": ENDLESS}, {"id": 1, "path": "a.txt", "checks": {}}],
        seconds_per_file=0.5,
    )
    assert problems(verdicts) == [f"could not be checked within 0.5 s{CPU}", None]


def test_a_file_that_only_waits_is_given_up_by_the_clock_and_the_next_one_is_judged(tmp_path):
    (tmp_path / "slow.json").write_text(ENDLESS_TEXT)
    (tmp_path / "a.txt").write_text("x")
    process = started(
        tmp_path,
        [{"id": 0, "path": "slow.json", "checks": ENDLESS}, {"id": 1, "path": "a.txt", "checks": {}}],
        wall_seconds_per_file=1,
    )
    os.kill(judge_of(process), signal.SIGSTOP)
    out, err = process.communicate()
    verdicts = [json.loads(line) for line in out.splitlines()]
    assert (problems(verdicts), process.returncode, err) == (["could not be checked within 1 s", None], 0, b"")


def test_the_time_that_a_file_had_to_wait_for_a_processor_does_not_count(tmp_path):
    (tmp_path / "a.json").write_text("[" + "[1, 2.5], " * 200_000 + "0]")
    process = started(
        tmp_path, [{"id": 0, "path": "a.json", "checks": {}}], seconds_per_file=1.5, wall_seconds_per_file=60
    )
    judge = judge_of(process)
    os.kill(judge, signal.SIGSTOP)
    time.sleep(2)
    os.kill(judge, signal.SIGCONT)
    out, _ = process.communicate()
    assert problems([json.loads(line) for line in out.splitlines()]) == [None]


def test_a_file_that_takes_too_much_memory_is_given_up_and_the_next_one_is_judged(tmp_path):
    (tmp_path / "big.json").write_text("[" + "[],[]," * 5_000_000 + "1]")
    (tmp_path / "a.txt").write_text("x")
    verdicts = run_inspector(
        tmp_path,
        [{"id": 0, "path": "big.json", "checks": {}}, {"id": 1, "path": "a.txt", "checks": {}}],
        memory_bytes_max=200_000_000,
    )
    assert problems(verdicts) == ["could not be opened: the checker ran out of memory", None]


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        (signal.SIGSEGV, "could not be opened: the checker crashed (SIGSEGV)"),
        (signal.SIGABRT, "could not be opened: the checker crashed (SIGABRT)"),
        (signal.SIGKILL, "could not be opened: the checker ran out of memory"),
    ],
)
def test_the_death_of_a_judge_is_a_problem_of_its_file_alone(tmp_path, number, problem):
    (tmp_path / "slow.json").write_text(ENDLESS_TEXT)
    (tmp_path / "a.txt").write_text("x")
    process = started(
        tmp_path, [{"id": 0, "path": "slow.json", "checks": ENDLESS}, {"id": 1, "path": "a.txt", "checks": {}}]
    )
    os.kill(judge_of(process), number)
    out, err = process.communicate()
    verdicts = [json.loads(line) for line in out.splitlines()]
    assert (problems(verdicts), process.returncode, err) == ([problem, None], 0, b"")


def test_a_file_that_takes_too_much_memory_after_others_is_given_up_alone(tmp_path):
    (tmp_path / "big.json").write_text("[" + "[],[]," * 5_000_000 + "1]")
    (tmp_path / "a.txt").write_text("x")
    names = ["a.txt", "a.txt", "big.json", "a.txt"]
    files = [{"id": number, "path": name, "checks": {}} for number, name in enumerate(names)]
    verdicts = run_inspector(tmp_path, files, memory_bytes_max=200_000_000)
    out_of_memory = "could not be opened: the checker ran out of memory"
    assert problems(verdicts) == [None, None, out_of_memory, None]


def test_files_that_take_too_long_are_each_given_up_and_those_between_them_judged(tmp_path):
    (tmp_path / "slow.json").write_text(ENDLESS_TEXT)
    (tmp_path / "a.txt").write_text("x")
    names = ["a.txt", "slow.json", "slow.json", "a.txt", "slow.json", "a.txt"]
    files = [{"id": n, "path": name, "checks": ENDLESS if "slow" in name else {}} for n, name in enumerate(names)]
    verdicts = run_inspector(tmp_path, files, seconds_per_file=0.5)
    late = f"could not be checked within 0.5 s{CPU}"
    assert [verdict["id"] for verdict in verdicts] == list(range(6))
    assert problems(verdicts) == [None, late, late, None, late, None]


@pytest.mark.parametrize(
    ("names", "forks"),
    [
        ([f"{n}.txt" for n in range(120)], 3),
        (["a.csv", "b.json", "c.md", "d.bin"], 1),
        (["a.pdf", "b.pdf"], 2),
        (["a.txt", "b.txt", "c.png", "d.txt"], 3),
    ],
)
def test_files_that_nothing_but_python_reads_share_a_judge_and_others_do_not(tmp_path, names, forks):
    """Run in a process of its own, whose forks are counted."""
    program = (
        "import os, sys, pathlib; sys.path.insert(0, sys.argv[1]); import subprocess_judge\n"
        "from request import Entry\n"
        "from model import Limits; fork, forks = os.fork, []\n"
        "os.fork = lambda: forks.append(1) or fork()\n"
        "entries = [Entry(name, name, {}) for name in sys.argv[3:]]\n"
        "verdicts = list(subprocess_judge.judge_files(pathlib.Path(sys.argv[2]), entries, Limits()))\n"
        "print(len(forks), len(verdicts))"
    )
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    command = [sys.executable, "-I", "-c", program, str(INSPECTOR), str(tmp_path), *names]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stdout.split() == [str(forks), str(len(names))]


def test_a_verdict_is_written_as_soon_as_its_file_is_judged(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "slow.json").write_text(ENDLESS_TEXT)
    process = started(
        tmp_path, [{"id": 7, "path": "a.txt", "checks": {}}, {"id": 8, "path": "slow.json", "checks": ENDLESS}]
    )
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    still_at_work = process.poll()
    os.kill(judge_of(process), signal.SIGKILL)
    process.communicate()
    assert (first, still_at_work) == (
        {"id": 7, "ok": True, "mime": "text/plain", "problem": None, "facts": {}},
        None,
    )


def test_what_cannot_be_opened_as_a_regular_file_is_a_problem(tmp_path):
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "link.txt").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe.txt")
    names = ["none.txt", "folder.txt", "link.txt", "pipe.txt", "nul\x00.txt"]
    verdicts = run_inspector(tmp_path, [{"id": name, "path": name, "checks": {}} for name in names])
    assert problems(verdicts) == [
        "could not be opened: No such file or directory",
        "could not be opened: it is not a regular file",
        "could not be opened: Too many levels of symbolic links",
        "could not be opened: it is not a regular file",
        "could not be opened: no file has a NUL in its name",
    ]


def test_a_name_that_is_not_unicode_is_judged_like_any_other(tmp_path):
    name = os.fsdecode(b"b\xff\nc.txt")
    (tmp_path / name).write_text("x")
    verdicts = run_inspector(tmp_path, [{"id": 0, "path": name, "checks": {}}])
    assert verdicts == [{"id": 0, "ok": True, "mime": "text/plain", "problem": None, "facts": {}}]


def test_a_sentence_is_one_printable_line_of_at_most_300_characters(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped({"../" + "\n\x1b\u202e" * 9000: b""}))
    (tmp_path / "a.json").write_text('"' + "x" * 5_000_000 + '"')
    (tmp_path / "a.csv").write_text(",".join("\x1b" + "c" * 900 for _ in range(60)))
    verdicts = run_inspector(
        tmp_path,
        [
            {"id": 0, "path": "a.zip", "checks": {}},
            {"id": 1, "path": "a.json", "checks": {"json_schema": {"type": "object"}}},
            {"id": 2, "path": "a.csv", "checks": {"columns": ["z" * 5000] * 9}},
        ],
    )
    assert [(verdict["problem"].isprintable(), len(verdict["problem"]) <= 300) for verdict in verdicts] == [
        (True, True)
    ] * 3
    assert verdicts[1]["problem"].endswith("xxx' is not of type 'object'")


def test_facts_stay_small_and_printable_whatever_the_names_of_columns(tmp_path):
    (tmp_path / "a.csv").write_text(",".join("\x1b" + "c" * 9000 for _ in range(60)))
    (verdict,) = run_inspector(tmp_path, [{"id": 0, "path": "a.csv", "checks": {}}])
    columns = verdict["facts"]["columns"]
    assert (len(columns), {len(name) for name in columns}, columns[0][:6]) == (50, {100}, "\\x1bcc")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        b"no",
        b"[]",
        b'{"root": "/out"}',
        b'{"root": "/out", "files": [{"id": 0}]}',
        b'{"root": "/out", "files": [{"path": "a"}]}',
        b'{"root": "/out", "files": [{"id": 0, "path": "a", "checks": []}], "pages_max": "many"}',
        b"[" * 100_000,
    ],
)
def test_a_request_that_is_none_ends_with_status_2_and_one_sentence(request_bytes):
    done = subprocess.run(
        [sys.executable, "-I", str(INSPECTOR)], input=request_bytes, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count(b"\n"), done.stderr[:11]) == (2, b"", 1, b"inspector: ")


def test_an_image_without_the_libraries_says_so_and_still_reads_what_needs_none(tmp_path):
    contents = {
        "a.txt": b"x",
        "a.pdf": pdf(),
        "a.parquet": b"PAR1PAR1",
        "b.parquet": b"PAR1PAR1",
        "c.parquet": b"x",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    files = [{"id": name, "path": name, "checks": {}} for name in contents]
    files[3]["checks"] = {"min_rows": 1}
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(INSPECTOR)],
        input=json.dumps({"root": str(tmp_path), "files": files}).encode(),
        capture_output=True,
        check=True,
    )
    assert problems(map(json.loads, done.stdout.splitlines())) == [
        None,
        "cannot be opened by this image, which has no reader for .pdf files: No module named 'pypdfium2'",
        None,
        "min_rows cannot be checked: this image cannot read Parquet tables",
        "is not a Parquet table: it starts with 'x'",
    ]


def test_a_judge_can_write_no_file(tmp_path):
    """Run through the inspector's own confinement, in a process of its own."""
    program = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import subprocess_judge\n"
        "from model import Limits\n"
        "said = os.dup(1); subprocess_judge._confine(Limits())\n"
        "file = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)\n"
        "try: os.write(file, b'x')\n"
        "except OSError as error: os.write(said, error.strerror.encode())"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, str(INSPECTOR), str(tmp_path / "new")],
        capture_output=True,
        check=True,
    )
    assert (done.stdout, (tmp_path / "new").read_bytes()) == (b"File too large", b"")
