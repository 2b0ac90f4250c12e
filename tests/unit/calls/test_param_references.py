"""Parameters given by reference: which texts are references, and what they lead to."""

import base64

import pytest

from proofbox.contracts.artifacts import ContractError
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.calls.param_references import TEXT_BYTES_MAX, References, find_reference
from tests.support.conversations import (
    BOB,
    PNG,
    SCOPE,
    block,
    call_block,
    meta_block,
    opened_conversation,
    sha256,
)

LONG = "x" * 2_049


@pytest.fixture
async def conversation(tmp_path):
    async with opened_conversation(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("fi:turn_1.files/rep.md", "fi:turn_1.files/rep.md"),
        (" \nfi:turn_1.files/my report (2).md\n", "fi:turn_1.files/my report (2).md"),
        ("ref:fi:turn_1.files/rep.md", "fi:turn_1.files/rep.md"),
        ("ref: fi:turn_1.files/rep.md", "fi:turn_1.files/rep.md"),
        ("fi:turn_1.user.attachments/a.txt", "fi:turn_1.user.attachments/a.txt"),
        ("fi:turn_1.code.c1", "fi:turn_1.code.c1"),
        ("ar:turn_1.assistant.completion", "ar:turn_1.assistant.completion"),
        ("turn_1/files/rep.md", "turn_1/files/rep.md"),
        ("ref:turn_1/attachments/a.txt", "turn_1/attachments/a.txt"),
        ("fi:turn_1/files/wrong-form.md", "fi:turn_1/files/wrong-form.md"),
        *(
            (text, text.removeprefix("ref:").strip())
            for text in (
                "ref:files/rep.md",
                "ref:rep.md",
                "ref: rep.md",
                "ref:/mnt/data/rep.md",
                "ref:./rep.md",
                "/mnt/data/rep.md",
                "sandbox:/mnt/data/rep.md",
                "/mnt/user-data/uploads/rep.md",
                "/out/files/rep.md",
                "/out/turn_1/files/rep.md\n",
                "./turn_1/files/rep.md",
                "/out/turn_1/files/my rep.md",
            )
        ),
        ("/mnt/data/rep.md is the report", None),
        ("/mnt/data/rep.md\n/mnt/data/b.md", None),
        ("ref: rep.md\nsee: below", None),
        ("ref:\nrep.md", None),
        ("/etc/passwd", None),
        ("sandbox: yes", None),
        ("", None),
        ("# Report", None),
        ("See fi:turn_1.files/rep.md", None),
        ("fi:turn_1.files/rep.md\nand more", None),
        ("fi: an abbreviation", None),
        ("ref: see below", None),
        ("rep.md", None),
        ("files/rep.md", None),
        ("turn_1/other/rep.md", None),
        ("fi:turn_1.files/" + LONG, None),
    ],
)
def test_a_content_is_a_reference_if_it_is_one_path_and_nothing_else(text, path):
    found = find_reference("content", text)
    assert (found.path if found else None) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("fi:turn_1.files/script.py", "fi:turn_1.files/script.py"),
        ("ref:fi:turn_1.code.c1\n", "fi:turn_1.code.c1"),
        ("ref:turn_1/files/script.py", "turn_1/files/script.py"),
        ("ref:script.py", "script.py"),
        ("ref: files/script.py", "files/script.py"),
        ("/mnt/data/script.py", "/mnt/data/script.py"),
        ("sandbox:/mnt/data/script.py\n", "sandbox:/mnt/data/script.py"),
        ("/out/turn_1/files/script.py", "/out/turn_1/files/script.py"),
        ("./turn_1/files/script.sh", "./turn_1/files/script.sh"),
        ("./turn_1/files/script.sh --all", None),
        ("/mnt/data/script.sh --all", None),
        ("turn_1/files/script.sh", None),
        ("print('fi:turn_1.files/a')", None),
    ],
)
def test_a_program_is_a_reference_by_a_logical_path_and_by_a_physical_one_only_with_ref(text, path):
    found = find_reference("code", text)
    assert (found.path if found else None) == path


