"""The sources of the release before, whose data the present one upgrades."""

import subprocess
from pathlib import Path

from released_service import ROOT

from proofbox.service.storage.migrations import revisions

VERSIONS = "service/storage/migrations/versions"


def previous_commit() -> str:
    """The last release with another schema, else the last state of this branch with one; empty without a history.

    On the line of first parents, where each state has passed the tests: not within a branch that was merged.
    """
    [newest] = (ROOT / VERSIONS).glob(f"{revisions()[-1]}_*.py")
    path = str(newest.relative_to(ROOT))
    for tag in _git("tag", "--merged", "HEAD", "--sort=-creatordate", "--list", "v*").split():
        if not _git("ls-tree", "--name-only", tag, path):
            return tag
    added = _git("log", "--first-parent", "-m", "--diff-filter=A", "--format=%H", "--", path).split()
    return _git("rev-parse", "--verify", "--quiet", f"{added[-1]}^1").strip() if added else ""


def unpack(commit: str, folder: Path) -> Path:
    """Put the sources of a commit into a folder."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    return folder


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout
