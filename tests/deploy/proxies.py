"""nginx and Caddy with the examples of deploy/reverse-proxy, as processes that end with their test.

`make test-deploy` and `make test-console` put their programs below a folder: tests/deploy/programs.sh.
"""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.deploy.deploy_programs import DEBIAN, PROGRAMS, ROOT, debian_environment, running

_WRAPPER = """
user root;
daemon off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/proofbox.conf;
}}
"""


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def make_certificate(folder: Path) -> Path:
    """Make a certificate of localhost in a folder."""
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", "key.pem", "-out", "certificate.pem"),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "certificate.pem"


@contextmanager
def nginx(folder: Path, port: int, service_port: int) -> Iterator[Callable[[], None]]:
    """Run nginx with the example, at https://localhost:{port}/proofbox/, until the block ends.

    Returns:
        What lets it read its configuration again.
    """
    text = (ROOT / "deploy/reverse-proxy/nginx.conf").read_text()
    for old, new in (
        ("listen 443 ", f"listen 127.0.0.1:{port} "),
        ("127.0.0.1:8080", f"127.0.0.1:{service_port}"),
        ("files.example.com;", "localhost;"),
        ("/etc/ssl/files.example.com.pem", f"{folder}/certificate.pem"),
        ("/etc/ssl/files.example.com.key", f"{folder}/key.pem"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "proofbox.conf").write_text(text)
    (folder / "nginx.conf").write_text(_WRAPPER.format(folder=folder))
    command: list[object] = [DEBIAN / "usr/sbin/nginx", "-p", folder, "-c", folder / "nginx.conf"]
    with running(command, debian_environment(), folder / "log", lambda: _is_open(port)):
        yield partial(_reload, [*command, "-s", "reload"], debian_environment())


def _reload(command: list[object], environment: dict[str, str]) -> None:
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@contextmanager
def caddy(folder: Path, port: int, service_port: int) -> Iterator[Callable[[], None]]:
    """Run Caddy with the example, at https://localhost:{port}/proofbox/, until the block ends.

    Returns:
        What lets it read its configuration again.
    """
    text = (ROOT / "deploy/reverse-proxy/Caddyfile").read_text()
    for old, new in (
        (
            "\nfiles.example.com {",
            f"\nhttps://localhost:{port} {{\n\ttls {folder}/certificate.pem {folder}/key.pem\n",
        ),
        ("127.0.0.1:8080", f"127.0.0.1:{service_port}"),
    ):
        assert old in text
        text = text.replace(old, new)
    file = folder / "Caddyfile"
    address = f"unix/{folder}/admin.sock"
    file.write_text(f"{{\n\tadmin {address}\n\tauto_https off\n}}\n" + text)
    [program] = [path for path in PROGRAMS.glob("python/**/caddy") if path.is_file() and os.access(path, os.X_OK)]
    environment = {**os.environ, "HOME": str(folder)}
    command = [program, "run", "--config", file, "--adapter", "caddyfile"]
    reload: list[object] = [
        program,
        "reload",
        "--config",
        file,
        "--adapter",
        "caddyfile",
        "--address",
        address,
        "--force",
    ]
    with running(command, environment, folder / "log", lambda: _is_open(port)):
        yield partial(_reload, reload, environment)
