"""KDCube's ReAct runtime on the service: its calls, and its timeline beside that of the service."""

import base64
import json
from collections import Counter

import pytest

from proofbox.adapters.kdcube import Names, ProofboxTools
from proofbox.client import Client
from tests.adapters.kdcube_runtime import Runtime

EXEC = "exec_tools.execute_code_python"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC"
)


@pytest.fixture
async def runtime(service_url, tmp_path, request):
    """A runtime of a user of its own."""
    tools = ProofboxTools(service_url)
    yield Runtime(tmp_path, tools, user=request.node.name)
    await tools.close()


@pytest.fixture
def difference(service_url):
    """What each of the two timelines has more of a call: ``(only the runtime's, only the service's)``."""

    def compare(blocks):
        call_ids = {block["path"].split(".")[1] for block in blocks if block["path"].startswith("tc:")}
        with Client(service_url) as client:
            conversations = [each.conversation_id for each in client.conversations()]
            here = [block for each in conversations for block in client.timeline(each) if block.call_id in call_ids]
        ours = Counter((block.type, Names.to_runtime(block.path), block.mime) for block in here)
        theirs = Counter((block["type"], block["path"], block["mime"]) for block in blocks)
        return sorted((theirs - ours).elements()), sorted((ours - theirs).elements())

    return compare


def promise(*names):
    return {"contract": [{"filename": name, "description": f"the {name}"} for name in names], "prog_name": "p.py"}


async def test_exec_of_three_files_gives_items_files_and_the_same_blocks(runtime, difference):
    code = (
        "import os\nfrom PIL import Image\nbase = os.path.join(OUTPUT_DIR, 'turn_1', 'files')\n"
        "Image.new('RGB', (40, 40), 'red').save(os.path.join(base, 'a.png'))\n"
        "open(f'{base}/b.md', 'w').write('# one\\n')\nopen('turn_1/files/c.yaml', 'w').write('a: 1\\n')\n"
    )
    names = [f"turn_1/files/{name}" for name in ("a.png", "b.md", "c.yaml")]
    blocks = await runtime.call("call_three", EXEC, promise(*names), code)
    assert difference(blocks) == ([], [])
    assert len(blocks) == 9
    assert (runtime.answer["status"], runtime.answer["error"], runtime.statuses) == (
        "success",
        None,
        [("done", None)],
    )
    assert [item["artifact_id"] for item in runtime.answer["items"]] == ["a", "b", "c"]
    assert [item["filepath"] for item in runtime.answer["items"]] == names
    assert runtime.answer["items"][2]["output"] == {
        "type": "file",
        "path": "turn_1/files/c.yaml",
        "filename": "c.yaml",
        "text": "a: 1\n",
        "mime": "application/yaml",
        "visibility": "external",
        "size_bytes": 5,
        "description": "the turn_1/files/c.yaml",
    }
    assert runtime.hosted["turn_1/files/b.md"] == b"# one\n"


async def test_exec_with_a_missing_file_and_an_exception_has_what_was_produced(runtime, difference):
    code = "open('files/there.txt', 'w').write('x')\nraise ValueError('no table')"
    blocks = await runtime.call("call_fails", EXEC, promise("there.txt", "report.xlsx"), code)
    notice = ("react.notice", "tc:turn_1.call_fails.notice", "application/json")
    assert difference(blocks) == ([notice] * 3, [])
    assert [item["filepath"] for item in runtime.answer["items"]] == ["turn_1/files/there.txt"]
    assert runtime.answer["error"]["code"] == "nonzero_exit"
    assert "ValueError: no table" in runtime.answer["report_text"]
    assert "- turn_1/files/report.xlsx: file not produced" in runtime.answer["report_text"]
    assert runtime.statuses == [("error", "nonzero_exit")]


async def test_a_pdf_has_the_runtimes_own_picture_and_sources_and_names_what_is_missing(runtime, difference):
    runtime.host("turn_0/files/chart.png", PNG)
    runtime.host("turn_0/attachments/logo.png", PNG)
    web = {"title": "The paper", "url": "https://e.org/a", "content": "long", "published_at": "2026", "score": 0.5}
    runtime.pool += [{"sid": 3, **web}, {"sid": "none"}]
    content = (
        "![a](turn_0/files/chart.png) ![b](turn_0/attachments/logo.png) ![c](turn_0/files/gone.png)\n\n"
        "said [[S:3]] and [[S:77]]\n"
    )
    params = {"path": "turn_1/files/r.pdf", "content": content, "format": "markdown", "title": "T"}
    blocks = await runtime.call("call_pdf", "rendering_tools.write_pdf", params)
    assert difference(blocks) == ([], [("react.tool.result", "tc:turn_1.call_pdf.result", "text/markdown")])
    assert (runtime.answer["error"], runtime.answer["output"]) == (None, None)
    notices = [json.loads(block["text"]) for block in blocks if block["type"] == "react.notice"]
    assert [notice.get("missing_sids") or notice["missing"] for notice in notices] == [
        [77],
        ["turn_0/files/gone.png"],
    ]
    pdf = runtime.hosted["turn_1/files/r.pdf"]
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Subtype /Image") + pdf.count(b"/Subtype/Image") >= 1
    warnings = runtime.answer["summary"].splitlines()[1:]
    assert [warning.split(":")[0] for warning in warnings] == ["- unresolved_citation", "- missing_asset"]
    assert "not in the pool: 77" in warnings[0]
    assert "turn_0/files/gone.png" in warnings[1]


async def test_a_deck_is_saved_for_the_runtimes_own_hosting(runtime, difference):
    params = {"path": "deck.pptx", "content": "# One\n\n- a\n\n# Two\n\n- b\n", "format": "markdown"}
    blocks = await runtime.call("call_deck", "rendering_tools.write_pptx", params)
    notice = ("react.notice", "tc:turn_1.call_deck.notice", "application/json")
    assert difference(blocks)[0] == [notice]
    assert runtime.hosted["turn_1/files/deck.pptx"].startswith(b"PK")
    assert (runtime.answer["summary"], runtime.answer["items"][0]["filepath"]) == ("", "turn_1/files/deck.pptx")


@pytest.mark.parametrize(
    ("first", "second", "form"),
    [
        ("turn_1", "turn_2", {}),
        ("turn_2026-07-04-13-18", "turn_2026-07-04-13-19", {}),
        ("telegram_turn_17", "telegram_turn_18", {"home": "outputs", "prefix": "conv:", "below": "artifacts"}),
    ],
)
async def test_a_second_turn_reads_what_the_first_wrote(service_url, tmp_path, first, second, form):
    tools = ProofboxTools(service_url, artifact_outdir=lambda outdir: outdir / form.get("below", ""))
    runtime = Runtime(tmp_path, tools, user=f"second {first}", **form)
    home, prefix = form.get("home", "files"), form.get("prefix", "")
    runtime.begin(first)
    runtime.host(f"{first}/attachments/in.csv", b"n\n4\n5\n")
    code = (
        "from pathlib import Path\n"
        f"rows = Path(OUTPUT_DIR, '{first}', 'attachments', 'in.csv').read_text().split()[1:]\n"
        f"open('{first}/{home}/sum.txt', 'w').write(str(sum(map(int, rows))))\nprint('{first}/{home}/sum.txt')"
    )
    runtime.put(f"{first}/attachments/in.csv")
    await runtime.call(f"one-{second}", EXEC, promise(f"{first}/{home}/sum.txt"), code)
    assert (runtime.answer["error"], runtime.hosted[f"{first}/{home}/sum.txt"]) == (None, b"9")
    assert f"\n{first}/{home}/sum.txt" in runtime.answer["report_text"]

    runtime.begin(second)
    runtime.hosted[f"{first}/{home}/sum.txt"] = b"90"  # the runtime's copy is what counts
    code = f"import os\nread = open(os.path.join(OUTPUT_DIR, '{first}/{home}/sum.txt')).read()\nprint(read)\n"
    code += f"open(f'{second}/{home}/twice.txt', 'w').write(str(2 * int(read)))"
    runtime.put(f"{first}/{home}/sum.txt")
    await runtime.call(f"two-{second}", EXEC, promise(f"{second}/{home}/twice.txt"), code)
    assert (runtime.answer["error"], runtime.hosted[f"{second}/{home}/twice.txt"]) == (None, b"180")

    runtime.host(f"{first}/{home}/p.png", PNG)
    runtime.put(f"{first}/{home}/p.png")
    content = f"![x]({prefix}fi:{first}.{home}/p.png)\n\n![y]({first}/{home}/none.png)"
    params = {"path": f"{second}/{home}/r.pdf", "content": content, "format": "markdown"}
    await runtime.call(f"three-{second}", "rendering_tools.write_pdf", params)
    assert runtime.hosted[f"{second}/{home}/r.pdf"].startswith(b"%PDF")
    [missing] = [line for line in runtime.answer["summary"].splitlines() if "missing_asset" in line]
    assert f" {first}/{home}/none.png " in missing
    await tools.close()


