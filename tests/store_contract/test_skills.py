"""What a folder of skills gives, and that nothing outside of it can be read through it."""

import os

import pytest

from proofbox.service.artifacts.skills import Skill
from proofbox.service.storage.skill_folder import FolderSkills


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret.md").write_text("secret")
    folder = tmp_path / "skills"
    (folder / "deep" / "er").mkdir(parents=True)
    return folder


async def test_a_skill_is_a_file_or_a_folder_with_one(folder):
    (folder / "one.md").write_text("How\n")
    (folder / "deep" / "er" / "SKILL.md").write_text("---\nname: 'Deeper: still'\ndescription: When\n---\n\nÜber\n")
    (folder / "deep" / "er.md").write_text("the folder comes first")
    skills = FolderSkills(folder)
    assert await skills.read("one") == Skill("one", "one", "", "How")
    assert await skills.read("deep/er") == Skill("deep/er", "Deeper: still", "When", "Über")


@pytest.mark.parametrize(
    ("head", "name", "text"),
    [
        ("---\nname: [a, b\n---\nT", "s", "T"),
        ("---\n- a\n---\nT", "s", "T"),
        ("---\nname:\n---\nT", "s", "T"),
        ("---\nname: 7\n---\nT", "7", "T"),
        ("---\nname: x\nT", "s", "---\nname: x\nT"),
        ("T\n---\nname: x\n---\n", "s", "T\n---\nname: x\n---"),
    ],
)
async def test_front_matter_that_is_none_costs_nothing_but_its_name(folder, head, name, text):
    (folder / "s.md").write_text(head)
    found = await FolderSkills(folder).read("s")
    assert (found.name, found.text) == (name, text)


async def test_what_is_not_there_is_none(folder):
    assert await FolderSkills(folder).read("none") is None
    assert await FolderSkills(folder / "none").read("none") is None
    assert await FolderSkills(None).read("none") is None
    assert await FolderSkills(folder).read("deep") is None
    assert await FolderSkills(folder).read("x" * 255) is None


@pytest.mark.parametrize("skill_id", ["../secret", "link", "linked/secret", "fifo", "ring", "deep/../../secret"])
async def test_nothing_outside_of_the_folder_is_read(folder, skill_id):
    (folder / "link.md").symlink_to(folder.parent / "secret.md")
    (folder / "linked").symlink_to(folder.parent)
    os.mkfifo(folder / "fifo.md")
    (folder / "ring.md").symlink_to(folder / "ring.md")
    assert await FolderSkills(folder).read(skill_id) is None


async def test_a_link_within_the_folder_is_followed(folder):
    (folder / "one.md").write_text("How")
    (folder / "two.md").symlink_to(folder / "one.md")
    assert (await FolderSkills(folder).read("two")).text == "How"


async def test_a_skill_that_is_too_large_is_cut_and_says_so(folder):
    (folder / "big.md").write_bytes(b"x" * 65_536)
    assert (await FolderSkills(folder).read("big")).text == "x" * 65_536
    (folder / "big.md").write_bytes("ä".encode() * 40_000)
    assert (await FolderSkills(folder).read("big")).text == "ä" * 32_768 + "\n...[truncated]"
