"""Every verdict on a promised file, each produced by a real program."""

import hashlib
from typing import Any

import pytest

from proofbox.contracts.paths import FilePath
from proofbox.contracts.tool_call_response import ToolCallResponse
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

# 305 bytes that open as a PDF of one page.
SMALL_PDF = r"""
parts = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
         b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"]
pdf, offsets = b"%PDF-1.4\n", []
for number, part in enumerate(parts, 1):
    offsets.append(len(pdf))
    pdf += b"%d 0 obj\n%s\nendobj\n" % (number, part)
table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
pdf += b"xref\n0 4\n0000000000 65535 f \n%strailer<</Size 4/Root 1 0 R>>\n" % table + (
    b"startxref\n%d\n%%%%EOF\n" % len(pdf))
open("files/small.pdf", "wb").write(pdf)
"""


def verdicts(response: ToolCallResponse) -> dict[str, tuple[str, str | None]]:
    return {a.physical_path.removeprefix("turn_1/files/"): (str(a.verdict), a.message) for a in response.artifacts}


def failed(name: str, message: str) -> str:
    return f"Runtime error: none\nFile errors:\n- turn_1/files/{name}: {message}"


NOT_STORED = (
    "\nNote: 1 entry of the working directory cannot be stored (sockets, pipes, paths over 4,096 bytes, folders in "
    "whose place in files/ is a file or link)"
)
KEPT = {"empty_file", "artifact_invalid", "file_unusually_small"}

SINGLE: dict[str, tuple[str, str, str, str]] = {
    "empty": ("open('files/a.txt', 'w')", "a.txt", "empty_file", "file is empty"),
    "symlink_out_of_the_sandbox": (
        "import os; os.symlink('/etc/passwd', 'files/a.txt')",
        "a.txt",
        "artifact_symlink_blocked",
        "is a symbolic link; write a regular file",
    ),
    "symlink_to_a_file_beside_it": (
        "import os; open('/tmp/b', 'w').write('b'); os.symlink('/tmp/b', 'files/a.txt')",
        "a.txt",
        "artifact_symlink_blocked",
        "is a symbolic link; write a regular file",
    ),
    "dangling_symlink": (
        "import os; os.symlink('nowhere', 'files/a.txt')",
        "a.txt",
        "artifact_symlink_blocked",
        "is a symbolic link; write a regular file",
    ),
    "fifo": ("import os; os.mkfifo('files/a.txt')", "a.txt", "artifact_not_regular_file", "is no regular file"),
    "folder": (
        "import os; os.mkdir('files/a.txt')",
        "a.txt",
        "artifact_not_regular_file",
        "is a folder; promise the files in it with glob in place of filename: <folder>/**",
    ),
    "socket": (
        "import socket; socket.socket(socket.AF_UNIX).bind('files/a.txt')",
        "a.txt",
        "artifact_not_regular_file",
        "is no regular file",
    ),
    "behind_a_linked_folder": (
        "import os; os.symlink('/etc', 'files/sub')",
        "sub/passwd",
        "artifact_path_escape_blocked",
        "lies behind a symbolic link that leaves files/",
    ),
    "files_itself_is_a_link": (
        "import os; here = os.getcwd(); os.rmdir(here); os.symlink('/etc', here)",
        "passwd",
        "artifact_path_escape_blocked",
        "lies behind a symbolic link that leaves files/",
    ),
    "behind_a_linked_folder_inside": (
        "import os; os.mkdir('files/real'); os.symlink('real', 'files/sub'); open('/tmp/x', 'w').write('x')",
        "sub/a.txt",
        "artifact_symlink_blocked",
        "is a symbolic link; write a regular file",
    ),
    "no_pdf": (
        "open('files/a.pdf', 'w').write('hello ' * 100)",
        "a.pdf",
        "artifact_invalid",
        "is not a PDF: it starts with 'hello hello hello hello hello hello hell'",
    ),
    "unusually_small": (
        SMALL_PDF,
        "small.pdf",
        "file_unusually_small",
        "is only 305 bytes large, such a file has 500 or more",
    ),
}


