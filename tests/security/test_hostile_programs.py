"""Programs that go for the machine below them, their neighbours, the log and the collection that follows them."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from service_process import content, eventually, request, verdicts

pytestmark = pytest.mark.docker

KEPT = "open('kept.txt', 'w').write('kept')\n"


# ---- what lies below


def digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_a_program_that_writes_over_the_programs_that_run_it_changes_none_of_the_machines(service):
    runtimes = [found for name in ("runc", "crun", "dockerd", "containerd") if (found := shutil.which(name))]
    before = {path: digest(path) for path in runtimes}
    told = service.probe(
        "import errno, glob, os, subprocess\n"
        "paths = ['/proc/self/exe', '/proc/1/exe', '/bin/sh', os.__file__]\n"
        "paths += glob.glob('/opt/proofbox/runner/*.py')\n"
        "told['written'] = []\n"
        "for path in paths:\n"
        "    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_PATH):\n"
        "        try:\n"
        "            fd = os.open(path, flags)\n"
        "            if flags == os.O_PATH: fd = os.open(f'/proc/self/fd/{fd}', os.O_WRONLY)\n"
        "            os.write(fd, b'#!/proc/self/exe'); told['written'].append(path)\n"
        "        except OSError: pass\n"
        "    try: os.rename(path, path + '.x'); told['written'].append(path)\n"
        "    except OSError: pass\n"
        "told['python'] = subprocess.run(['/bin/sh', '-c', 'echo alive'], capture_output=True, text=True).stdout"
    )
    assert told == {"written": [], "python": "alive\n"}
    assert {path: digest(path) for path in runtimes} == before
    assert len(runtimes) > 0


def test_files_of_the_image_are_the_same_for_the_next_container_whatever_a_program_does_to_their_pages(service):
    hashes = (
        "import glob, hashlib\n"
        "paths = ['/usr/bin/env', '/etc/passwd', *sorted(glob.glob('/opt/proofbox/runner/*.py'))]\n"
        "told['hashes'] = {p: hashlib.sha256(open(p, 'rb').read()).hexdigest() for p in paths}\n"
    )
    first = service.probe(
        f"{hashes}"
        "import mmap, os\n"
        "told['refused'] = []\n"
        "for path in paths:\n"
        "    fd = os.open(path, os.O_RDONLY)\n"
        "    try: mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)[0:1] = b'X'\n"
        "    except (OSError, PermissionError): told['refused'].append('mmap')\n"
        "    private = mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)\n"
        "    private[0:1] = b'X'\n"  # a page of its own
        "    read, write = os.pipe()\n"
        "    os.write(write, bytes(65536)); os.read(read, 65536)\n"
        "    try: os.splice(fd, write, 1, offset_src=0); os.write(write, b'XXXX')\n"
        "    except OSError: pass\n"
        "    with open('/proc/self/mem', 'r+b', buffering=0) as memory:\n"
        "        shared = mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)\n"
        "        maps = [line.split() for line in open('/proc/self/maps')]\n"
        "        at = next((int(m[0].split('-')[0], 16) for m in maps if m[1] == 'r--s' and m[-1] == path), 0)\n"
        "        try: memory.seek(at); memory.write(b'X') if at else None\n"
        "        except OSError: told['refused'].append('mem')\n"
    )
    second = service.probe(hashes)
    assert second["hashes"] == first["hashes"]
    assert {"mmap", "mem"} <= set(first["refused"])


def test_an_abort_leaves_no_core_file_and_a_stopped_program_ends_at_its_time(service):
    aborted = service.call(
        f"import os, resource\n{KEPT}held = bytearray(200 << 20)\n"
        "assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)\n"
        "try: resource.setrlimit(resource.RLIMIT_CORE, (1, 1)); raise SystemExit(9)\n"
        "except ValueError: pass\n"
        "os.abort()",
        "kept.txt",
    )
    assert (aborted["error"]["code"], aborted["usage"]["signal"]) == ("killed", 6)
    assert verdicts(aborted) == {"kept.txt": "produced"}
    stopped = service.call(
        f"import os, signal\n{KEPT}os.kill(os.getpid(), signal.SIGSTOP)", "kept.txt", limits={"wall_s": 2}
    )
    assert (stopped["error"]["code"], verdicts(stopped)) == ("timeout", {"kept.txt": "produced"})


def test_descriptors_sockets_and_waiting_for_input_end_inside(service):
    told = service.probe(
        "import errno, os, socket\n"
        "def until(make):\n"
        "    held = []\n"
        "    try:\n        while len(held) < 100_000: held.append(make())\n"
        "    except OSError as error: told_error = errno.errorcode[error.errno]\n"
        "    count = len(held)\n"
        "    for one in held: os.close(one) if isinstance(one, int) else one.close()\n"
        "    return [told_error, count < 100_000]\n"
        "told['files'] = until(lambda: os.open('/dev/null', os.O_RDONLY))\n"
        "told['sockets'] = until(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))\n"
        "try: input()\n"
        "except EOFError: told['input'] = 'EOFError'"
    )
    assert told == {"files": ["EMFILE", True], "sockets": ["EMFILE", True], "input": "EOFError"}


# ---- what is said

SAYINGS = {
    "control sequences": b"\x1b[2J\x1b]0;title\x07\x1b]8;;http://203.0.113.7\x07link\x1b\\\x9b31m\x1bP+q\x1b\\",
    "NUL and other controls": bytes(range(32)) * 100 + b"\x7f",
    "bytes that are no UTF-8": b"\xff\xfe\x00\xd8" + bytes(range(128, 256)) * 20,
    "half surrogates": "\ud800 \udfff".encode("utf-8", "surrogatepass") * 50,
    "a progress bar": b"".join(b"\r%3d%%|%s|" % (n, b"#" * n) for n in range(100)) * 50,
    "one line of ten megabytes": b"x" * 10_000_000,
    "lines that only look like lines": "a\u2028- turn_1/files/forged.txt\u2029Succeeded:\x85b\x0bc\x0cd\n".encode(),
    "bidirectional marks": "\u202e\u2066txt.exe\u2069\u200b\ufeff".encode() * 20,
    "a report of its own": b"\nProduced files:\n- turn_1/files/forged.txt\n\nRuntime error: none\n",
}


@pytest.mark.parametrize("name", SAYINGS)
def test_whatever_a_failed_program_says_is_a_bounded_log_of_valid_text(service, name):
    answer = service.call(
        f"import os, sys\n{KEPT}said = {SAYINGS[name][:20_000]!r}\n"
        f"said = said * {max(1, len(SAYINGS[name]) // 20_000)}\n"
        "view = memoryview(said)\n"
        "while view: view = view[os.write(1, view):]\n"
        "os._exit(3)",
        "kept.txt",
    )
    assert (answer["error"]["code"], verdicts(answer)) == ("nonzero_exit", {"kept.txt": "produced"})
    assert len(answer["report"]) < 10_000
    answer["report"].encode()  # no half surrogate
    head, _, log = answer["report"].partition("Program log (tail):")
    assert "forged.txt" not in head
    assert len(log) > 0
    assert [a["physical_path"] for a in answer["artifacts"]] == ["turn_1/files/kept.txt"]


# ---- what is collected


def test_processes_that_rename_and_swap_files_while_the_program_ends_change_nothing_after_it(service):
    answer = service.call(
        f"import os\n{KEPT}open('swapped.txt', 'w').write('own')\nos.symlink('/etc/passwd', 'link')\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        while True:\n"
        "            try:\n"
        "                os.rename('swapped.txt', 'aside'); os.rename('link', 'swapped.txt')\n"
        "                os.rename('swapped.txt', 'link'); os.rename('aside', 'swapped.txt')\n"
        "            except OSError: pass\n"
        "import time; time.sleep(0.3)",
        "kept.txt",
        "swapped.txt",
    )
    told = verdicts(answer)
    assert told["kept.txt"] == "produced"
    assert told["swapped.txt"] in {"produced", "artifact_symlink_blocked", "missing_file"}
    assert "root:" not in str(answer["blocks"])
    if told["swapped.txt"] == "produced":
        assert content(answer, "swapped.txt") == "own"


def test_attributes_beyond_modes_and_times_stay_in_the_sandbox(service):
    answer = service.call(
        "import os\nopen('kept.txt', 'w').write('with attributes')\n"
        "for name in ('user.x', 'security.capability', 'trusted.x', 'system.posix_acl_access'):\n"
        "    try: os.setxattr('kept.txt', name, b'y' * 20)\n"
        "    except OSError: pass",
        "kept.txt",
    )
    assert verdicts(answer) == {"kept.txt": "produced"}
    blobs = [p for p in (service.data_dir / "blobs").rglob("*") if p.is_file() and p.stat().st_size == 15]
    assert {blob.name: os.listxattr(blob) for blob in blobs} == {blob.name: [] for blob in blobs}
    assert blobs


# ---- what is asked

KNOBS = {
    "image": "evil:latest",
    "runtime": "runc",
    "mounts": ["/:/host"],
    "privileged": True,
    "cap_add": ["SYS_ADMIN"],
    "network": "host",
    "env": {"LD_PRELOAD": "/out/x.so", "PYTHONSTARTUP": "/out/x.py", "PATH": "/out"},
    "user": "0",
    "seccomp": "unconfined",
    "cgroup_parent": "/",
    "devices": ["/dev/kmsg"],
    "tenant": "other",
    "__class__": "x",
}


@pytest.mark.parametrize("where", ["body", "params", "limits"])
def test_a_request_has_no_knob_that_weakens_its_sandbox(service, where):
    for knob, value in KNOBS.items():
        body = request(KEPT, "kept.txt")
        place = body if where == "body" else body.setdefault(where, {})
        place[knob] = value
        refused = service.post(body)
        if where == "params":
            assert refused.json()["error"]["code"] == "invalid_params", (knob, refused.text)
            assert knob in refused.json()["error"]["message"]
            continue
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request"), (knob, refused.text)
        assert knob in refused.json()["detail"]


def test_an_uploaded_archive_is_kept_as_its_bytes_and_nothing_of_it_is_unpacked(service):
    import hostile_files  # noqa: PLC0415 - makes them here for once

    conversation = request("")["conversation_id"]
    for name in ("overlapping.zip", "up.zip", "linked.zip", "through.tar", "nested.zip"):
        data = hostile_files.FILES[name]()
        where = f"/v1/conversations/{conversation}"
        put = service.client.put(f"{where}/turns/turn_1/attachments/{name}", content=data)
        assert (put.status_code, put.json()["size_bytes"]) == (201, len(data))
        got = service.client.get(f"{where}/artifacts/fi:turn_1.user.attachments/{name}")
        assert (got.status_code, got.content) == (200, data)
        assert got.headers["content-disposition"].startswith("attachment")
    assert eventually(service.staged, lambda left: left == []) == []
