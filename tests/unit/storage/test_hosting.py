"""Keys, resource names and URIs of hosted files."""

import hashlib
from pathlib import PurePosixPath
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.contracts.paths import FilePath
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.artifacts.hosted_names import hosted_name, hosted_name_in, hosted_uri, key_of, rn_of

SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann@x.org"), "c:1")


def key_for(physical="turn_1/files/a", **parts):
    fields = {"tenant": "t", "project": "p", "user_type": "k", "user": "u"} | parts
    conversation = fields.pop("conversation", "c")
    return key_of(ConversationKey(Principal(**fields), conversation), FilePath.from_physical(physical))


def test_a_key_has_the_protocols_form_with_unsafe_characters_encoded():
    key = key_of(SCOPE, FilePath.from_physical("turn_2026-07-04.1/files/Bericht für 100%: a/b.pdf"))
    assert key == (
        "cb/tenants/acme/projects/books/attachments/registered/ann@x.org/c%3A1/turn_2026-07-04.1/"
        "Bericht für 100%: a/b.pdf"
    )


@pytest.mark.parametrize(
    ("user", "segment"),
    [
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("...", "..."),
        ("", "%"),
        ("a/b\\c", "a%2Fb%5Cc"),
        ("%2F", "%252F"),
        ("a~b", "a%7Eb"),
        ("A-z_0.9@", "A-z_0.9@"),
        ("é\0", "%C3%A9%00"),
    ],
)
def test_a_user_is_exactly_one_safe_segment(user, segment):
    assert key_for(user=user) == f"cb/tenants/t/projects/p/attachments/k/{segment}/c/turn_1/a"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_two_users_never_share_a_segment(one, other):
    segments = {key_for(user=name).split("/")[7] for name in (one, other)}
    assert len(segments) == len({one, other})
    assert all(0 < len(segment.encode()) <= 255 and segment not in {".", ".."} for segment in segments)


@pytest.mark.parametrize("name", ["x" * 200, "é" * 33 + "xx"])
def test_a_name_of_200_encoded_characters_is_kept_whole(name):
    assert unquote(key_for(user=name).split("/")[7]) == name


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("x" * 201, "x" * 120),
        (":" * 127, "%3A" * 40),
        ("x" + ":" * 127, "x" + "%3A" * 39),
        ("xx" + ":" * 90, "xx" + "%3A" * 39),
    ],
)
def test_a_longer_name_keeps_its_head_up_to_a_whole_escape_and_a_hash(name, head):
    segment = key_for(user=name).split("/")[7]
    assert segment == f"{head}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def test_a_resource_name_encodes_colons_in_its_parts_only():
    assert rn_of(SCOPE, FilePath.from_physical("turn_1/files/ü/a:b")) == (
        "ef:acme:books:chatbot:file:ann@x.org:c%3A1:turn_1:artifact:ü/a%3Ab"
    )
    assert rn_of(SCOPE, FilePath.from_physical("turn_1/attachments/a")) == (
        "ef:acme:books:chatbot:attachment:ann@x.org:c%3A1:turn_1:artifact:a"
    )


@pytest.mark.parametrize(
    ("physical", "head"),
    [
        ("turn_1/files/a", "files/1/"),
        ("turn_1/files/a/b/c", "files/3/"),
        ("turn_1/attachments/a", "attachments/1/"),
    ],
)
def test_a_hosted_name_is_the_key_behind_namespace_and_depth(physical, head):
    path = FilePath.from_physical(physical)
    assert hosted_name(SCOPE, path) == head + key_of(SCOPE, path)


def test_a_hosted_uri_is_percent_encoded():
    name = hosted_name(SCOPE, FilePath.from_physical("turn_1/files/a b?#ü.txt"))
    uri = hosted_uri(name)
    assert uri == (
        "file://proofbox/hosted/files/1/cb/tenants/acme/projects/books/attachments/registered/"
        "ann%40x.org/c%253A1/turn_1/a%20b%3F%23%C3%BC.txt"
    )
    assert hosted_name_in(uri) == name


@pytest.mark.parametrize(
    "uri",
    [
        "file:///var/lib/box/hosted",
        "file:///var/lib/box/hosted/a",
        "file:///var/lib/box/hostedx/a",
        "file:///var/lib/box/blobs/a",
        "file:///var/lib/box/hosted/a?x",
        "file:///var/lib/box/hosted/a#x",
        "file:///var/lib/box/hosted/%ff",
        "file://host/var/lib/box/hosted/a",
        "file:/var/lib/box/hosted/a",
        "file://proofbox/hosted",
        "file://proofbox/hostedx/a",
        "file://proofbox/blobs/a",
        "file://proofbox/hosted/a?x",
        "file://proofbox/hosted/a#x",
        "file://proofbox/hosted/%ff",
        "file:///proofbox/hosted/a",
        "file://proofbox/var/lib/box/hosted/a",
        "proofbox/hosted/a",
        "FILE:///var/lib/box/hosted/a",
        "http:///var/lib/box/hosted/a",
        "",
    ],
)
def test_a_uri_of_another_place_or_kind_has_no_hosted_name(uri):
    assert hosted_name_in(uri) is None


rels = st.lists(
    st.text(
        st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/\\"), min_size=1, max_size=20
    ).filter(lambda segment: segment not in {".", ".."}),
    min_size=1,
    max_size=4,
).map("/".join)


def test_a_uri_of_a_local_file_has_no_hosted_name():
    name = hosted_name(SCOPE, FilePath.from_physical("turn_1/files/a b?#ü.txt"))
    assert hosted_name_in((PurePosixPath("/var/lib/box/hosted") / name).as_uri()) is None


@given(rels)
def test_every_path_comes_back_from_its_uri(rel):
    name = hosted_name(SCOPE, FilePath.from_physical(f"turn_1/files/{rel}"))
    assert hosted_name_in(hosted_uri(name)) == name
