"""Archives as ``docker save`` writes them, with layers of a test's own."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any


def entry(name: str, content: bytes | None = None, **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    """A member of a layer: a file with content, or what ``type`` says."""
    info = tarfile.TarInfo(name)
    info.mode = 0o755
    for field, value in fields.items():
        setattr(info, field, value)
    info.size = len(content or b"")
    return info, content or b""


def layer(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def archive(path: Path, *layers: bytes, told: list[bytes] | None = None, config_name: str = "") -> Path:
    """An archive of ``layers``; its configuration has the digests of ``told``, or of the layers themselves."""
    digests = [f"sha256:{hashlib.sha256(one).hexdigest()}" for one in told or layers]
    config = json.dumps({"config": {"Entrypoint": ["/x"]}, "rootfs": {"diff_ids": digests}}).encode()
    named = config_name or f"{hashlib.sha256(config).hexdigest()}.json"
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = json.dumps([{"Config": named, "Layers": names}]).encode()
    files = {**dict(zip(names, layers, strict=True)), named: config, "manifest.json": manifest}
    path.write_bytes(layer(*(entry(name, content) for name, content in files.items())))
    return path
