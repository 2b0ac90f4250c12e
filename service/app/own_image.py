"""The sandbox image of this version of the code: its name has the hash of the files that it is built from.

Two checkouts on one engine, or a checkout and an installed package, have one image if these files are the same, and
two otherwise. `sandbox_images/build.sh` builds it and computes the same hash.
"""

import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "sandbox_images"
REPOSITORY = "proofbox-sandbox"
_SOURCES = (
    *(
        "Dockerfile",
        "requirements.txt",
        "data.txt",
        "data.py",
        "slim.sh",
        "sbom.py",
        "paths.c",
        "fonts",
        "site",
        "skel",
    ),
    *("runner", "inspector", "render", "page_text", "inventory", "runner_protocol"),
)
_TAG_CHARS = 12


@functools.cache
def own_image() -> str:
    """The name of the image, such as ``proofbox-sandbox:3f2a…``; its files are read once per process: 20 ms."""
    return f"{REPOSITORY}:{content_hash(FOLDER)[:_TAG_CHARS]}"


def content_hash(folder: Path) -> str:
    """Hash the names and contents of the files that go into the image.

    Args:
        folder: the folder ``sandbox_images``.

    Raises:
        OSError: a file cannot be read.
    """
    files = {path.relative_to(folder).as_posix(): path for path in _source_files(folder)}
    # As sha256sum prints it, in the order of LC_ALL=C.
    lines = (f"{hashlib.sha256(files[name].read_bytes()).hexdigest()}  {name}\n" for name in sorted(files))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _source_files(folder: Path) -> Iterator[Path]:
    for name in _SOURCES:
        source = folder / name
        for path in [source] if source.is_file() else source.rglob("*"):
            if path.is_file() and not _is_cache(path.relative_to(folder)):
                yield path


def _is_cache(path: Path) -> bool:
    folders = path.parts[:-1]
    return path.suffix == ".pyc" or any(
        part == "__pycache__" or (part.startswith(".") and part.endswith("_cache")) for part in folders
    )
