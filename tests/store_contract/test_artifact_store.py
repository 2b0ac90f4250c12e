"""What every artifact store promises."""

import asyncio
import hashlib
import os
import re
from dataclasses import replace

import pytest

from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import NewSave
from proofbox.service.errors import StoreFailedError
from proofbox.service.file_content import FileContent
from tests.support.staging import save_together

PATH = FilePath.from_physical("turn_1/files/report.txt")


async def test_a_saved_file_is_found_with_all_that_was_said_about_it(artifact_store, scope, stage):
    async with artifact_store.staging() as folder:
        given = stage(
            folder, "turn_1/files/a/r.csv", b"x,y\n", mime="text/csv", description="tablé", tool_call_id="c:1"
        )
        (saved,) = await artifact_store.save(scope, [given])
    found = await artifact_store.latest(scope, given.path)
    assert found == saved
    assert (found.path, found.version, found.size_bytes, found.sha256, found.mime) == (
        given.path,
        1,
        4,
        hashlib.sha256(b"x,y\n").hexdigest(),
        "text/csv",
    )
    assert (found.visibility, found.description) == ("external", "tablé")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found.created)


async def test_saved_files_come_back_in_the_order_they_were_given(artifact_store, scope, save):
    names = ["turn_1/files/z", "turn_1/attachments/b", "turn_1/files/a"]
    saved = await save(artifact_store, scope, dict.fromkeys(names, b"x"))
    assert [artifact.path.physical for artifact in saved] == names


async def test_a_description_of_half_a_surrogate_pair_does_not_fail_the_save(artifact_store, scope, save):
    (saved,) = await save(artifact_store, scope, {"turn_1/files/a": b"x"}, description="half \ud83d")
    assert saved.description == "half ?"


@pytest.mark.parametrize("in_memory", [True])
@pytest.mark.parametrize("size", [0, 1, 300_000])
async def test_bytes_in_memory_are_stored_as_those_of_a_file_are(artifact_store, scope, save, content, size):
    data = os.urandom(size)
    (saved,) = await save(artifact_store, scope, {PATH.physical: data})
    assert (saved.size_bytes, saved.sha256) == (size, hashlib.sha256(data).hexdigest())
    assert await content(artifact_store, scope, saved) == data
    async with artifact_store.staging() as folder:
        assert (await artifact_store.fetch(scope, saved, folder)).read_bytes() == data
        assert (await artifact_store.fetch_uri(scope, saved.hosted_uri, folder)).read_bytes() == data


async def test_files_and_bytes_in_memory_are_saved_together_in_the_order_they_were_given(
    artifact_store, scope, stage
):
    # Every third has the bytes of the one before, which is the other thing.
    contents = {f"turn_1/files/{number:03}": b"%d" % (number - number % 3 // 2) for number in range(100)}
    async with artifact_store.staging() as folder:
        given = [
            stage(folder, physical, data, in_memory=number % 2 == 0)
            for number, (physical, data) in enumerate(contents.items())
        ]
        saved = await artifact_store.save(scope, given)
        fetched = await artifact_store.fetch_all(scope, saved, folder)
        assert [artifact.path.physical for artifact in saved] == list(contents)
        assert [file.read_bytes() for file in fetched] == list(contents.values())
    assert await artifact_store.contents(scope, saved[::-1]) == list(contents.values())[::-1]


async def test_saving_nothing_stores_nothing(artifact_store, scope):
    assert await artifact_store.save(scope, []) == []


async def test_what_was_never_saved_is_not_found(artifact_store, scope):
    assert await artifact_store.latest(scope, PATH) is None
    assert await artifact_store.of_turn(scope, "turn_1") == []


# ---- versions ----


async def test_each_save_of_a_path_is_a_version_and_all_of_them_stay(artifact_store, scope, save, content):
    versions = [(await save(artifact_store, scope, {PATH.physical: data}))[0] for data in (b"1", b"22", b"1")]
    assert [artifact.version for artifact in versions] == [1, 2, 3]
    assert [await content(artifact_store, scope, artifact) for artifact in versions] == [b"1", b"22", b"1"]
    assert await artifact_store.latest(scope, PATH) == versions[2]
    assert [await artifact_store.version(scope, PATH, number) for number in (1, 2, 3, 4)] == [*versions, None]


async def test_one_path_twice_in_one_save_is_two_versions_in_order(artifact_store, scope, stage):
    async with artifact_store.staging() as folder:
        given = [stage(folder, PATH.physical, b"first"), stage(folder, PATH.physical, b"second")]
        saved = await artifact_store.save(scope, given)
        fetched = await artifact_store.fetch_uri(scope, saved[1].hosted_uri, folder)
        assert fetched.read_bytes() == b"second"
    assert [artifact.version for artifact in saved] == [1, 2]


async def test_two_files_of_the_same_bytes_do_not_disturb_each_other(artifact_store, scope, save, content):
    saved = await save(artifact_store, scope, {"turn_1/files/a": b"same", "turn_1/files/b": b"same"})
    await save(artifact_store, scope, {"turn_1/files/a": b"other"})
    assert [await content(artifact_store, scope, artifact) for artifact in saved] == [b"same", b"same"]


async def test_concurrent_saves_of_one_path_all_stay_with_numbers_of_their_own(
    artifact_store, scope, save, content
):
    contents = [f"writer {number}".encode() for number in range(12)]
    saves = await asyncio.gather(*(save(artifact_store, scope, {PATH.physical: data}) for data in contents))
    stored = [artifact for (artifact,) in saves]
    assert sorted(artifact.version for artifact in stored) == list(range(1, 13))
    assert [await content(artifact_store, scope, artifact) for artifact in stored] == contents
    async with artifact_store.staging() as folder:
        hosted = await artifact_store.fetch_uri(scope, stored[0].hosted_uri, folder)
        newest = await artifact_store.latest(scope, PATH)
        assert hosted.read_bytes() == await content(artifact_store, scope, newest)


async def test_a_turn_lists_latest_versions_of_files_and_attachments_in_path_order(artifact_store, scope, save):
    await save(artifact_store, scope, {"turn_1/files/b": b"1", "turn_1/files/a/c": b"1"})
    await save(artifact_store, scope, {"turn_1/attachments/z": b"1", "turn_10/files/a": b"1"})
    await save(artifact_store, scope, {"turn_1/files/b": b"2", "turn_1/files/é": b"1"}, visibility="internal")
    found = [
        (artifact.path.physical, artifact.version) for artifact in await artifact_store.of_turn(scope, "turn_1")
    ]
    assert found == [
        ("turn_1/attachments/z", 1),
        ("turn_1/files/a/c", 1),
        ("turn_1/files/b", 2),
        ("turn_1/files/é", 1),
    ]


async def test_files_are_listed_by_their_numbers_each_in_its_latest_version(artifact_store, scope, save):
    await save(artifact_store, scope, {"turn_1/files/b": b"1", "turn_2/files/a": b"1"})
    await save(artifact_store, scope, {"turn_1/attachments/z": b"1"})
    await save(artifact_store, scope, {"turn_1/files/b": b"2"}, visibility="internal")
    found = await artifact_store.listed(scope, 0, 10)
    assert [(artifact.path.physical, artifact.version) for _, artifact in found] == [
        ("turn_2/files/a", 1),
        ("turn_1/attachments/z", 1),
        ("turn_1/files/b", 2),
    ]
    assert [number for number, _ in found] == [await artifact_store.number_of(scope, each) for _, each in found]
    assert await artifact_store.listed(scope, 0, 2) == found[:2]
    assert await artifact_store.listed(scope, found[1][0], 10) == found[2:]


# ---- of the whole conversation, and removed ----


async def test_a_removed_file_stays_readable_and_a_later_version_is_there_again(
    artifact_store, scope, save, content
):
    (first,) = await save(artifact_store, scope, {PATH.physical: b"1"})
    (other,) = await save(artifact_store, scope, {"turn_1/files/other": b"o"})
    await save_together(artifact_store, NewSave(scope, (), removed=[first]))
    [kept, removed] = await artifact_store.of_turn(scope, "turn_1")
    assert (kept, removed) == (other, replace(first, removed=True))
    assert await artifact_store.latest(scope, PATH) == removed
    assert await content(artifact_store, scope, removed) == b"1"
    assert [each for each in await artifact_store.newest_of_names(scope, 10) if not each.removed] == [other]
    (second,) = await save(artifact_store, scope, {PATH.physical: b"2"})
    assert (second.version, second.removed) == (2, False)
    assert await artifact_store.latest(scope, PATH) == second
    assert [each.version for each in await artifact_store.newest_of_names(scope, 10)] == [2, 1]


async def test_each_name_has_its_newest_version_of_any_turn_with_removals_and_bounded(
    artifact_store, scope, others, save
):
    for physical in ("turn_2/files/a", "turn_1/files/a", "turn_1/files/b", "turn_1/attachments/b"):
        await save(artifact_store, scope, {physical: b"x"})
    await save(artifact_store, scope, {"turn_1/files/c": b"x"})
    (gone,) = await save(artifact_store, scope, {"turn_2/files/c": b"x"})
    await save_together(artifact_store, NewSave(scope, (), removed=[gone]))
    await save(artifact_store, scope, {"turn_1/files/a": b"y"})
    found = await artifact_store.newest_of_names(scope, 10)
    assert [(artifact.path.physical, artifact.version, artifact.removed) for artifact in found] == [
        ("turn_1/files/a", 2, False),
        ("turn_2/files/c", 1, True),
        ("turn_1/attachments/b", 1, False),
    ]
    assert await artifact_store.newest_of_names(scope, 2) == found[:2]
    assert [await artifact_store.newest_of_names(other, 10) for other in others] == [[]] * 5


async def test_a_version_is_removed_in_no_other_conversation(artifact_store, scope, others, save):
    (mine,) = await save(artifact_store, scope, {PATH.physical: b"1"})
    for other in others:
        await save_together(artifact_store, NewSave(other, (), removed=[mine]))
    assert await artifact_store.latest(scope, PATH) == mine


# ---- apart ----


async def test_no_other_scope_sees_a_file(artifact_store, scope, others, save):
    await save(artifact_store, scope, {PATH.physical: b"secret"})
    assert [await artifact_store.latest(other, PATH) for other in others] == [None] * 5
    assert [await artifact_store.of_turn(other, "turn_1") for other in others] == [[]] * 5
    assert [await artifact_store.listed(other, 0, 10) for other in others] == [[]] * 5


async def test_one_path_in_many_scopes_is_a_file_of_each(artifact_store, scope, others, save, content):
    scopes = [scope, *others]
    stored = [
        (await save(artifact_store, each, {PATH.physical: f"of {number}".encode()}))[0]
        for number, each in enumerate(scopes)
    ]
    assert {artifact.version for artifact in stored} == {1}
    assert len({artifact.hosted_uri for artifact in stored}) == 6
    for number, (each, artifact) in enumerate(zip(scopes, stored, strict=True)):
        assert await content(artifact_store, each, artifact) == f"of {number}".encode()


async def test_an_artifact_of_one_scope_opens_nothing_in_another(artifact_store, scope, others, save, content):
    (saved,) = await save(artifact_store, scope, {PATH.physical: b"secret"})
    async with artifact_store.staging() as folder:
        for other in others:
            with pytest.raises(StoreFailedError, match="not stored in this conversation"):
                await artifact_store.fetch(other, saved, folder)
            with pytest.raises(StoreFailedError, match="not stored in this conversation"):
                await artifact_store.contents(other, [saved])
            with pytest.raises(StoreFailedError, match="not stored in this conversation"):
                await content(artifact_store, other, saved)


async def test_a_known_hash_opens_nothing_that_the_conversation_does_not_have(artifact_store, scope, others, save):
    (secret,) = await save(artifact_store, others[0], {PATH.physical: b"secret"})
    await save(artifact_store, scope, {PATH.physical: b"my own"})
    async with artifact_store.staging() as folder:
        forged = replace(await artifact_store.latest(scope, PATH), sha256=secret.sha256)
        assert (await artifact_store.fetch(scope, forged, folder)).read_bytes() == b"my own"
    assert await artifact_store.contents(scope, [forged]) == [b"my own"]


# ---- all or nothing ----


@pytest.mark.parametrize("in_memory", [False, True])
async def test_bytes_of_another_size_than_they_are_said_to_have_are_told_by_their_path(
    artifact_store, scope, stage
):
    async with artifact_store.staging() as folder:
        good, bad = (stage(folder, f"turn_1/files/{name}", b"12345") for name in ("good", "bad"))
        with pytest.raises(StoreFailedError) as caught:
            await artifact_store.save(scope, [good, replace(bad, size_bytes=6)])
    assert caught.value.message == "the bytes for fi:turn_1.files/bad are not a file of 6 bytes"
    assert await artifact_store.of_turn(scope, "turn_1") == []


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("wrong", [0, 1])
async def test_of_two_artifacts_of_one_source_neither_may_have_another_size(artifact_store, scope, stage, wrong):
    async with artifact_store.staging() as folder:
        given = [stage(folder, PATH.physical, b"12345")]
        given.append(replace(given[0], path=FilePath.from_physical("turn_1/files/same")))
        given[wrong] = replace(given[wrong], size_bytes=6)
        with pytest.raises(StoreFailedError, match="are not a file of 6 bytes"):
            await artifact_store.save(scope, given)
    assert await artifact_store.of_turn(scope, "turn_1") == []


@pytest.mark.parametrize("wrong", ["size", "missing", "folder", "symlink", "fifo"])
async def test_one_wrong_source_keeps_the_whole_save_out(artifact_store, scope, stage, wrong):
    async with artifact_store.staging() as folder:
        good, bad = (stage(folder, f"turn_1/files/{name}", name.encode()) for name in ("good", "bad"))
        if wrong == "size":
            bad = replace(bad, size_bytes=4)
        else:
            bad.source.path.unlink()
        if wrong == "folder":
            bad.source.path.mkdir()
        if wrong == "symlink":
            bad.source.path.symlink_to(good.source.path)
        if wrong == "fifo":
            os.mkfifo(bad.source.path)
        with pytest.raises(StoreFailedError):
            await artifact_store.save(scope, [good, bad])
    assert await artifact_store.of_turn(scope, "turn_1") == []


async def test_a_hash_that_is_none_is_refused(artifact_store, scope, stage):
    async with artifact_store.staging() as folder:
        bad = replace(stage(folder, PATH.physical, b"x"), sha256="../../../../escaped")
        with pytest.raises(ValueError, match="not a SHA-256"):
            await artifact_store.save(scope, [bad])
        assert await artifact_store.latest(scope, PATH) is None
        await artifact_store.save(scope, [replace(bad, sha256=hashlib.sha256(b"x").hexdigest())])
    assert await artifact_store.latest(scope, PATH) is not None


async def test_a_cancelled_save_is_there_as_a_whole_or_not_at_all(artifact_store, scope, stage):
    for turn in range(1, 30):
        async with artifact_store.staging() as folder:
            given = [stage(folder, f"turn_{turn}/files/{name}", os.urandom(9)) for name in "abcd"]
            task = asyncio.ensure_future(artifact_store.save(scope, given))
            for _ in range(turn):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        stored = await artifact_store.of_turn(scope, f"turn_{turn}")
        assert len(stored) in {0, 4}
        async with artifact_store.staging() as folder:
            for artifact in stored:
                await artifact_store.fetch(scope, artifact, folder)


# ---- reading ----


async def test_a_range_gives_exactly_its_bytes(artifact_store, scope, save):
    data = os.urandom(700_000)
    (saved,) = await save(artifact_store, scope, {PATH.physical: data})
    for start, end in [(0, 700_000), (0, 0), (5, 5), (1, 2), (262_143, 262_145), (100, 699_999), (699_999, 10**9)]:
        pieces = [piece async for piece in artifact_store.read(scope, saved, start, end)]
        assert b"".join(pieces) == data[start:end]
        assert all(0 < len(piece) <= 262_144 for piece in pieces)


async def test_an_empty_file_reads_as_nothing(artifact_store, scope, save, content):
    (saved,) = await save(artifact_store, scope, {PATH.physical: b""})
    assert await content(artifact_store, scope, saved) == b""


async def test_an_older_version_is_still_read_while_newer_ones_arrive(artifact_store, scope, save):
    data = os.urandom(600_000)
    (old,) = await save(artifact_store, scope, {PATH.physical: data})
    pieces = []
    async for piece in artifact_store.read(scope, old, 0, old.size_bytes):
        pieces.append(piece)
        await save(artifact_store, scope, {PATH.physical: b"newer"})
    assert b"".join(pieces) == data


async def test_a_fetched_file_has_the_bytes_of_its_version(artifact_store, scope, save):
    (old,) = await save(artifact_store, scope, {PATH.physical: b"old"})
    (new,) = await save(artifact_store, scope, {PATH.physical: b"new"})
    async with artifact_store.staging() as folder:
        assert (await artifact_store.fetch(scope, old, folder)).read_bytes() == b"old"
        assert (await artifact_store.fetch(scope, new, folder)).read_bytes() == b"new"
        again = await asyncio.gather(*(artifact_store.fetch(scope, old, folder) for _ in range(5)))
        assert [file.read_bytes() for file in again] == [b"old"] * 5


async def test_a_fetched_file_can_be_saved_as_another(artifact_store, scope, save, stage, content):
    (old,) = await save(artifact_store, scope, {PATH.physical: b"copied"})
    async with artifact_store.staging() as folder:
        from_store = await artifact_store.fetch(scope, old, folder)
        given = replace(stage(folder, "turn_2/files/copy.txt", b"copied"), source=FileContent(from_store))
        (copy,) = await artifact_store.save(scope, [given])
    assert await content(artifact_store, scope, copy) == b"copied"
    assert await content(artifact_store, scope, old) == b"copied"


async def test_a_staging_folder_is_empty_at_first_and_gone_after(artifact_store):
    async with artifact_store.staging() as folder, artifact_store.staging() as other:
        assert (folder != other, list(folder.iterdir()), list(other.iterdir())) == (True, [], [])
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_bytes(b"x")
    assert (folder.exists(), other.exists()) == (False, False)


async def test_a_staging_folder_may_be_removed_by_its_user(artifact_store):
    async with artifact_store.staging() as folder:
        folder.rmdir()
    assert not folder.exists()


async def test_a_staging_folder_is_gone_after_an_error(artifact_store):
    with pytest.raises(ZeroDivisionError):
        async with artifact_store.staging() as folder:
            raise ZeroDivisionError
    assert not folder.exists()


# ---- hosting ----


async def test_only_external_files_are_hosted(artifact_store, scope, save):
    (internal,) = await save(artifact_store, scope, {"turn_1/files/a": b"x"}, visibility="internal")
    (external,) = await save(artifact_store, scope, {"turn_1/files/b": b"x"})
    assert (internal.hosted_uri, internal.rn, internal.key) == (None, None, None)
    assert external.key == "cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/b"
    assert external.rn == "ef:acme:books:chatbot:file:ann:conv-1:turn_1:artifact:b"
    assert external.hosted_uri.endswith(external.key)


async def test_attachments_have_a_resource_name_of_their_own(artifact_store, scope, save):
    (saved,) = await save(artifact_store, scope, {"turn_1/attachments/d/a:b.pdf": b"x"})
    assert saved.rn == "ef:acme:books:chatbot:attachment:ann:conv-1:turn_1:artifact:d/a%3Ab.pdf"


async def test_a_file_and_an_attachment_of_one_name_are_hosted_apart(artifact_store, scope, save):
    saved = await save(artifact_store, scope, {"turn_1/files/a": b"file", "turn_1/attachments/a": b"attachment"})
    async with artifact_store.staging() as folder:
        fetched = [await artifact_store.fetch_uri(scope, artifact.hosted_uri, folder) for artifact in saved]
        assert [file.read_bytes() for file in fetched] == [b"file", b"attachment"]


async def test_a_path_may_be_a_file_and_later_a_folder_and_the_other_way_round(artifact_store, scope, save):
    files = {"turn_1/files/a": b"1", "turn_1/files/a/b": b"2", "turn_1/files/c/d/e": b"3", "turn_1/files/c": b"4"}
    saved = [(await save(artifact_store, scope, {path: data}))[0] for path, data in files.items()]
    async with artifact_store.staging() as folder:
        fetched = [await artifact_store.fetch_uri(scope, artifact.hosted_uri, folder) for artifact in saved]
        assert [file.read_bytes() for file in fetched] == list(files.values())


async def test_a_hosted_uri_serves_the_latest_external_version(artifact_store, scope, save):
    (old,) = await save(artifact_store, scope, {PATH.physical: b"old"})
    (new,) = await save(artifact_store, scope, {PATH.physical: b"new"})
    await save(artifact_store, scope, {PATH.physical: b"internal"}, visibility="internal")
    assert old.hosted_uri == new.hosted_uri
    async with artifact_store.staging() as folder:
        assert (await artifact_store.fetch_uri(scope, old.hosted_uri, folder)).read_bytes() == b"new"


@pytest.mark.parametrize(
    "rel",
    ["ünï/çødé 文.txt", "a b.txt", "100%.txt", "a%2Fb", "q?x=1#frag", "it's (1) [2]&;:@~.txt", "ab" * 127, "-"],
)
async def test_names_of_any_kind_survive_hosting(artifact_store, scope, save, rel):
    (saved,) = await save(artifact_store, scope, {f"turn_1/files/{rel}": rel.encode()})
    async with artifact_store.staging() as folder:
        assert (await artifact_store.fetch_uri(scope, saved.hosted_uri, folder)).read_bytes() == rel.encode()
    assert (await artifact_store.latest(scope, saved.path)).path.rel == saved.path.rel


@pytest.mark.parametrize("name", ["..", ".", "../../x", "a/b", "", "ünï", "a:b", "ann@example.com", "x" * 300])
async def test_whatever_a_user_is_called_hosting_works_and_stays_apart(artifact_store, scope_of, save, name):
    mine, plain = scope_of(user=name, tenant=name), scope_of()
    (saved,) = await save(artifact_store, mine, {"turn_1/files/a": b"mine"})
    await save(artifact_store, plain, {"turn_1/files/a": b"plain"})
    async with artifact_store.staging() as folder:
        assert (await artifact_store.fetch_uri(mine, saved.hosted_uri, folder)).read_bytes() == b"mine"
        assert await artifact_store.fetch_uri(plain, saved.hosted_uri, folder) is None


async def test_a_conversation_id_of_128_colons_can_be_hosted(artifact_store, scope_of, save):
    scopes = [scope_of(conversation="c" + ":" * 126 + end) for end in "ab"]
    saved = [
        (await save(artifact_store, each, {"turn_1/files/a": each.conversation_id.encode()}))[0] for each in scopes
    ]
    async with artifact_store.staging() as folder:
        fetched = [
            await artifact_store.fetch_uri(each, artifact.hosted_uri, folder)
            for each, artifact in zip(scopes, saved, strict=True)
        ]
        assert [file.read_bytes().decode() for file in fetched] == [each.conversation_id for each in scopes]


# ---- fetch_uri ----


async def test_a_uri_opens_within_its_tenant_and_project_only(artifact_store, scope, others, save):
    (saved,) = await save(artifact_store, scope, {PATH.physical: b"shared"})
    other_tenant, other_project, *same_project = others
    async with artifact_store.staging() as folder:
        for other in same_project:
            assert (await artifact_store.fetch_uri(other, saved.hosted_uri, folder)).read_bytes() == b"shared"
        assert await artifact_store.fetch_uri(other_tenant, saved.hosted_uri, folder) is None
        assert await artifact_store.fetch_uri(other_project, saved.hosted_uri, folder) is None


@pytest.mark.parametrize(
    "attack",
    [
        lambda uri: uri + "?",
        lambda uri: uri + "?version=1",
        lambda uri: uri + "#page=2",
        lambda uri: uri + "/",
        lambda uri: uri + "%00",
        lambda uri: uri + "\n",
        lambda uri: uri + "%ff",
        lambda uri: uri + "/../report.txt",
        lambda uri: uri.replace("acme", "acme/../other", 1),
        lambda uri: uri.replace("acme", "nobody/%2e%2e/other", 1),
        lambda uri: uri.replace("acme", "acme/%2E%2E%2Fother", 1),
        lambda uri: uri.replace("tenants/acme/", "tenants//other/", 1),
        lambda uri: uri.replace("acme", "other", 1),
        lambda uri: uri.replace("acme", "%6fther", 1),
        lambda uri: uri.replace("://", "://evil.example", 1),
        lambda uri: uri.replace("://", "://localhost", 1),
        lambda uri: uri.replace("://", ":", 1),
        lambda uri: " " + uri,
        lambda uri: uri.rpartition("/")[0],
        lambda _: "file:///etc/passwd",
        lambda _: "file:///proc/self/environ",
        lambda _: "http://127.0.0.1/",
        lambda _: "s3://bucket/cb/tenants/acme/projects/books/attachments/a/b/c/turn_1/x",
        lambda _: "/etc/passwd",
        lambda _: "file://",
        lambda _: "",
    ],
)
async def test_a_bent_uri_opens_nothing(artifact_store, scope, others, save, attack):
    for each in (scope, others[0]):
        (saved,) = await save(artifact_store, each, {PATH.physical: b"bytes"})
        if each is scope:
            mine = saved
    async with artifact_store.staging() as folder:
        assert await artifact_store.fetch_uri(scope, attack(mine.hosted_uri), folder) is None