async def resolved(conversation, path, **fields):
    request = ToolCallRequest.model_validate(
        {
            "tool_id": "t",
            "tool_call_id": "c",
            "conversation_id": "conv-1",
            "turn_id": "turn_9",
            "params": {},
            **fields,
        }
    )
    return await References(conversation.files).resolve(
        conversation.scope, request, find_reference("content", path)
    )


@pytest.mark.parametrize("text", ["# Grüße\r\n", "\ufeffa", " \n"])
async def test_a_stored_file_is_read_byte_for_byte_and_recorded_with_its_version(conversation, text):
    await conversation.save("turn_1/files/a.md", b"old")
    await conversation.save("turn_1/files/a.md", text.encode())
    found, used = await resolved(conversation, "turn_1/files/a.md")
    assert (found, used.param, used.path, used.version) == (text, "content", "fi:turn_1.files/a.md", 2)
    assert (used.sha256, used.size_bytes) == (sha256(text.encode()), len(text.encode()))


async def test_attachments_internal_files_and_files_of_the_current_turn_are_found(conversation):
    await conversation.attach("turn_1", "in.txt", b"attached")
    await conversation.save("turn_2/files/note.md", b"internal", visibility="internal")
    await conversation.save("turn_9/files/own.md", b"own")
    for path, text in (
        ("fi:turn_1.user.attachments/in.txt", "attached"),
        ("fi:turn_2.files/note.md", "internal"),
        ("fi:turn_9.files/own.md", "own"),
    ):
        assert (await resolved(conversation, path))[0] == text


@pytest.mark.parametrize(
    "path",
    [
        "ref:files/rep.md",
        "ref:rep.md",
        "ref:/mnt/data/rep.md",
        "ref:`rep.md`",
        "/mnt/data/rep.md",
        "sandbox:/mnt/data/rep.md",
        "/out/turn_9/files/rep.md",
        "./turn_9/files/rep.md",
        "/mnt/data/turn_9/files/rep.md",
    ],
)
async def test_a_path_in_the_spelling_of_another_sandbox_leads_to_the_file(conversation, path):
    await conversation.save("turn_1/files/rep.md", b"earlier")
    await conversation.save("turn_9/files/rep.md", b"own")
    found, used = await resolved(conversation, path)
    assert (found, used.path, used.version) == ("own", "fi:turn_9.files/rep.md", 1)
    if "turn_9" in path:
        assert (await resolved(conversation, path.replace("turn_9", "turn_1")))[0] == "earlier"


@pytest.mark.parametrize("path", ["ref:in.txt", "/mnt/user-data/uploads/in.txt", "/mnt/data/in.txt"])
async def test_a_bare_path_by_reference_may_be_an_attachment(conversation, path):
    await conversation.attach("turn_9", "in.txt", b"attached")
    found, used = await resolved(conversation, path)
    assert (found, used.path) == ("attached", "fi:turn_9.user.attachments/in.txt")


async def test_blocks_of_the_stored_timeline_are_found(conversation):
    code = "print(1)\n" * 5_000
    await conversation.append(
        block("fi:turn_1.code.c1", code, type="react.tool.code", mime="text/x-python", call_id="c1"),
        block("ar:turn_1.assistant.completion", "I am done.", type="assistant.completion"),
    )
    assert (await resolved(conversation, "fi:turn_1.code.c1"))[0] == code
    found, used = await resolved(conversation, "ar:turn_1.assistant.completion")
    assert (found, used.path, used.version) == ("I am done.", "ar:turn_1.assistant.completion", None)


async def test_a_handed_in_timeline_is_where_blocks_are_found_and_assets_come_first(conversation):
    blocks = [
        call_block("c1", "react.write"),
        meta_block("c1", {"artifact_path": "fi:turn_1.files/a.md", "mime": "text/markdown"}),
        block("fi:turn_1.files/a.md", "# Of the block", call_id="c1"),
        block("ar:turn_1.user.prompt", "asked", type="user.prompt"),
    ]
    given = {"timeline": [each.model_dump() for each in blocks]}
    assert (await resolved(conversation, "fi:turn_1.files/a.md", **given))[0] == "# Of the block"
    assert (await resolved(conversation, "ar:turn_1.user.prompt", **given))[0] == "asked"
    for asset in ({"text": "# Of the asset"}, {"base64": base64.b64encode(b"# Of the asset").decode()}):
        assets = [{"physical_path": "turn_1/files/a.md", **asset}]
        found, used = await resolved(conversation, "fi:turn_1.files/a.md", **given, assets=assets)
        assert (found, used.version) == ("# Of the asset", None)


async def test_an_asset_by_uri_is_read_from_where_the_operator_allows(conversation):
    conversation.shared.joinpath("a.md").write_text("shared")
    assets = [{"physical_path": "turn_1/files/a.md", "uri": conversation.shared.joinpath("a.md").as_uri()}]
    assert (await resolved(conversation, "fi:turn_1.files/a.md", assets=assets))[0] == "shared"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("fi:turn_1.files/none.md", "the conversation has nothing at this path"),
        ("fi:turn_1.code.none", "the conversation has no text at this path"),
        ("ar:turn_1.user.prompt", "the conversation has no text at this path"),
        ("fi:turn_1.files/../a", "segment"),
        ("fi:turn_1/files/a", "is no logical file path"),
        ("/mnt/data/none.md", "the conversation has nothing at this path"),
        ("sandbox:/home/user/none.md", "is absolute"),
        ("so:sources_pool[1]", "only fi:, ar:, tc: and su: paths can be given by reference"),
        ("sk:writing", "only fi:, ar:, tc: and su: paths can be given by reference"),
        ("fi:turn_1.files/p.png", "it is not UTF-8 text (byte 0)"),
        ("fi:turn_1.files/nul", "it is a binary file"),
        ("fi:turn_1.files/large", "bytes large"),
    ],
)
async def test_a_path_that_leads_to_no_text_is_refused_with_the_reason(conversation, path, reason):
    await conversation.save("turn_1/files/p.png", PNG, mime="image/png")
    await conversation.save("turn_1/files/nul", b"a\0b")
    await conversation.save("turn_1/files/large", b"x" * (TEXT_BYTES_MAX + 1))
    with pytest.raises(ContractError) as caught:
        await resolved(conversation, path)
    assert (caught.value.code, caught.value.details) == ("param_ref_not_visible", {"param": "content", "ref": path})
    assert reason in caught.value.message


async def test_files_of_another_user_or_conversation_are_not_found(conversation):
    await conversation.save("turn_1/files/a.md", b"secret")
    for scope in (type(SCOPE)(BOB, "conv-1"), type(SCOPE)(SCOPE.principal, "conv-2")):
        with pytest.raises(ContractError):
            await resolved(conversation.of(scope), "fi:turn_1.files/a.md")


async def test_what_a_reference_stood_for_is_restored_whatever_is_stored_since(conversation):
    await conversation.save("turn_1/files/a.md", b"one")
    request = ToolCallRequest(tool_id="t", tool_call_id="c", conversation_id="conv-1", params={})
    references, reference = References(conversation.files), find_reference("content", "fi:turn_1.files/a.md")
    _, used = await references.resolve(SCOPE, request, reference)
    await conversation.save("turn_1/files/a.md", b"two")
    assert await references.restore(SCOPE, request, reference, used) == "one"
    assert (await references.resolve(SCOPE, request, reference))[0] == "two"


async def test_a_text_of_a_block_that_changed_since_is_not_restored(conversation):
    request = ToolCallRequest(tool_id="t", tool_call_id="c", conversation_id="conv-1", params={})
    references, reference = References(conversation.files), find_reference("content", "ar:turn_1.user.prompt")
    await conversation.append(block("ar:turn_1.user.prompt", "one", type="user.prompt"))
    _, used = await references.resolve(SCOPE, request, reference)
    assert await references.restore(SCOPE, request, reference, used) == "one"
    await conversation.append(block("ar:turn_1.user.prompt", "two", type="user.prompt"))
    assert await references.restore(SCOPE, request, reference, used) is None