@pytest.mark.parametrize(("code", "name", "verdict", "message"), SINGLE.values(), ids=SINGLE)
async def test_file_that_is_not_right_gets_its_verdict(
    call: Caller, code: str, name: str, verdict: str, message: str
) -> None:
    response = await call(code, [name])
    assert verdicts(response)[name] == (verdict, message)
    assert response.report.removesuffix(NOT_STORED) == failed(name, message)
    assert response.error is not None
    assert (response.ok, response.error.code, response.error.where) == (False, verdict, "check")
    assert response.error.message == f"turn_1/files/{name}: {message}"
    assert [block.path for block in response.blocks if block.path.startswith("fi:turn_1.files/")] == []
    stored = await call.stored(f"turn_1/files/{name}")
    assert stored is not None if verdict in KEPT else stored is None


async def test_file_that_was_not_produced_is_execution_failed(call: Caller) -> None:
    response = await call("print('nothing')", ["a.txt", "sub/b.csv"])
    missing = ("missing_file", "file not produced")
    assert verdicts(response) == {"a.txt": missing, "sub/b.csv": missing}
    assert response.report == (
        "Runtime error: execution_failed — Missing output files: turn_1/files/a.txt, turn_1/files/sub/b.csv\n"
        "File errors:\n"
        "- turn_1/files/a.txt: file not produced\n"
        "- turn_1/files/sub/b.csv: file not produced\n"
        "Hint: a.txt was not written; write it to files/a.txt\n"
        "Program log (tail):\n"
        "nothing"
    )


async def test_file_of_an_earlier_call_that_did_not_change_is_stale(call: Caller) -> None:
    assert (await call("open('files/a.txt', 'w').write('one')", ["a.txt"])).ok
    response = await call("print(open('files/a.txt').read())", ["a.txt"])
    message = "file was there before the run and did not change"
    assert verdicts(response) == {"a.txt": ("stale_file", message)}
    assert response.report == failed("a.txt", message) + "\nProgram log (tail):\none"


async def test_file_whose_size_and_time_were_restored_is_produced_with_its_new_bytes(call: Caller) -> None:
    assert (await call("open('files/a.txt', 'w').write('one')", ["a.txt"])).ok
    code = "import os; st = os.stat('files/a.txt'); open('files/a.txt', 'w').write('two')\n"
    code += "os.utime('files/a.txt', ns=(st.st_atime_ns, st.st_mtime_ns))"
    response = await call(code, ["a.txt"])
    assert (verdicts(response), await call.text("a.txt")) == ({"a.txt": ("produced", None)}, "two")


async def test_file_written_anew_with_the_same_bytes_is_produced(call: Caller) -> None:
    first = await call("open('files/a.txt', 'w').write('one')", ["a.txt"])
    second = await call("open('files/a.txt', 'w').write('one')", ["a.txt"])
    assert (first.ok, second.ok) == (True, True)


async def test_file_above_the_artifact_limit_is_too_large_and_stays_inside(call: Caller) -> None:
    code = "for n in (1000, 1001): open(f'files/{n}.bin', 'wb').write(bytes(n))"
    response = await call(code, ["1000.bin", "1001.bin"], limits={"artifact_bytes": 1000})
    assert verdicts(response) == {
        "1000.bin": ("produced", None),
        "1001.bin": ("artifact_too_large", "is 1001 bytes large, 1000 are allowed"),
    }
    assert (await call.stored("turn_1/files/1000.bin"), await call.stored("turn_1/files/1001.bin")) == (
        bytes(1000),
        None,
    )


async def test_two_names_of_one_file_are_both_produced(call: Caller) -> None:
    code = "import os; open('files/a.txt', 'w').write('one'); os.link('files/a.txt', 'files/b.txt')"
    response = await call(code, ["a.txt", "b.txt"])
    assert (response.ok, await call.text("a.txt"), await call.text("b.txt")) == (True, "one", "one")


