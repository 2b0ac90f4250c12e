"""What a hostile program leaves behind: each of it gets a verdict or a note, none of it is followed or believed."""

import hashlib
import unicodedata
from typing import Any
from urllib.parse import quote

import pytest
from service_process import content, request, serving, verdicts

pytestmark = pytest.mark.docker

KEEPS_ITS_PROMISE = "open('/out/kept.txt', 'w').write('kept')\n"
ANY_FILE = {"glob": "**", "description": "whatever there is", "min_count": 0}


def notes(answer: dict[str, Any]) -> str:
    """The report's line on what nobody promised; empty if there is none."""
    lines = [line for line in answer["report"].splitlines() if line.startswith("Not in the contract:")]
    return "".join(lines).removeprefix("Not in the contract: ")


# ---- links


def test_symbolic_links_to_secrets_are_blocked_and_no_byte_of_them_comes_out(service):
    targets = {
        "shadow.csv": "/etc/shadow",
        "environ.txt": "/proc/1/environ",
        "own.txt": "real.txt",
        "dangling.txt": "/nowhere",
        "loop.txt": "loop.txt",
        "host.txt": str(service.data_dir / "canary.txt"),
    }
    answer = service.call(
        f"import os\nos.chdir('files')\nopen('real.txt', 'w').write('real')\n"
        f"for name, target in {targets!r}.items(): os.symlink(target, name)",
        *targets,
    )
    assert verdicts(answer) == dict.fromkeys(targets, "artifact_symlink_blocked") | {"real.txt": "produced"}
    assert [b for b in answer["blocks"] if "digest" in b["meta"]] == []


def test_a_symbolic_link_that_nobody_promised_is_no_file(service):
    answer = service.call(f"import os\n{KEEPS_ITS_PROMISE}os.symlink('/etc/passwd', 'files/link.txt')", "kept.txt")
    assert verdicts(answer) == {"kept.txt": "produced"}
    assert notes(answer) == ""


def test_linked_folders_are_not_walked(service):
    answer = service.call(
        f"import os\n{KEEPS_ITS_PROMISE}"
        "os.symlink('/', 'files/root'); os.symlink('/etc', 'files/etc')\n"
        "os.mkdir('files/a'); os.symlink('..', 'files/a/up'); os.symlink('a', 'files/b')",
        "kept.txt",
        "etc/passwd",
        "b/x.txt",
        ANY_FILE,
    )
    assert verdicts(answer) == {
        "kept.txt": "produced",
        "etc/passwd": "artifact_path_escape_blocked",
        "b/x.txt": "artifact_symlink_blocked",
        "root": "artifact_symlink_blocked",
        "etc": "artifact_symlink_blocked",
        "a/up": "artifact_symlink_blocked",
        "b": "artifact_symlink_blocked",
    }


@pytest.mark.parametrize("target", ["/", "/proc", "/proc/1", "/etc", "/tmp/home", "/out", "."])
@pytest.mark.parametrize("replaced", ["turn_1", "turn_1/files", "turn_1/attachments"])
def test_a_link_in_place_of_a_folder_of_ours_leads_nowhere(service, replaced, target):
    answer = service.call(
        "import os, shutil\n"
        f"path = '/out/' + {replaced.replace('turn_1', '@')!r}.replace('@', os.environ['TURN_ID'])\n"
        "if os.path.islink(path): os.unlink(path)\n"
        "elif os.path.isdir(path): shutil.rmtree(path)\n"
        f"os.symlink({target!r}, path)\n"
        f"{KEEPS_ITS_PROMISE}",
        "kept.txt",
        "etc/passwd",
    )
    told = verdicts(answer)
    blocked = {"artifact_path_escape_blocked", "artifact_symlink_blocked"}
    assert answer["error"]["code"] in {"execution_failed"} | blocked
    assert told.pop("kept.txt") in {"produced"} | blocked
    assert set(told.values()) <= {"missing_file"} | blocked


@pytest.mark.parametrize("replaced", ["turn_1", "turn_1/files"])
@pytest.mark.parametrize("by", ["file", "fifo", "nothing"])
def test_a_folder_of_ours_that_is_gone_costs_no_file_beside_it(service, replaced, by):
    makers = {"file": "open(path, 'w').write('x')", "fifo": "os.mkfifo(path)", "nothing": "pass"}
    answer = service.call(
        "import os, shutil\n"
        f"path = '/out/' + {replaced.replace('turn_1', '@')!r}.replace('@', os.environ['TURN_ID'])\n"
        "os.unlink(path) if os.path.islink(path) else shutil.rmtree(path)\n"
        f"{makers[by]}\n"
        f"{KEEPS_ITS_PROMISE}",
        "kept.txt",
        "gone.txt",
    )
    assert answer["error"]["code"] == "execution_failed"
    told = verdicts(answer)
    told.pop("turn_1", None)  # a file in place of the turn's folder is a file in the working directory
    assert told == {"kept.txt": "produced", "gone.txt": "missing_file"}


def test_a_subfolder_replaced_by_a_file_is_a_missing_promise(service):
    answer = service.call(f"{KEEPS_ITS_PROMISE}open('files/sub', 'w').write('x')", "kept.txt", "sub/out.txt")
    assert verdicts(answer) == {"kept.txt": "produced", "sub/out.txt": "missing_file", "sub": "produced"}


def test_many_names_of_one_large_file_are_transferred_once(service):
    answer = service.call(
        "import os\n"
        f"{KEEPS_ITS_PROMISE}"
        "with open('files/0.bin', 'wb') as f: f.write(os.urandom(1024) * 60_000)\n"
        "for n in range(1, 40): os.link('files/0.bin', f'files/{n}.bin')",
        "kept.txt",
        {"glob": "*.bin", "description": "forty names"},
    )
    assert verdicts(answer) == {"kept.txt": "produced"} | {f"{n}.bin": "produced" for n in range(40)}
    assert len({a["sha256"] for a in answer["artifacts"]}) == 2
    blobs = [path for path in (service.data_dir / "blobs").rglob("*") if path.is_file()]
    assert len({path.stat().st_ino for path in blobs if path.stat().st_size == 61_440_000}) == 1


def test_a_hard_link_to_a_file_of_the_image_cannot_be_made(service):
    answer = service.call(
        f"import os\n{KEEPS_ITS_PROMISE}"
        "try: os.link('/etc/passwd', 'files/passwd.txt')\n"
        "except OSError as error: print(error.errno)",
        "kept.txt",
        "passwd.txt",
    )
    assert verdicts(answer) == {"kept.txt": "produced", "passwd.txt": "missing_file"}


# ---- what is no regular file


def test_pipes_sockets_and_folders_are_not_opened(service):
    answer = service.call(
        f"import os, socket\n{KEEPS_ITS_PROMISE}os.chdir('files')\n"
        "os.mkfifo('plot.png'); os.mkfifo('unpromised')\n"
        "socket.socket(socket.AF_UNIX).bind('data.csv')\n"
        "os.mkdir('report.pdf')",
        "kept.txt",
        "plot.png",
        "data.csv",
        "report.pdf",
    )
    kinds = dict.fromkeys(("plot.png", "data.csv", "report.pdf"), "artifact_not_regular_file")
    assert verdicts(answer) == {"kept.txt": "produced"} | kinds
    assert notes(answer) == "turn_1/files/unpromised (no regular file, not kept)"


# ---- names


