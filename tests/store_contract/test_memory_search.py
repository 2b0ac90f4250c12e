"""react.memsearch with the real model over every store: what is found, in which order, and by whom it is not."""

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta

import pytest

from proofbox.contracts.blocks import TEXT_BYTES_MAX, Block
from proofbox.contracts.react_tools import MemsearchParams
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.artifacts.attachment_blocks import build_attachment_blocks
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.calls.direct_tool import DirectTool
from proofbox.service.calls.observer import CallObserver
from proofbox.service.react.memsearch.e5 import E5Embedder
from proofbox.service.react.memsearch.tool import MemorySearchTool
from proofbox.service.storage.asset_folders import AssetFolders

EMBEDDER = E5Embedder()
SAID = {
    1: "The sensor in the harbour basin stopped reporting on Tuesday night because its battery froze.",
    2: "My daughter gets a rash and swollen lips whenever she eats cashews or pistachios.",
    3: "The landlord has kept the three months' security since we moved out in April.",
}


@pytest.fixture
async def files(opened_artifacts, tmp_path):
    """The artifact store, which attachments are read from."""
    async with opened_artifacts(tmp_path / "files") as store:
        yield store


@pytest.fixture
def timelines(timelines_and_passages):
    return timelines_and_passages[0]


@pytest.fixture
def attach(files, timelines, stage, scope):
    """Stores an attachment and appends its blocks."""

    async def attached(path, data, mime="text/plain"):
        async with files.staging() as folder:
            [stored] = await files.save(scope, [stage(folder, path, data, mime=mime, tool_call_id=None)])
        await timelines.append(scope, build_attachment_blocks(stored, None))

    return attached


class RecordingEmbedder:
    """The real model, with the texts that it was given; by another name, it is another one."""

    embed_query = staticmethod(EMBEDDER.embed_query)
    similarities = staticmethod(EMBEDDER.similarities)
    similarity_by_chance = staticmethod(EMBEDDER.similarity_by_chance)

    def __init__(self, model=EMBEDDER.model):
        self.model = model
        self.texts = []

    def embed(self, texts):
        self.texts += texts
        return EMBEDDER.embed(texts)


@pytest.fixture
def embedder():
    return RecordingEmbedder()


@pytest.fixture
def memory_of(timelines_and_passages, files):
    """Makes a memory search with an embedder, as a service that starts does."""
    timelines, passages = timelines_and_passages
    of_conversations = ConversationFiles(files, timelines, AssetFolders(()))
    return lambda embedder: MemorySearchTool(timelines, passages, of_conversations, embedder, half_life_days=90)


@pytest.fixture
def memsearch(memory_of, scope_of, embedder):
    """Makes a call of memsearch in turn_9."""
    usual = memory_of(embedder)

    async def made(
        query,
        targets=("user", "assistant", "attachment"),
        *,
        scope=None,
        timeline=None,
        notes=None,
        memory=usual,
        **more,
    ):
        story = DirectTool(MemsearchParams, memory.run)
        scope = scope or scope_of()
        request = ToolCallRequest(
            tool_id="react.memsearch",
            tool_call_id="m1",
            conversation_id=scope.conversation_id,
            turn_id="turn_9",
            params={"query": query, "targets": list(targets), **more},
            timeline=timeline,
            notes=notes,
        )
        return await story.prepare(scope, request).run(CallObserver())

    return made


def ago(days):
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def block(turn, text, kind="user.prompt", days=1.0, **more):
    name = kind.replace("react.", "assistant.")
    fields = {"type": kind, "author": "user", "turn_id": f"turn_{turn}", "ts": ago(days), "mime": "text/markdown"}
    return Block(**(fields | {"path": f"ar:turn_{turn}.{name}", "text": text} | more))


def paths(answer):
    return [row["path"] for row in answer.ret]


async def test_the_blocks_of_memsearch_block_for_block(memsearch, timelines, scope):
    blocks = [block(turn, text) for turn, text in SAID.items()]
    await timelines.append(scope, blocks)
    answer = await memsearch("which nuts is the child not allowed to have?", top_k=1, notes="Looking back.")
    result = answer.blocks[-1]
    [row] = json.loads(result.text)
    assert [(b.type, b.path, b.mime) for b in answer.blocks] == [
        ("react.notes", "ar:turn_9.react.notes.m1", "text/markdown"),
        ("react.tool.call", "tc:turn_9.m1.call", "application/json"),
        ("react.tool.result", "tc:turn_9.m1.result", "application/json"),
    ]
    assert (result.call_id, result.meta) == ("m1", {"tool_call_id": "m1"})
    assert list(row) == ["turn_id", "text", "score", "ts", "path", "target"]
    assert {**row, "score": 0} == {
        "turn_id": "turn_2",
        "text": SAID[2],
        "score": 0,
        "ts": blocks[1].ts,
        "path": "ar:turn_2.user.prompt",
        "target": "user",
    }
    assert 0.3 < row["score"] < 1
    assert answer.ret == [row]


@pytest.mark.parametrize(
    ("query", "turn"),
    [
        ("why was there no data from the instrument at the port?", 1),
        ("foods that make the child ill", 2),
        ("the owner of the flat does not give our money back", 3),
    ],
)
async def test_it_is_found_by_meaning_not_by_words(memsearch, timelines, scope, query, turn):
    await timelines.append(scope, [block(number, text) for number, text in SAID.items()])
    assert paths(await memsearch(query))[0] == f"ar:turn_{turn}.user.prompt"


async def test_only_the_targets_that_were_asked_for_are_searched(memsearch, timelines, scope):
    kinds = ["user.prompt", "assistant.completion", "react.completion", "react.note", "react.tool.result"]
    await timelines.append(scope, [block(n, SAID[2], kind) for n, kind in enumerate(kinds, start=1)])
    assert paths(await memsearch("nut allergy", ["user"])) == ["ar:turn_1.user.prompt"]
    assert sorted(paths(await memsearch("nut allergy", ["assistant"]))) == [
        "ar:turn_2.assistant.completion",
        "ar:turn_3.assistant.completion",
    ]


async def test_only_passages_of_the_asked_targets_are_embedded_and_each_of_them_once(
    memsearch, timelines, attach, embedder, scope
):
    await timelines.append(scope, [block(1, SAID[1]), block(2, SAID[2], "assistant.completion")])
    await attach("turn_3/attachments/letter.txt", SAID[3].encode())
    for targets, new in (
        (["user"], [SAID[1]]),
        (["user", "assistant"], [SAID[2]]),
        (["attachment"], [f"letter.txt {SAID[3]}"]),
        (["user", "assistant", "attachment"], []),
    ):
        embedder.texts.clear()
        await memsearch("nut allergy", targets)
        assert embedder.texts == new


async def test_what_is_older_than_a_search_looks_back_is_embedded_by_one_that_reaches_it(
    memsearch, timelines, embedder, scope
):
    await timelines.append(scope, [block(1, SAID[2], days=40), block(2, SAID[1], days=3)])
    await memsearch("nut allergy", days=30)
    assert embedder.texts == [SAID[1]]
    assert paths(await memsearch("nut allergy", days=60)) == ["ar:turn_1.user.prompt"]


async def test_of_a_handed_in_timeline_only_blocks_of_the_asked_targets_are_embedded(memsearch, embedder):
    given = [block(1, SAID[1]), block(2, SAID[2], "assistant.completion")]
    assert paths(await memsearch("nut allergy", ["assistant"], timeline=given)) == [
        "ar:turn_2.assistant.completion"
    ]
    assert embedder.texts == [SAID[2]]


async def test_of_two_that_say_the_same_the_newer_comes_first(memsearch, timelines, scope):
    await timelines.append(
        scope, [block(1, SAID[2], days=2), block(2, SAID[2], days=200), block(3, SAID[2], days=90)]
    )
    answer = await memsearch("nut allergy")
    scores = [row["score"] for row in answer.ret]
    assert paths(answer) == [f"ar:turn_{turn}.user.prompt" for turn in (1, 3, 2)]
    # 0.8 of the score is meaning; the other fifth is halved every 90 days.
    assert scores[1] / scores[0] == pytest.approx(0.9 / (0.8 + 0.2 * 0.5 ** (2 / 90)), abs=0.01)


async def test_a_nearer_meaning_counts_more_than_newness(memsearch, timelines, scope):
    await timelines.append(scope, [block(1, SAID[2], days=300), block(2, "We eat lunch at noon.", days=0)])
    assert paths(await memsearch("nut allergy of my daughter"))[0] == "ar:turn_1.user.prompt"


async def test_days_bounds_how_far_back_it_looks(memsearch, timelines, scope):
    await timelines.append(scope, [block(1, SAID[2], days=12_000), block(2, SAID[2], days=3)])
    assert paths(await memsearch("nut allergy", days=30)) == ["ar:turn_2.user.prompt"]
    assert len((await memsearch("nut allergy", days=10**12)).ret) == 2


async def test_all_languages_are_found_by_meaning_and_by_words_and_in_each_other(memsearch, timelines, scope):
    texts = [
        "Im Urlaub hat uns der Hund die Wanderkarte zerbissen.",
        "\u533b\u751f\u4e0d\u8ba9\u5916\u5a46\u559d\u6d53\u8336\u3002",
        "Ticket ACME-4074 was closed.",
        "Ticket ACME-4075 was closed.",
        "\u65b0\u3057\u3044\u6a4b\u306e\u5de5\u4e8b\u306f\u4e09\u6708\u306b\u7d42\u308f\u308b\u3002",
    ]
    await timelines.append(scope, [block(turn, text) for turn, text in enumerate(texts, start=1)])
    for query, turn in [
        ("Was hat das Haustier kaputt gemacht?", 1),
        ("\u8001\u4eba\u5bb6\u4ec0\u4e48\u996e\u6599\u4e0d\u80fd\u78b0\uff1f", 2),
        ("What must grandma not drink?", 2),
        ("ACME-4074", 3),
        ("acme-4075", 4),
        ("\u6a4b\u306e\u5de5\u4e8b", 5),
    ]:
        assert paths(await memsearch(query))[0] == f"ar:turn_{turn}.user.prompt", query


async def test_hits_that_are_much_farther_than_the_best_do_not_fill_the_list(memsearch, timelines, scope):
    farther = ["My son likes fish for lunch.", "Too much sugar is bad for teeth."]
    await timelines.append(scope, [block(turn, text) for turn, text in enumerate(farther, start=1)])
    assert len((await memsearch("foods that make the child ill")).ret) == 2
    await timelines.append(scope, [block(3, SAID[2])])
    assert paths(await memsearch("foods that make the child ill")) == ["ar:turn_3.user.prompt"]


async def test_without_a_model_it_is_found_by_its_words(memsearch, memory_of, timelines, scope):
    await timelines.append(scope, [block(turn, text) for turn, text in SAID.items()])
    memory = memory_of(None)
    assert paths(await memsearch("cashews and pistachios", memory=memory)) == ["ar:turn_2.user.prompt"]
    assert paths(await memsearch("cashews", memory=memory, timeline=[block(4, SAID[2])])) == [
        "ar:turn_4.user.prompt"
    ]
    assert (await memsearch("nut allergy", memory=memory)).ret == []
    assert paths(await memsearch("nut allergy")) == ["ar:turn_2.user.prompt"]


async def test_vectors_of_an_old_model_are_compared_with_none_and_renewed_in_the_background(
    memsearch, memory_of, timelines, scope
):
    await timelines.append(scope, [block(turn, text) for turn, text in SAID.items()])
    await memsearch("nut allergy", memory=memory_of(RecordingEmbedder("old")))
    embedder = RecordingEmbedder()
    memory = memory_of(embedder)
    by_meaning = await memsearch("nut allergy", memory=memory)
    assert (by_meaning.ret, embedder.texts) == ([], [])
    assert "3 passages were searched by words alone: their vectors are being renewed." in by_meaning.report
    assert paths(await memsearch("cashews", memory=memory)) == ["ar:turn_2.user.prompt"]
    await timelines.append(scope, [block(4, SAID[2])])
    assert paths(await memsearch("nut allergy", memory=memory)) == ["ar:turn_4.user.prompt"]
    await memory.vectors.renew()
    assert sorted(embedder.texts) == sorted([*SAID.values(), SAID[2]])
    renewed = await memsearch("nut allergy", memory=memory)
    assert sorted(paths(renewed)) == ["ar:turn_2.user.prompt", "ar:turn_4.user.prompt"]
    assert "renewed" not in renewed.report


async def test_the_renewal_is_done_in_bounded_rounds_and_goes_on_after_a_restart(
    memsearch, memory_of, timelines, timelines_and_passages, scope
):
    await timelines.append(scope, [block(turn, f"Note {turn}.") for turn in range(10, 110)])
    await memsearch("note", memory=memory_of(RecordingEmbedder("old")))
    rounds = []
    for _ in range(3):
        embedder = RecordingEmbedder()  # of a process that has just started
        await memory_of(embedder).vectors.renew()
        rounds.append(len(embedder.texts))
    assert rounds == [64, 36, 0]
    assert await timelines_and_passages[1].outdated(EMBEDDER.model, 1) == {}


@pytest.mark.slow
async def test_top_k_blocks_are_given_and_each_of_them_once(memsearch, timelines, scope):
    long = "\n\n".join(f"{number}. {SAID[2]}" for number in range(300))
    await timelines.append(scope, [block(1, long), block(2, SAID[2]), block(3, SAID[2])])
    assert len(await memsearch_paths(memsearch, top_k=2)) == 2
    assert sorted(await memsearch_paths(memsearch, top_k=50)) == [
        f"ar:turn_{turn}.user.prompt" for turn in (1, 2, 3)
    ]


async def memsearch_paths(memsearch, **params):
    return paths(await memsearch("nut allergy", **params))


async def test_what_has_nothing_to_do_with_anything_said_finds_nothing(memsearch, timelines, scope):
    assert (await memsearch("nut allergy")).ret == []
    await timelines.append(scope, [block(3, SAID[3])])
    answer = await memsearch("photosynthesis in deep sea algae")
    assert (answer.ok, answer.ret, answer.blocks[-1].text) == (True, [], "[]")
    assert answer.report == "Nothing was found that has to do with the query."


async def test_a_match_that_chance_may_have_made_is_named_so(memsearch, timelines, scope):
    await timelines.append(scope, [block(number, said) for number, said in SAID.items()])
    sure, unsure = (
        await memsearch("nut allergy"),
        await memsearch("children"),
    )
    assert sure.report.startswith("Found:")
    assert unsure.ret
    for text in (unsure.report, unsure.text):
        assert text.startswith("Nothing was found that surely has to do with the query; the nearest:")


async def test_what_was_said_since_the_last_search_is_found_by_the_next(memsearch, timelines, scope):
    await timelines.append(scope, [block(1, SAID[1])])
    first = await memsearch("nut allergy", top_k=1)
    await timelines.append(scope, [block(2, SAID[2])])
    second = await memsearch("nut allergy", top_k=1)
    assert (paths(first), paths(second)) == ([], ["ar:turn_2.user.prompt"])


async def test_searches_at_the_same_time_index_every_block_once(
    memsearch, timelines, timelines_and_passages, embedder, scope
):
    await timelines.append(scope, [block(turn, SAID[2]) for turn in range(1, 31)])
    answers = await asyncio.gather(*(memsearch("nut allergy", top_k=50) for _ in range(4)))
    stored = await timelines_and_passages[1].candidates(scope, ["user"], "", embedder.model)
    assert ([len(answer.ret) for answer in answers], len(stored)) == ([29] * 4, 30)  # turn_9 is the current one


async def test_hidden_blocks_are_found(memsearch, timelines, scope):
    hides = block(2, "{}", "react.tool.result", meta={"hides": "ar:turn_1.user.prompt"})
    await timelines.append(scope, [block(1, SAID[2]), hides])
    assert paths(await memsearch("nut allergy")) == ["ar:turn_1.user.prompt"]