async def test_file_that_its_owner_may_not_read_is_produced_all_the_same(call: Caller) -> None:
    code = "import os; open('files/a.txt', 'w').write('one'); os.chmod('files/a.txt', 0); os.chmod('files', 0)"
    response = await call(code, ["a.txt"])
    assert (response.report, await call.text("a.txt")) == (
        "Runtime error: none\nProduced files:\n- turn_1/files/a.txt",
        "one",
    )


def charts(count: int) -> str:
    return (
        "import os; os.mkdir('files/charts')\n"
        f"for n in range({count}): open(f'files/charts/{{n}}.csv', 'w').write('a\\n1\\n')"
    )


@pytest.mark.parametrize(
    ("count", "bounds", "ok", "verdict", "message"),
    [
        (2, {"min_count": 2, "max_count": 2}, True, None, None),
        (0, {"min_count": 0}, True, None, None),
        (0, {}, False, "missing_file", "file not produced: 0 match, at least 1 were promised"),
        (2, {"min_count": 3}, False, "missing_file", "file not produced: 2 match, at least 3 were promised"),
        (
            4,
            {"max_count": 2},
            False,
            "artifact_invalid",
            "more files match than the 2 that were promised at most",
        ),
    ],
)
async def test_pattern_is_kept_by_as_many_files_as_it_promises(
    call: Caller, count: int, bounds: dict[str, int], ok: bool, verdict: str | None, message: str | None
) -> None:
    response = await call(charts(count), [{"glob": "charts/*.csv", "description": "charts", **bounds}])
    judged = verdicts(response)
    assert (response.ok, judged.pop("charts/*.csv", (None, None))) == (ok, (verdict, message))
    assert len(judged) == count  # those that are too many, too
    kept = min(count, bounds.get("max_count", count))
    assert list(judged.values())[:kept] == [("produced", None)] * kept
    assert set(judged.values()) <= {("produced", None), ("produced", "not in the contract")}


async def test_files_beyond_the_bound_of_a_pattern_are_listed_and_there_in_the_next_call(call: Caller) -> None:
    pattern = {"glob": "charts/*.csv", "description": "charts", "max_count": 2}
    response = await call(charts(60), [pattern])
    names = sorted(f"charts/{n}.csv" for n in range(60))
    beyond = {f"turn_1/files/{name}" for name in names[2:]}
    assert {a.physical_path for a in response.artifacts if a.message == "not in the contract"} == beyond
    assert {a.visibility for a in response.artifacts if a.physical_path in beyond} == {"internal"}
    [listed] = [line for line in response.report.splitlines() if line.startswith("Not in the contract: ")]
    assert (listed.count("turn_1/files/charts/"), listed.endswith(" and 8 more")) == (50, True)
    again = await call("import glob; print(len(glob.glob('files/charts/*.csv')))")
    assert (again.ok, await call.output()) == (True, "60\n")


async def test_match_beyond_the_bound_that_another_entry_names_is_promised_by_it(call: Caller) -> None:
    pattern = {"glob": "charts/*.csv", "description": "charts", "max_count": 1}
    response = await call(charts(3), [pattern, "charts/2.csv"])
    found = {(a.physical_path[-5:], str(a.verdict), a.message) for a in response.artifacts}
    assert found == {
        ("0.csv", "produced", None),
        ("*.csv", "artifact_invalid", "more files match than the 1 that were promised at most"),
        ("2.csv", "produced", None),
        ("1.csv", "produced", "not in the contract"),
    }
    assert response.report.endswith("\nNot in the contract: turn_1/files/charts/1.csv")


async def test_each_match_of_a_pattern_is_judged_by_itself(call: Caller) -> None:
    code = charts(2) + "\nopen('files/charts/0.csv', 'w')"
    response = await call(code, [{"glob": "**/*.csv", "description": "charts"}])
    assert verdicts(response) == {
        "charts/0.csv": ("empty_file", "file is empty"),
        "charts/1.csv": ("produced", None),
    }


