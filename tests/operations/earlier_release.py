"""The sources of the release before, whose data the present one upgrades."""

import subprocess
from pathlib import Path

from service_process import ROOT

from proofbox.service.storage.migrations import revisions

VERSIONS = "service/storage/migrations/versions"


def previous_commit() -> str:
    """The newest commit whose schema is the one before; empty if this checkout has no history that reaches it."""
    [newest] = (ROOT / VERSIONS).glob(f"{revisions()[-1]}_*.py")
    path = newest.relative_to(ROOT)
    added = _git("log", "--diff-filter=A", "--format=%H", "--", str(path)).split()
    return _git("rev-parse", "--verify", "--quiet", f"{added[-1]}^").strip() if added else ""


def unpack(commit: str, folder: Path) -> Path:
    """Put the sources of a commit into a folder."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    return folder


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout
