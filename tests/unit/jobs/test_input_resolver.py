"""What is put into OUT_DIR before a program starts, resolved against the real local stores."""

import base64
import hashlib

import pytest

from proofbox.contracts.paths import FilePath
from proofbox.contracts.tool_call_request import Asset, SourceRow
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.port import NewArtifact
from proofbox.service.errors import AssetRefusedError, SidConflictError
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.jobs.input_resolver import InputResolver, WorkspaceBounds
from proofbox.service.jobs.inputs import InputRequest
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.asset_folders import AssetFolders
from proofbox.service.storage.database import Database
from proofbox.service.storage.sources import SqlSourcePool
from proofbox.service.storage.timelines import SqlTimelineStore
from tests.support.staging import MadeFolder

SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann"), "conv-1")
OTHER = ConversationKey(Principal("acme", "books", "registered", "bob"), "conv-1")


class World:
    """A conversation in turn_2, with real stores below a folder."""

    def __init__(self, artifacts, database, folder, shared):
        self.artifacts = artifacts
        self.sources = SqlSourcePool(database)
        self.timelines = SqlTimelineStore(database)
        self.folder = folder
        self.shared = shared

    async def save(self, physical, data=None, *, scope=SCOPE, visibility="external"):
        data = physical.encode() if data is None else data
        async with self.artifacts.staging() as staging:
            source = staging / "in"
            source.write_bytes(data)
            sha256 = hashlib.sha256(data).hexdigest()
            path = FilePath.from_physical(physical)
            new = NewArtifact(path, FileContent(source), len(data), sha256, "text/plain", visibility, "d", "call_0")
            [stored] = await self.artifacts.save(scope, [new])
        return stored

    async def gather(self, text="", *, turn_id="turn_2", assets=(), rows=(), bounds=(10_000, 100), **more):
        files = ConversationFiles(self.artifacts, self.timelines, AssetFolders((self.shared,)))
        rehosting = InputResolver(files, self.sources, WorkspaceBounds(*bounds))
        async with self.artifacts.staging() as staging:
            wish = InputRequest(SCOPE, turn_id, text, assets, rows, **more)
            gathered = await rehosting.resolve_inputs(wish, MadeFolder(staging))
            contents = {path: file.source.read() for path, file in gathered.files.items()}
            for line in gathered.ledger:
                if line.physical_path in contents:
                    assert hashlib.sha256(contents[line.physical_path]).hexdigest() == line.sha256
                assert line.ms >= 0
        for path, file in gathered.files.items():
            assert (file.path.physical, file.size_bytes) == (path, len(contents[path]))
            assert file.writable == path.startswith(f"{turn_id}/")
        self.in_memory = [path for path, file in gathered.files.items() if file.source.data is not None]
        self.ledger = [(line.asked, line.source, line.physical_path) for line in gathered.ledger]
        self.notices = [(str(notice.code), notice.details) for notice in gathered.notices]
        self.missing = gathered.missing
        self.missing_cited = gathered.missing_cited
        return contents


@pytest.fixture
async def world(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    database = Database(tmp_path / "data")
    await database.open()
    artifacts = SqlArtifactStore(database, LocalBlobStore(tmp_path / "data"))
    await artifacts.open()
    try:
        yield World(artifacts, database, tmp_path, shared)
    finally:
        await artifacts.close()
        await database.close()


# ---- mentions ----


async def test_a_file_of_another_turn_is_fetched_when_the_code_names_it(world):
    await world.save("turn_1/files/a.csv")
    await world.save("turn_1/files/b.csv")
    assert await world.gather("open('turn_1/files/a.csv')") == {"turn_1/files/a.csv": b"turn_1/files/a.csv"}
    assert world.ledger == [("turn_1/files/a.csv", "store", "turn_1/files/a.csv")]
    assert (world.missing, world.notices) == ([], [])


async def test_the_latest_version_is_fetched_and_once(world):
    await world.save("turn_1/files/a.csv", b"old")
    await world.save("turn_1/files/a.csv", b"new")
    text = "open('turn_1/files/a.csv'); open('./turn_1/files/a.csv?x'); os.listdir('turn_1/files')"
    assert await world.gather(text) == {"turn_1/files/a.csv": b"new"}
    assert len(world.ledger) == 1


async def test_small_files_stay_in_memory_and_others_are_fetched_into_the_folder(world):
    small, large = b"s" * 256 * 1024, b"l" * (256 * 1024 + 1)
    for name, data in (("a", small), ("b", large), ("c", b"")):
        await world.save(f"turn_1/files/{name}", data)
    assert list((await world.gather("'turn_1/files/'")).values()) == [small, large, b""]
    assert world.in_memory == ["turn_1/files/a", "turn_1/files/c"]


async def test_no_more_stays_in_memory_than_two_megabytes_of_a_call(world):
    for number in range(10):
        await world.save(f"turn_1/files/{number}", b"%d" % number * 256 * 1024)
    contents = await world.gather("'turn_1/files/'", bounds=(10_000_000, 100))
    assert [content[:1] for content in contents.values()] == [b"%d" % number for number in range(10)]
    assert world.in_memory == [f"turn_1/files/{number}" for number in range(8)]


async def test_an_attachment_is_fetched_and_a_file_of_that_name_is_another(world):
    await world.save("turn_1/attachments/a.csv")
    await world.save("turn_1/files/a.csv")
    assert list(await world.gather("'turn_1/attachments/a.csv'")) == ["turn_1/attachments/a.csv"]


@pytest.mark.parametrize("text", ["'turn_1/files/x'", "'turn_1/files/x/'", "ls turn_1/files/x/ ."])
async def test_a_folder_brings_all_that_is_below_it(world, text):
    for path in ("x/a", "x/y/b", "xy", "z"):
        await world.save(f"turn_1/files/{path}")
    assert list(await world.gather(text)) == ["turn_1/files/x/a", "turn_1/files/x/y/b"]


async def test_the_namespace_itself_brings_all_of_it(world):
    for path in ("files/a", "files/x/b", "attachments/c"):
        await world.save(f"turn_1/{path}")
    assert list(await world.gather("os.walk('turn_1/files')")) == ["turn_1/files/a", "turn_1/files/x/b"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("glob('turn_1/files/*.csv')", ["a1.csv", "a2.csv", "x/b.csv"]),
        ("f'turn_1/files/a{n}.csv'", ["a1.csv", "a2.csv"]),
        ("'turn_1/files/a%d.csv' % n", ["a1.csv", "a2.csv"]),
        ("cat turn_1/files/a[12].csv", ["a1.csv", "a2.csv"]),
        ("glob('turn_1/files/*.png')", []),
    ],
)
async def test_a_pattern_brings_what_matches_and_misses_nothing(world, text, found):
    for name in ("a1.csv", "a2.csv", "x/b.csv", "c.txt"):
        await world.save(f"turn_1/files/{name}")
    assert list(await world.gather(text)) == [f"turn_1/files/{name}" for name in found]
    assert world.missing == []


async def test_a_name_with_brackets_or_braces_is_itself_before_it_is_a_pattern(world):
    for name in ("report [final].csv", "report f.csv", "{x}.csv", "y.csv"):
        await world.save(f"turn_1/files/{name}")
    assert list(await world.gather("'turn_1/files/report [final].csv'")) == ["turn_1/files/report [final].csv"]
    assert list(await world.gather("'turn_1/files/{x}.csv'")) == ["turn_1/files/{x}.csv"]


async def test_the_likeliest_reading_that_exists_is_taken(world):
    for name in ("a", "a b.csv", "c", "100%25.csv", "d?x.csv"):
        await world.save(f"turn_1/files/{name}")
    assert list(await world.gather('"turn_1/files/a b.csv"')) == ["turn_1/files/a b.csv"]
    assert list(await world.gather('"turn_1/files/c and more"')) == ["turn_1/files/c"]
    assert list(await world.gather('"turn_1/files/100%25.csv"')) == ["turn_1/files/100%25.csv"]
    assert list(await world.gather('"turn_1/files/d?x.csv"')) == ["turn_1/files/d?x.csv"]


async def test_a_shorter_reading_that_is_there_already_hides_no_likelier_one(world):
    await world.save("turn_1/files/a")
    await world.save("turn_1/files/a b.csv")
    got = await world.gather("""open('turn_1/files/a'); open("turn_1/files/a b.csv")""")
    assert list(got) == ["turn_1/files/a", "turn_1/files/a b.csv"]


async def test_what_cannot_be_had_from_another_turn_is_missing_once(world):
    text = "open('turn_1/files/a.csv'); open('turn_1/files/a.csv#x')\n"
    text += "open('turn_9/attachments/b b.csv'); ls turn_8/files"
    assert await world.gather(text) == {}
    assert world.missing == ["turn_1/files/a.csv", "turn_9/attachments/b b.csv", "turn_8/files"]


async def test_what_is_not_there_yet_in_the_current_turn_is_no_error(world):
    await world.gather("open('turn_2/files/new.csv', 'w'); ls turn_2/files turn_2/attachments/x")
    assert world.missing == []


async def test_no_other_conversation_is_read(world):
    await world.save("turn_1/files/a.csv", scope=OTHER)
    assert await world.gather("'turn_1/files/a.csv'") == {}
    assert world.missing == ["turn_1/files/a.csv"]


async def test_internal_files_of_another_turn_can_be_read_too(world):
    await world.save("turn_1/files/a.csv", visibility="internal")
    assert list(await world.gather("'turn_1/files/a.csv'")) == ["turn_1/files/a.csv"]


# ---- the workspace ----


async def test_the_current_turns_own_files_are_put_in_unasked_after_what_is_mentioned(world):
    for path in ("turn_2/files/x/a", "turn_2/attachments/b", "turn_2/files/c", "turn_1/files/d"):
        await world.save(path)
    await world.save("turn_2/files/c", b"newer")
    got = await world.gather("open('turn_2/files/x/a')")
    assert got == {
        "turn_2/files/x/a": b"turn_2/files/x/a",
        "turn_2/files/c": b"newer",
        "turn_2/attachments/b": b"turn_2/attachments/b",
    }
    assert [asked for asked, _, _ in world.ledger] == ["turn_2/files/x/a", "workspace", "workspace"]


@pytest.mark.parametrize(("bounds", "fits"), [((30, 3), True), ((29, 3), False), ((30, 2), False), ((0, 0), False)])
async def test_past_its_bounds_only_mentioned_files_of_the_workspace_are_put_in(world, bounds, fits):
    for name in "abc":
        await world.save(f"turn_2/files/{name}", b"x" * 10)
    got = await world.gather("open('turn_2/files/b')", bounds=bounds)
    everything = ["turn_2/files/b", "turn_2/files/a", "turn_2/files/c"]
    assert list(got) == (everything if fits else everything[:1])
    left_out = {"left_out": ["turn_2/files/a", "turn_2/files/c"], "left_out_total": 2}
    assert world.notices == ([] if fits else [("workspace_truncated", left_out)])


async def test_a_notice_lists_twenty_of_those_left_out_and_counts_all(world):
    for number in range(25):
        await world.save(f"turn_2/files/{number:02}")
    await world.gather(bounds=(10_000, 5))
    [(_, details)] = world.notices
    assert (len(details["left_out"]), details["left_out_total"]) == (20, 25)


# ---- citations ----


def file_row(sid, physical):
    path = FilePath.from_physical(physical)
    return SourceRow(sid=sid, source_type="file", artifact_path=path.logical, physical_path=path.physical)


async def test_a_cited_file_is_rehosted_and_a_cited_page_is_not(world):
    stored = await world.save("turn_1/files/a.csv")
    row = await world.sources.add_file(SCOPE, stored)
    await world.sources.complete(SCOPE, [SourceRow(sid=7, source_type="web", url="https://example.org")])
    assert list(await world.gather(f"# as in [[S:{row.sid},7]]")) == ["turn_1/files/a.csv"]
    assert world.ledger == [(f"[[S:{row.sid}]]", "store", "turn_1/files/a.csv")]
    assert (world.missing, world.notices) == ([], [])


async def test_rows_of_the_call_complete_the_pool(world):
    await world.save("turn_1/files/a.csv", visibility="internal")
    got = await world.gather("[[S:3-999999999]]", rows=[file_row(4, "turn_1/files/a.csv")])
    assert list(got) == ["turn_1/files/a.csv"]
    assert [row.sid for row in await world.sources.rows(SCOPE)] == [4]


async def test_a_row_may_name_its_file_by_the_logical_path_alone(world):
    await world.save("turn_1/attachments/a.csv")
    row = SourceRow(sid=4, source_type="attachment", artifact_path="fi:turn_1.user.attachments/a.csv")
    assert list(await world.gather("[[S:4]]", rows=[row])) == ["turn_1/attachments/a.csv"]


async def test_a_row_that_gives_a_sid_another_meaning_is_refused(world):
    await world.sources.complete(SCOPE, [SourceRow(sid=4, source_type="web", url="https://example.org")])
    with pytest.raises(SidConflictError, match="source 4 is the page"):
        await world.gather("", rows=[file_row(4, "turn_1/files/a.csv")])