async def test_words_of_the_current_turn_are_no_answer_but_its_attachments_are(memsearch, timelines, attach, scope):
    await timelines.append(scope, [block(9, SAID[2])])
    assert paths(await memsearch("nut allergy")) == []
    await attach("turn_9/attachments/notes.txt", SAID[2].encode())
    assert paths(await memsearch("nut allergy")) == ["fi:turn_9.user.attachments/notes.txt"]


async def test_an_attachment_is_found_by_what_its_bytes_say(memsearch, attach):
    text = f"Letter to the clinic.\n\n{SAID[2]}\n\nKind regards"
    await attach("turn_2/attachments/letter.md", text.encode(), "text/markdown")
    [row] = (await memsearch("which nuts must the child avoid?", ["attachment"])).ret
    assert (row["path"], row["target"]) == ("fi:turn_2.user.attachments/letter.md", "attachment")
    assert SAID[2] in row["text"]


async def test_an_attachment_that_is_no_text_is_found_by_its_name(memsearch, attach):
    await attach("turn_2/attachments/rental contract.pdf", b"%PDF", "application/pdf")
    assert paths(await memsearch("lease agreement", ["attachment"])) == [
        "fi:turn_2.user.attachments/rental contract.pdf"
    ]


async def test_a_new_version_of_an_attachment_does_not_speak_for_the_old_one(memsearch, attach):
    await attach("turn_2/attachments/a.txt", SAID[1].encode())
    await attach("turn_2/attachments/a.txt", SAID[2].encode())
    answer = await memsearch("nut allergy", ["attachment"])
    assert [row["text"] for row in answer.ret] == [f"a.txt {SAID[2]}"]


async def test_a_timeline_that_comes_with_the_call_is_searched_in_place_of_the_stored_one(
    memsearch, timelines, timelines_and_passages, scope
):
    await timelines.append(scope, [block(1, SAID[1])])
    given = [block(5, SAID[2]), block(6, SAID[3]), block(7, SAID[2], ts="yesterday"), block(8, SAID[2], days=400)]
    answer = await memsearch("nut allergy", timeline=given)
    assert sorted(paths(answer)) == ["ar:turn_5.user.prompt", "ar:turn_7.user.prompt"]
    assert await timelines_and_passages[1].through(scope) == 0


async def test_no_other_tenant_project_user_or_conversation_finds_it(memsearch, timelines, scope, others):
    await timelines.append(scope, [block(1, SAID[2])])
    assert len((await memsearch("nut allergy")).ret) == 1
    assert [(await memsearch("nut allergy", scope=other)).ret for other in others] == [[]] * len(others)


async def test_an_attachment_of_another_scope_is_not_read(memsearch, timelines, attach, scope, others):
    await attach("turn_2/attachments/letter.md", SAID[2].encode(), "text/markdown")
    given = (await timelines.after(scope, 0, 10, binaries=False))[1].block
    for other in others:
        answer = await memsearch("nut allergy", ["attachment"], scope=other, timeline=[given])
        assert [row["text"] for row in answer.ret if "cashews" in row["text"]] == []


async def test_an_attachment_that_only_a_supplied_block_carries_is_searched_by_its_text(memsearch):
    carried = {"base64": base64.b64encode(SAID[2].encode()).decode(), "mime": "text/plain"}
    given = block(2, None, "user.attachment", path="fi:turn_2.user.attachments/letter.txt", **carried)
    answer = await memsearch("nut allergy", ["attachment"], timeline=[given])
    assert [row["text"] for row in answer.ret] == [f"letter.txt {SAID[2]}"]


@pytest.mark.slow
async def test_many_long_hits_share_the_room_of_the_block(memsearch, timelines, scope):
    await timelines.append(scope, [block(turn, f'{SAID[2]} "{turn}"\n' * 6) for turn in range(10, 60)])
    answer = await memsearch("nut allergy", top_k=50)
    assert len(answer.ret) == 50
    assert len(answer.blocks[-1].text.encode()) <= TEXT_BYTES_MAX
    assert all(len(row["text"]) > 100 for row in answer.ret)