async def test_a_missing_path_runs_nothing_also_if_only_the_service_notices_it(runtime, difference):
    blocks = await runtime.call("call_gone", EXEC, promise("turn_1/files/a.txt"), "open('turn_0/files/gone.csv')")
    assert [block["type"] for block in blocks] == ["react.tool.code", "react.notice", "react.tool.result"]
    assert runtime.answer is None

    code = "open('turn_0-b/files/gone.csv')"  # an id that the runtime's own search does not know
    blocks = await runtime.call("call_gone_too", EXEC, promise("turn_1/files/a.txt"), code)
    notice = ("react.notice", "tc:turn_1.call_gone_too.notice", "application/json")
    assert difference(blocks) == ([], [notice])
    assert (runtime.answer["items"], runtime.answer["error"]["code"]) == ([], "pre_exec_missing_paths")
    assert "turn_0-b/files/gone.csv" in runtime.answer["report_text"]


async def test_files_beyond_the_bound_are_not_handed_over_and_named(service_url, tmp_path):
    tools = ProofboxTools(service_url, asset_bytes_max=10)
    runtime = Runtime(tmp_path, tools, user="bounded")
    for name, size in (("report-1.txt", 11), ("report-2.txt", 6), ("more.txt", 5)):
        runtime.host(f"turn_0/files/{name}", b"x" * size)
    code = "print(len(open('turn_0/files/report-2.txt').read()))\nopen('turn_0/files/report-1.txt')"
    await runtime.call("call_big", EXEC, promise("turn_1/files/a.txt"), code)
    assert runtime.answer["error"]["code"] == "pre_exec_missing_paths"
    assert "report-1.txt" in runtime.answer["report_text"]
    assert "Hint: the conversation has turn_1/files/report-2.txt" in runtime.answer["report_text"]
    assert runtime.log == [("WARNING", "more than 10 bytes; not handed over: ['turn_0/files/report-1.txt']")]
    await tools.close()


async def test_two_users_with_one_conversation_id_share_no_files(service_url, tmp_path):
    tools = ProofboxTools(service_url)
    ann, bob = (Runtime(tmp_path / user, tools, user=user) for user in ("ann", "bob"))
    await ann.call("call_same", EXEC, promise("turn_1/files/a.txt"), "open('turn_1/files/a.txt','w').write('ann')")
    code = "import os\nopen('turn_1/files/b.txt','w').write(str(os.path.exists('turn_1/files/a.txt')))"
    await bob.call("call_same", EXEC, promise("turn_1/files/b.txt"), code)
    assert bob.hosted == {"turn_1/files/b.txt": b"False"}
    await tools.close()


async def test_other_tools_are_the_runtimes_own(tmp_path):
    async def own(**given):
        return {"tool": given["tool_execution_context"]["tool_id"], "items": [], "error": None}

    runtime = Runtime(tmp_path, ProofboxTools(otherwise=own))
    answer = await runtime._execute("c", "web_tools.web_search", {}, None, "")
    assert answer == {"tool": "web_tools.web_search", "items": [], "error": None}
    with pytest.raises(ValueError, match=r"web_tools\.web_search is no tool of the service"):
        await Runtime(tmp_path / "b", ProofboxTools())._execute("c", "web_tools.web_search", {}, None, "")


async def test_a_service_that_does_not_answer_is_an_error_of_the_answer(tmp_path):
    runtime = Runtime(tmp_path, ProofboxTools("http://127.0.0.1:9"))
    await runtime.call("call_lost", EXEC, promise("turn_1/files/a.txt"), "print(1)")
    assert (runtime.answer["status"], runtime.answer["items"]) == ("error", [])
    assert runtime.answer["report_text"].startswith("Runtime error: service_failed — ")
    assert runtime.statuses == [("error", "service_failed")]
