"""The renderers of the benchmark: ours and its peers, each a batch in a container without network.

All get the same: two cores, the same memory, the fonts of the sandbox image, a time limit a document.
"""

import json
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.render.model import Outcome, Sample
from proofbox.service.app.settings import Settings

ROOT = Path(__file__).parents[2]
SANDBOX = Settings().sandbox_image
PEERS = "proofbox-peers:latest"
MEMORY = "2g"
LIMIT_S = 60.0
SOURCES = frozenset({"markdown", "html"})
_STEM_MAX = 60
START = (
    "cp -rT /opt/proofbox/skel $HOME 2>/dev/null || mkdir -p $HOME; exec python3 /peers/driver.py /jobs/batch.json"
)


@dataclass
class InContainer:
    """A renderer of `bench/peers/engines` in an image.

    Attributes:
        name: as the tables show it.
        engine: the module below `bench/peers/engines`.
        formats: what it writes.
        sources: what it reads.
        image: where it runs.
        options: further fields of each of its jobs.
        limit_s: CPU time of one document; ten times as much wall clock ends it too.
        workers: documents at the same time; 1 when speed is measured.
        together: documents in one process, where the engine can; their CPU time is not known then.
        mounts: further arguments of ``docker run``.
    """

    name: str
    engine: str
    formats: frozenset[str]
    sources: frozenset[str] = SOURCES
    image: str = SANDBOX
    options: dict[str, Any] = field(default_factory=dict)
    limit_s: float = LIMIT_S
    workers: int = 2
    together: int = 1
    mounts: tuple[str, ...] = ()

    def render(self, samples: Sequence[Sample], fmt: str, out: Path) -> list[Outcome]:
        """See `Renderer.render`.

        Raises:
            RuntimeError: the container as a whole failed.
        """
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="proofbox-render-", dir=out) as folder:
            work = Path(folder)
            batch = {
                "engine": self.engine,
                "format": fmt,
                "limit_s": self.limit_s,
                "workers": self.workers,
                "together": self.together,
                "jobs": [self._job(work, index, sample) for index, sample in enumerate(samples)],
            }
            (work / "batch.json").write_text(json.dumps(batch), encoding="utf-8")
            _open_to_all(work)
            rows = {row["index"]: row for row in self._run(work)}
            return [
                _outcome(sample, rows.get(index), work / str(index), fmt, out / _file_name(index, sample, fmt))
                for index, sample in enumerate(samples)
            ]

    def _job(self, work: Path, index: int, sample: Sample) -> dict[str, Any]:
        files = work / str(index) / "turn_1" / "files"
        if sample.folder is None:
            files.mkdir(parents=True)
        else:
            shutil.copytree(sample.folder, files)
        suffix = "md" if sample.source_format == "markdown" else "html"
        (work / str(index) / f"source.{suffix}").write_text(sample.text, encoding="utf-8", newline="")
        return {"folder": f"/jobs/{index}", "source_format": sample.source_format, "options": self.options}

    def _run(self, work: Path) -> Iterator[dict[str, Any]]:
        command = [
            "docker", "run", "--rm", "--network", "none", "--cap-drop", "ALL", "--log-driver", "none",
            "--security-opt", "no-new-privileges", "--init", "--cpus", "2", "--memory", MEMORY,
            "--memory-swap", MEMORY, "--pids-limit", "1024", "--shm-size", "256m",
            "--tmpfs", "/tmp:rw,size=1g,mode=1777",  # noqa: S108 - in the container
            "--user", "10001:10001", "--env", "HOME=/tmp/home", "--env", "PYTHONPATH=/opt/proofbox",
            "--volume", f"{ROOT / 'bench' / 'peers'}:/peers:ro", "--volume", f"{work}:/jobs", *self.mounts,
            "--entrypoint", "sh", self.image, "-c",
            START,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 and not done.stdout:
            raise RuntimeError(f"{self.name}: the container failed: {done.stderr[-2000:]}")
        for line in done.stdout.splitlines():
            yield json.loads(line)


def ours(**changes: Any) -> InContainer:
    """The renderer of this checkout in the sandbox image; ``changes`` are attributes, such as ``options``."""
    render = ROOT / "sandbox_images" / "render"
    return InContainer(
        "Proofbox",
        "ours",
        frozenset({"pdf", "png", "docx", "pptx"}),
        mounts=("--volume", f"{render}:/opt/proofbox/render:ro"),
        **changes,
    )


def peers(**changes: Any) -> dict[str, InContainer]:
    """The peers by name; ``changes`` are attributes of all of them."""
    stock = _without_harfbuzz_subset()
    found = [
        InContainer("WeasyPrint", "weasyprint", frozenset({"pdf"}), **changes),
        InContainer("WeasyPrint, stock", "weasyprint", frozenset({"pdf"}), mounts=stock, **changes),
        # One browser has one pipe.
        InContainer("Chromium", "chromium", frozenset({"pdf", "png"}), image=PEERS, **{**changes, "workers": 1}),
        InContainer("LibreOffice", "libreoffice", frozenset({"pdf", "docx"}), image=PEERS, **changes),
        InContainer("Pandoc", "pandoc", frozenset({"pdf", "docx", "pptx"}), image=PEERS, **changes),
        InContainer("html2docx", "html2docx", frozenset({"docx"}), image=PEERS, **changes),
        InContainer("html-for-docx", "html_for_docx", frozenset({"docx"}), image=PEERS, **changes),
        InContainer("Marp", "marp", frozenset({"pdf", "pptx"}), frozenset({"markdown"}), image=PEERS, **changes),
    ]
    return {peer.name: peer for peer in found}


def python_docx(**changes: Any) -> InContainer:
    """python-docx, filled cell by cell; it needs ``options`` with ``rows`` and ``columns``."""
    return InContainer("python-docx", "python_docx", frozenset({"docx"}), image=PEERS, **changes)


def _without_harfbuzz_subset() -> tuple[str, ...]:
    """What hides a library that pip does not bring: WeasyPrint from PyPI alone subsets fonts in Python."""
    library = f"/usr/lib/{platform.machine()}-linux-gnu/libharfbuzz-subset.so.0"
    return ("--volume", f"/dev/null:{library}:ro")


def _file_name(index: int, sample: Sample, fmt: str) -> str:
    stem = re.sub(r"[^A-Za-z0-9.-]+", "_", sample.id)[:_STEM_MAX]
    return f"{index:05}-{stem}.{fmt}"


def _open_to_all(folder: Path) -> None:
    """The container's user is another one than ours; its files can be removed because the folders are ours."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)


def _outcome(sample: Sample, row: dict[str, Any] | None, folder: Path, fmt: str, path: Path) -> Outcome:
    if row is None:
        return Outcome(sample.id, None, None, 0.0, None, "killed: the container ended before this document")
    written = folder / "turn_1" / "files" / f"result.{fmt}"
    if row["ok"]:
        shutil.copyfile(written, path)
    return Outcome(
        sample.id,
        path if row["ok"] else None,
        row["cpu_s"],
        row["wall_s"],
        row["peak_mb"],
        row.get("error"),
        row.get("warnings", []),
    )