async def test_file_that_two_entries_promise_is_one_version_with_one_pair_of_blocks(call: Caller) -> None:
    pattern = {"glob": "*.txt", "description": "texts", "visibility": "internal"}
    named = {"filename": "a.txt", "description": "the text", "min_bytes": 9}
    response = await call("open('files/a.txt', 'w').write('x')", [pattern, named, {**named, "filename": "b.txt"}])
    assert [(a.physical_path, str(a.verdict), a.visibility) for a in response.artifacts] == [
        ("turn_1/files/a.txt", "produced", "internal"),
        ("turn_1/files/a.txt", "artifact_invalid", "internal"),
        ("turn_1/files/b.txt", "missing_file", "external"),
    ]
    again = await call("open('files/a.txt', 'w').write('x' * 9)", [pattern, named])
    assert again.report == "Runtime error: none\nProduced files:\n- turn_1/files/a.txt"
    assert [block.path for block in again.blocks][-2:] == [
        f"tc:turn_1.{call.last_id}.result",
        "fi:turn_1.files/a.txt",
    ]
    assert len(again.blocks) == 5
    assert [(a.visibility, a.hosted_uri) for a in again.artifacts] == [("internal", None)] * 2
    path = FilePath.from_physical("turn_1/files/a.txt")
    stored = await call.service.artifacts.latest(call.scope, path)
    assert stored is not None
    assert (stored.version, stored.description) == (2, "texts")


LEFT = "import os, shutil; T = os.environ['TURN_ID']; "
REARRANGED: dict[str, tuple[str, dict[str, str]]] = {
    "turn_folder_is_gone": ("shutil.rmtree('/out/' + T)", {"a.txt": "missing_file"}),
    "bare_after_turn_folder_is_gone": (
        "shutil.rmtree('/out/' + T); open('/out/a.txt', 'w').write('x')",
        {"a.txt": "produced"},
    ),
    "out_dir_is_locked": ("open('files/a.txt', 'w').write('x'); os.chmod('.', 0)", {"a.txt": "produced"}),
    "turn_folder_has_another_name": (
        "open('files/a.txt', 'w').write('x'); os.rename('/out/' + T, '/out/turn_9')",
        {"a.txt": "missing_file"},
    ),
    "turn_folder_is_a_file": (
        "shutil.rmtree('/out/' + T); open('/out/' + T, 'w').write('x')",
        {"a.txt": "missing_file", "turn_1": "produced"},
    ),
    "turn_folder_is_a_link": (
        "shutil.rmtree('/out/' + T); os.symlink('/etc', '/out/' + T)",
        {"a.txt": "artifact_path_escape_blocked"},
    ),
}


@pytest.mark.parametrize(("code", "expected"), REARRANGED.values(), ids=REARRANGED)
async def test_program_that_rearranges_the_folders_is_judged_by_what_lies_there(
    call: Caller, code: str, expected: dict[str, str]
) -> None:
    response = await call(LEFT + code, ["a.txt"])
    assert {name: verdict for name, (verdict, _) in verdicts(response).items()} == expected


async def test_name_written_in_another_unicode_form_is_the_promised_file(call: Caller) -> None:
    response = await call("open('files/cafe\u0301.txt', 'w').write('x')", ["caf\u00e9.txt"])
    assert verdicts(response) == {"caf\u00e9.txt": ("produced", None)}


CHECKED = """
import json
from PIL import Image
from pypdf import PdfWriter
open("files/t.csv", "w").write("month,sales\\nMay,1\\nJune,2\\n")
json.dump({"total": 3}, open("files/t.json", "w"))
Image.new("RGB", (40, 30), "white").save("files/white.png")
pdf = PdfWriter()
pdf.add_metadata({"/Subject": "x" * 500})
pdf.add_blank_page(100, 100)
pdf.write("files/one.pdf")
pdf.encrypt("a word", algorithm="RC4-128")
pdf.write("files/locked.pdf")
"""
CHECKS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("t.csv", {"min_rows": 2}, {"min_rows": 3}),
    ("t.csv", {"columns": ["sales", "month"]}, {"columns": ["sales", "year"]}),
    ("t.csv", {"mime": "text/csv"}, {"encoding": "utf-16"}),
    ("t.csv", {"min_bytes": 25, "max_bytes": 25}, {"max_bytes": 24}),
    ("t.csv", {"not_blank": True}, {"min_bytes": 26}),
    ("t.json", {"json_schema": {"required": ["total"]}}, {"json_schema": {"required": ["sum"]}}),
    ("white.png", {"min_width": 40, "min_height": 30}, {"min_width": 41}),
    ("white.png", {"mime": "image/png"}, {"not_blank": True}),
    ("t.csv", {"encoding": "UTF-8"}, {"encoding": "utf-32"}),
    ("locked.pdf", {"password": "a word"}, {"password": "another"}),
    ("one.pdf", {}, {"password": "a word"}),
    ("one.pdf", {"min_pages": 1, "max_pages": 1}, {"min_pages": 2}),
]


async def test_checks_of_the_contract_hold_for_what_was_promised(call: Caller) -> None:
    kept: dict[str, dict[str, Any]] = {}
    for name, holds, _ in CHECKS:
        kept.setdefault(name, {}).update(holds)
    contract = [{"filename": name, "description": "d", **checks} for name, checks in kept.items()]
    response = await call(CHECKED, contract)
    assert response.report == "Runtime error: none\nProduced files:\n" + "\n".join(
        f"- turn_1/files/{name}" for name in kept
    )
    shown = {block.path.rpartition("/")[2]: block.base64 is not None for block in response.blocks}
    assert (shown["one.pdf"], shown["locked.pdf"]) == (True, False)


@pytest.mark.parametrize(("name", "check"), [(name, fails) for name, _, fails in CHECKS])
async def test_check_that_fails_makes_the_file_invalid(call: Caller, name: str, check: dict[str, Any]) -> None:
    response = await call(CHECKED, [{"filename": name, "description": "d", **check}])
    verdict, message = verdicts(response)[name]
    assert verdict == "artifact_invalid"
    assert response.report.startswith(failed(name, message or "?"))
    # It is kept for the next call, and nobody else is given it.
    [artifact] = [a for a in response.artifacts if a.physical_path.endswith(name)]
    content = await call.stored(artifact.physical_path)
    assert content is not None
    assert (artifact.visibility, artifact.size_bytes, artifact.hosted_uri) == ("internal", len(content), None)
    assert artifact.sha256 == hashlib.sha256(content).hexdigest()
    assert "a word" not in response.report


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("open('files/bad.json', 'w').write('{'); raise SystemExit(3)", "nonzero_exit"),
        ("open('files/bad.json', 'w').write('{')", "execution_failed"),
        ("open('files/bad.json', 'w').write('{'); open('files/a.txt', 'w').write('a')", "artifact_invalid"),
    ],
)
async def test_worst_failure_names_the_error(call: Caller, code: str, error: str) -> None:
    response = await call(code, ["bad.json", "a.txt"])
    assert response.error is not None
    assert response.error.code == error
    assert verdicts(response)["bad.json"][0] == "artifact_invalid"


async def test_file_that_fails_its_check_is_read_and_repaired_in_the_next_calls(call: Caller) -> None:
    entry = {"filename": "x.json", "description": "the numbers", "json_schema": {"required": ["b"]}}
    first = await call("open('files/x.json', 'w').write('{\\n  \"a\": 1,\\n}\\n')", [entry])
    assert verdicts(first)["x.json"][0] == "artifact_invalid"
    read = await call.tool("react.read", {"paths": ["fi:turn_1.files/x.json"]})
    assert '{\n  "a": 1,\n}\n' in [block.text for block in read.blocks]
    diff = '--- a/x.json\n+++ b/x.json\n@@ -1,3 +1,3 @@\n {\n-  "a": 1,\n+  "a": 1, "b": 2\n }\n'
    patched = await call.tool(
        "react.patch", {"path": "x.json", "channel": "internal", "patch": diff, "kind": "file"}
    )
    assert patched.ok, patched.report
    again = await call("text = open('files/x.json').read(); open('files/x.json', 'w').write(text)", [entry])
    assert (again.report, await call.text("x.json")) == (
        "Runtime error: none\nProduced files:\n- turn_1/files/x.json",
        '{\n  "a": 1, "b": 2\n}\n',
    )


async def test_pdf_that_does_not_open_is_kept_as_bytes_that_no_block_shows(call: Caller) -> None:
    await call("open('files/a.pdf', 'w').write('junk ' * 200)", ["a.pdf"])
    read = await call.tool("react.read", {"paths": ["fi:turn_1.files/a.pdf"]})
    assert {(block.mime, block.base64) for block in read.blocks if block.path.startswith("fi:")} == {
        ("application/octet-stream", None)
    }


async def test_files_that_fail_take_no_room_from_good_ones(call: Caller) -> None:
    """Files with holes claim more bytes than OUT_DIR holds."""
    code = (
        "import os\n"
        "for name in ('bad.json', 'good.bin'): open(f'files/{name}', 'wb').truncate(3_000_000)\n"
        "open('files/small.json', 'w').write('{')"
    )
    limits = {"out_dir_bytes": 4_000_000}
    response = await call(code, ["bad.json", "good.bin", "small.json"], limits=limits)
    kept = {a.physical_path[13:]: (str(a.verdict), a.sha256 is not None) for a in response.artifacts}
    assert kept == {
        "bad.json": ("artifact_invalid", False),
        "good.bin": ("produced", True),
        "small.json": ("artifact_invalid", True),
    }


JUNK = "a.py a.yaml a.toml a.ipynb a.gz a.npz a.mp4 a.epub a.odt a.rtf a.doc a.db a.ttf a.mp3 a.wav a.ics".split()  # noqa: SIM905


async def test_junk_is_invalid_whatever_the_image_can_open(call: Caller) -> None:
    code = f"for name in {JUNK}: open('files/' + name, 'w').write('{{ this is: junk [' * 20)"
    response = await call(code, JUNK)
    assert {name: verdict for name, (verdict, _) in verdicts(response).items()} == dict.fromkeys(
        JUNK, "artifact_invalid"
    )
    assert [name for name, (_, message) in verdicts(response).items() if "no reader" in (message or "")] == []


MADE = """
import bz2, gzip, json, lzma, sqlite3, wave, zipfile
import numpy as np
open("files/a.py", "w").write("print('x')\\n")
open("files/a.yaml", "w").write("a: [1, 2]\\n")
open("files/a.toml", "w").write("a = 1\\n")
json.dump({"nbformat": 4, "cells": []}, open("files/a.ipynb", "w"))
open("files/tsconfig.json", "w").write('{ // tsc --init\\n "compilerOptions": {"strict": true,} }')
for name, pack in {"gz": gzip, "bz2": bz2, "xz": lzma}.items():
    with pack.open(f"files/a.{name}", "wb") as file: file.write(b"x" * 9)
np.save("files/a.npy", np.arange(9)); np.savez("files/a.npz", x=np.arange(9))
base = sqlite3.connect("files/a.db"); base.execute("CREATE TABLE a (x)"); base.commit(); base.close()
with wave.open("files/a.wav", "wb") as file:
    file.setparams((1, 2, 8000, 0, "NONE", "")); file.writeframes(b"xx" * 99)
with zipfile.ZipFile("files/a.odt", "w") as file:
    file.writestr("mimetype", "application/vnd.oasis.opendocument.text")
    office = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
    file.writestr("content.xml", f'<o:document-content xmlns:o="{office}"><o:body/></o:document-content>')
open("files/a.csv", "w", encoding="cp1251").write("имя;число\\nмы;1\\n")
"""


async def test_good_files_of_formats_that_the_image_opens_are_produced(call: Caller) -> None:
    names = "a.py a.yaml a.toml a.ipynb tsconfig.json a.gz a.bz2 a.xz a.npy a.npz a.db a.wav a.odt".split()  # noqa: SIM905
    table = {"filename": "a.csv", "description": "d", "columns": ["имя"], "min_rows": 1}
    response = await call(MADE, [*names, table])
    assert set(verdicts(response).values()) == {("produced", None)}, response.report