async def test_a_citation_that_is_in_no_pool_is_a_notice(world):
    assert await world.gather("[[S:1]] [[S:5-9]]") == {}
    assert world.notices == [("tool_call_warning.missing_sources", {"missing_sids": [1, *range(5, 10)]})]
    assert world.missing == []


async def test_a_cited_file_that_is_gone_is_missing_unless_it_is_of_the_current_turn(world):
    rows = [file_row(1, "turn_1/files/gone.csv"), file_row(2, "turn_2/files/later.csv")]
    await world.gather("[[S:1-2]] [[S:1]]", rows=rows)
    assert world.missing_cited == ["turn_1/files/gone.csv"]


# ---- assets ----


async def test_assets_are_put_in_as_they_are_handed_over(world):
    (world.shared / "c.bin").write_bytes(b"c")
    assets = [
        Asset(physical_path="turn_1/files/a.bin", base64=base64.b64encode(b"\0\xff")),
        Asset(physical_path="turn_2/files/b.txt", text="é"),
        Asset(physical_path="turn_1/attachments/c.bin", uri=(world.shared / "c.bin").as_uri()),
        Asset(physical_path="turn_1/files/empty", text=""),
    ]
    assert await world.gather(assets=assets) == {
        "turn_1/files/a.bin": b"\0\xff",
        "turn_2/files/b.txt": "é".encode(),
        "turn_1/attachments/c.bin": b"c",
        "turn_1/files/empty": b"",
    }
    assert [(asked, source) for asked, source, _ in world.ledger] == [
        ("assets", "asset"),
        ("assets", "asset"),
        ("assets", "uri"),
        ("assets", "asset"),
    ]


async def test_an_asset_comes_before_the_store_and_answers_mentions(world):
    await world.save("turn_1/files/a.csv", b"stored")
    assets = [Asset(physical_path="turn_1/files/a.csv", text="handed over")]
    assets.append(Asset(physical_path="turn_3/files/x/b.csv", text="b"))
    text = "open('turn_1/files/a.csv'); open('turn_3/files/x/b.csv?v=1'); ls turn_3/files; ls turn_3/files/x"
    got = await world.gather(text, assets=assets)
    assert got == {"turn_1/files/a.csv": b"handed over", "turn_3/files/x/b.csv": b"b"}
    assert world.missing == []


async def test_an_asset_can_be_a_hosted_artifact_of_the_same_tenant(world):
    stored = await world.save("turn_1/files/a.csv", scope=OTHER)
    asset = Asset(physical_path="turn_2/files/mine.csv", uri=stored.hosted_uri)
    assert await world.gather(assets=[asset]) == {"turn_2/files/mine.csv": b"turn_1/files/a.csv"}
    assert world.ledger == [("assets", "uri", "turn_2/files/mine.csv")]


@pytest.mark.parametrize(
    "uri", ["file:///etc/passwd", "http://example.org/a", "file:{shared}/gone", "file://{shared}/../data"]
)
async def test_an_asset_that_is_not_below_an_allowed_store_is_refused(world, uri):
    asset = Asset(physical_path="turn_1/files/a", uri=uri.format(shared=world.shared))
    with pytest.raises(AssetRefusedError, match=r"^assets\[1\]\.uri is not below a store that the operator allows"):
        await world.gather(assets=[Asset(physical_path="turn_1/files/b", text="b"), asset])


async def test_what_an_appended_document_names_and_cites_is_put_in_too(world):
    await world.save("turn_1/files/parts/a.md", b"![a](near.png) and turn_1/files/far.png, see [[S:7]] and [[S:8]]")
    for name in ("parts/near.png", "far.png", "other.png"):
        await world.save(f"turn_1/files/{name}")
    row = SourceRow(sid=7, source_type="web", title="Cited", url="https://e.example")
    path = "turn_1/files/parts/a.md"

    contents = await world.gather(path, theme=path, rows=[row])

    assert sorted(contents) == ["turn_1/files/far.png", path, "turn_1/files/parts/near.png"]
    assert world.notices == [("tool_call_warning.missing_sources", {"missing_sids": [8]})]


@pytest.mark.parametrize("content", [b"%PDF-1.7 turn_1/files/far.png", b"PK\x03\x04 turn_1/files/far.png"])
async def test_a_binary_document_names_nothing(world, content):
    await world.save("turn_1/files/a.pdf", content)
    await world.save("turn_1/files/far.png")

    contents = await world.gather("turn_1/files/a.pdf", theme="turn_1/files/a.pdf")

    assert (list(contents), world.missing) == (["turn_1/files/a.pdf"], [])