ODD_NAMES = (
    b"new\nline.txt",
    b"return\r.txt",
    b"\x1b[31mred.txt",
    b"back\\slash.txt",
    b"bad\xff\xfebyte.txt",
    b"\x7f",
    b"sur\xed\xa0\x80rogate.txt",
    "x\u2028- turn_1\u2215forged.txt".encode(),
    "x\u2029Succeeded:".encode(),
)
PLAIN_NAMES = (
    "rtl\u202egpj.exe",
    "zero\u200bwidth.txt",
    "trailing .txt ",
    " ",
    "-rf",
    "~",
    "C:x",
    "...",
    "%2e%2e%2fx",
    "a:b'c\"d;e.txt",
    "x" * 255,
    "Produced files:",
)


def test_names_that_would_break_a_line_or_a_header_are_told_escaped_and_not_kept(service):
    answer = service.call(
        f"import os\n{KEEPS_ITS_PROMISE}for name in {ODD_NAMES!r}: open(b'files/' + name, 'w').write('x')",
        "kept.txt",
    )
    assert verdicts(answer) == {"kept.txt": "produced"}
    assert notes(answer).count("(not kept)") == len(ODD_NAMES)
    assert all(character.isprintable() for character in notes(answer))


def test_unusual_names_come_back_as_they_were_written(service):
    answer = service.call(
        f"import os\n{KEEPS_ITS_PROMISE}for name in {PLAIN_NAMES!r}: open('files/' + name, 'w').write('x')",
        "kept.txt",
    )
    assert verdicts(answer) == {"kept.txt": "produced"} | dict.fromkeys(PLAIN_NAMES, "produced")


def test_unusual_names_are_safe_in_the_headers_of_a_download(service):
    answer = service.call(
        f"for name in {PLAIN_NAMES!r}: open('files/' + name, 'w').write(name)",
        *({"filename": name, "description": "odd"} for name in PLAIN_NAMES if name.strip()),
    )
    [conversation] = {a["key"].split("/")[8] for a in answer["artifacts"] if a.get("key")}
    for name in PLAIN_NAMES:
        if not name.strip():
            continue
        path = f"/v1/conversations/{conversation}/artifacts/"
        logical = f"fi:turn_1.files/{name}"
        got = service.client.get(path + quote(logical, safe=""))
        assert (got.status_code, got.text) == (200, name)
        assert got.headers["content-disposition"].isascii()
        assert got.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("written", ["NFC", "NFD"])
def test_a_promised_name_is_found_in_either_unicode_form(service, written):
    name = "résumé.txt"
    code = f"open({unicodedata.normalize(written, name)!r}, 'w').write('found')"
    answer = service.call(code, unicodedata.normalize("NFC", name))
    assert verdicts(answer) == {unicodedata.normalize("NFC", name): "produced"}


@pytest.mark.parametrize("promised", ["name", "pattern"])
def test_a_second_unicode_form_of_a_promised_name_takes_nothing_from_it(service, promised):
    composed = "é.txt"
    entry = composed if promised == "name" else {"glob": "*.txt", "description": "one"}
    answer = service.call(
        f"open({unicodedata.normalize('NFD', composed)!r}, 'w').write('the other')\n"
        f"open({composed!r}, 'w').write('the promised')",
        entry,
    )
    assert verdicts(answer) == {composed: "produced"}
    assert answer["artifacts"][0]["sha256"] == hashlib.sha256(b"the promised").hexdigest()
    assert content(answer, composed) == "the promised"
    assert notes(answer) == "e\\u0301.txt (not kept)"


# ---- numbers and sizes


def test_a_hundred_thousand_files_are_stopped_and_told(service):
    answer = service.call(
        f"{KEEPS_ITS_PROMISE}for n in range(100_000): open(f'/out/files/{{n}}', 'w').close()",
        "kept.txt",
        ANY_FILE,
    )
    assert answer["error"]["code"] == "disk_limit"
    # The file of its own name, 200 matches and the pattern itself, one match too many, 500 that nobody promised.
    assert len(answer["artifacts"]) <= 1 + 201 + 1 + 500
    assert len(answer["report"]) < 100_000


def test_more_files_than_are_looked_at_are_told(service):
    answer = service.call(
        f"{KEEPS_ITS_PROMISE}for n in range(3000): open(f'/out/files/{{n}}', 'w').close()", "kept.txt"
    )
    assert answer["error"]["code"] == "disk_limit"
    assert verdicts(answer)["kept.txt"] == "produced"
    assert len(answer["artifacts"]) <= 501


@pytest.mark.parametrize(("folders", "name"), [(5_000, "d"), (7, "d" * 255), (40, "d" * 255)])
def test_folders_below_one_another_end_at_the_depth_that_is_looked_at(service, folders, name):
    answer = service.call(
        f"import os\n{KEEPS_ITS_PROMISE}os.chdir('files')\n"
        f"for _ in range({folders}):\n    os.mkdir({name!r}); os.chdir({name!r})\n"
        "open('bottom.txt', 'w').write('x')",
        "kept.txt",
    )
    # Seven of them are looked at; their path is longer than a path may be.
    assert (answer["error"] or {}).get("code") == (None if folders == 7 else "disk_limit")
    assert verdicts(answer) == {"kept.txt": "produced"}


@pytest.mark.slow
@pytest.mark.parametrize("wide", [False, True])
def test_paths_longer_than_the_kernel_takes_do_not_end_the_collection(tmp_path, engine, wide):
    with serving(tmp_path / "data", engine, depth=64, pool_size=1) as deep:
        answer = deep.call(
            f"import os\n{KEEPS_ITS_PROMISE}os.chdir('files')\n"
            "for _ in range(30):\n"
            f"    if {wide}: open('f' * 255, 'w').close()\n"
            "    os.mkdir('d' * 250); os.chdir('d' * 250)\n",
            "kept.txt",
        )
    assert answer["error"]["code"] == "disk_limit"
    assert verdicts(answer)["kept.txt"] == "produced"


def test_a_sparse_terabyte_is_refused(service):
    answer = service.call(f"{KEEPS_ITS_PROMISE}open('big.bin', 'wb').truncate(1 << 40)", "kept.txt", "big.bin")
    assert answer["error"]["code"] == "disk_limit"
    assert verdicts(answer)["kept.txt"] == "produced"


def test_sparse_files_that_claim_more_than_fits_are_told_and_cost_no_other_file(service):
    answer = service.call(
        f"{KEEPS_ITS_PROMISE}for n in range(9): open(f'{{n}}.bin', 'wb').truncate(90 << 20)",
        {"glob": "*.bin", "description": "claims 810 MB"},
        "kept.txt",
    )
    told = verdicts(answer)
    assert [told[f"{n}.bin"] for n in range(9)] == ["produced"] * 2 + ["artifact_too_large"] * 7
    assert told["kept.txt"] == "produced"
    assert answer["error"]["code"] == "artifact_too_large"


def test_a_file_above_the_size_of_an_artifact_is_not_transferred(service):
    answer = service.call(f"{KEEPS_ITS_PROMISE}open('big.bin', 'wb').truncate(200 << 20)", "kept.txt", "big.bin")
    assert verdicts(answer) == {"kept.txt": "produced", "big.bin": "artifact_too_large"}
    assert answer["timings_ms"]["host"] < answer["timings_ms"]["total"]


def test_one_image_under_many_names_is_in_the_answer_up_to_a_bound_and_hosted_under_each(service):
    answer = service.call(
        "import os, struct, zlib\n"
        "def chunk(kind, data):\n"
        "    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))\n"
        "pixels = zlib.compress((b'\\0' + bytes(range(10))) * 10)\n"
        "png = b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 10, 10, 8, 0, 0, 0, 0))\n"
        "png += chunk(b'IDAT', pixels) + chunk(b'prVt', bytes(6 << 20)) + chunk(b'IEND', b'')\n"
        "open('00.png', 'wb').write(png)\n"
        "for n in range(1, 30): os.link('00.png', f'{n:02}.png')",
        {"glob": "*.png", "description": "thirty names of 6 MB"},
    )
    contents = [block for block in answer["blocks"] if "digest" in block["meta"]]
    assert [artifact["verdict"] for artifact in answer["artifacts"]] == ["produced"] * 30
    assert [bool(block.get("base64")) for block in contents] == [True] * 2 + [False] * 28
    assert [bool(block["meta"]["hosted_uri"]) for block in contents] == [True] * 30


# ---- modes and times


@pytest.mark.parametrize("where", ["/out", "/out/turn_1", "/out/turn_1/files", "/out/turn_1/files/sub"])
def test_a_folder_that_is_locked_is_opened_for_the_collection(service, where):
    answer = service.call(
        "import os\nos.mkdir('files/sub')\n"
        "open('files/kept.txt', 'w').write('kept'); open('files/sub/deep.txt', 'w').write('deep')\n"
        f"open('files/extra.txt', 'w').write('x')\nos.chmod({where!r}, 0)",
        "kept.txt",
        "sub/deep.txt",
    )
    assert verdicts(answer) == dict.fromkeys(("kept.txt", "sub/deep.txt", "extra.txt"), "produced")


def test_modes_and_times_of_a_program_stay_in_the_sandbox(service):
    answer = service.call(
        "import os\n"
        "for name, mode, time in (('none.txt', 0, 0), ('setuid.txt', 0o6777, 1e9),"
        " ('early.txt', 0o644, -2177452800), ('late.txt', 0o644, 32503593600)):\n"
        "    open(name, 'w').write(name); os.utime(name, (time, time)); os.chmod(name, mode)",
        "none.txt",
        "setuid.txt",
        "early.txt",
        "late.txt",
    )
    assert set(verdicts(answer).values()) == {"produced"}
    modes = {
        oct(path.stat().st_mode & 0o7777)
        for path in (service.data_dir / "blobs").rglob("*")
        if path.is_file() and path.stat().st_size in {8, 10, 9}
    }
    assert modes == {"0o444"}


# ---- archives, and what the caller gave


@pytest.mark.slow
def test_an_archive_bomb_is_stored_as_it_is_and_never_unpacked(service):
    answer = service.call(
        "import gzip, zipfile\n"
        "with gzip.open('bomb.gz', 'wb', compresslevel=9) as f:\n"
        "    for _ in range(300): f.write(bytes(1 << 20))\n"
        "with zipfile.ZipFile('bomb.zip', 'w', zipfile.ZIP_DEFLATED) as z:\n"
        "    with z.open('big', 'w', force_zip64=True) as f:\n"
        "        for _ in range(1200): f.write(bytes(1 << 20))",
        {"filename": "bomb.zip", "description": "1.2 GB of zeros"},
        {"filename": "bomb.gz", "description": "300 MB of zeros"},
    )
    told = verdicts(answer)
    assert told["bomb.zip"] == "artifact_invalid"
    assert told["bomb.gz"] in {"produced", "artifact_invalid"}


def test_a_program_that_overwrites_its_inputs_leaves_the_stored_ones_as_they_were(service):
    body = request("pass")
    where = f"/v1/conversations/{body['conversation_id']}"
    put = service.client.put(f"{where}/turns/turn_0/attachments/data.txt", content=b"original")
    assert put.status_code in {200, 201}
    again = service.call(
        "import os\n"
        "path = 'turn_0/attachments/data.txt'\n"
        "assert open(path).read() == 'original'\n"
        "os.chmod(path, 0o644); open(path, 'w').write('changed')\n"
        "open('out.txt', 'w').write('x')",
        "out.txt",
        conversation_id=body["conversation_id"],
    )
    assert again["ok"], again["report"]
    got = service.client.get(f"{where}/artifacts/fi:turn_0.user.attachments/data.txt")
    assert (got.status_code, got.content) == (200, b"original")


def test_nothing_of_all_this_is_left_in_staging(service):
    service.call(KEEPS_ITS_PROMISE, "kept.txt")
    assert service.staged() == []
