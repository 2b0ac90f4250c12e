"""NATS servers of a test's own: with TLS, and users of each kind."""

import asyncio
import base64
import json
import os
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import nkeys
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.services.free_ports import choose_ports
from tests.support.certificates import issue

USER, PASSWORD, TOKEN = "proofbox", "the-password", "the-token"


class Broker:
    """One server with JetStream, whose data outlives it.

    Args:
        folder: of its data and configuration.
        config: more of its configuration.
        with_streams: whether it has JetStream.
    """

    def __init__(self, folder, config=None, *, with_streams=True):
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "nats.conf"
        self.port = choose_ports(["nats"], {})["nats"]
        self._config = {"listen": f"127.0.0.1:{self.port}"}
        if with_streams:
            self._config["jetstream"] = {"store_dir": str(folder)}
        self._config |= config or {}
        self._process = None

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    @property
    def tls_url(self):
        return f"tls://localhost:{self.port}"

    async def start(self):
        self._write()
        program = Path(sys.executable).with_name("nats-server")
        self._process = await asyncio.create_subprocess_exec(
            program, "-c", self._file, stderr=asyncio.subprocess.DEVNULL
        )
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                if self._process.returncode is not None:
                    raise RuntimeError(f"the NATS server on port {self.port} ended") from None
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return

    def reload(self, config):
        """Have it read another configuration, as an administrator does."""
        self._config |= config
        self._write()
        self._process.send_signal(1)  # SIGHUP

    def _write(self):
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(self._config))
        os.replace(new, self._file)  # noqa: PTH105 - the server may be reading

    async def kill(self):
        self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def started(broker):
    await broker.start()
    try:
        yield broker
    finally:
        await broker.kill()


def write_pair(folder, issuer, name):
    """The files of a certificate for a name, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = issue(name, key, issuer.certificate.subject, issuer.key)
    files = folder / f"{name}.pem", folder / f"{name}-key.pem"
    files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


def tls_config(folder, issuer, *, name="localhost", verify=False):
    """The configuration of TLS with a certificate for a name."""
    certificate, key = write_pair(folder, issuer, name)
    tls = {"cert_file": str(certificate), "key_file": str(key)}
    return {"tls": {**tls, "ca_file": str(issuer.path), "verify": True} if verify else tls}


def make_seed(prefix=nkeys.PREFIX_BYTE_USER):
    """The seed of an NKey."""
    return nkeys.encode_seed(os.urandom(32), prefix).decode()


def public_key(seed):
    """The public key of a seed."""
    return nkeys.from_seed(bytearray(seed, "ascii")).public_key.decode()


def _jwt(seed, subject, name, nats):
    now, issuer = int(time.time()), public_key(seed)
    claims = {"jti": "test", "iat": now, "iss": issuer, "sub": subject, "name": name}
    head = {"typ": "JWT", "alg": "ed25519-nkey"}
    parts = [_base64(json.dumps(part).encode()) for part in (head, {**claims, "nats": {**nats, "version": 2}})]
    signed = nkeys.from_seed(bytearray(seed, "ascii")).sign(".".join(parts).encode())
    return ".".join([*parts, _base64(signed)])


def _base64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


_NO_LIMITS = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
_STREAMS = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)


def make_operator():
    """A configuration with an operator and one account, and the text of a .creds file of a user of it."""
    operator = make_seed(nkeys.PREFIX_BYTE_OPERATOR)
    accounts = [make_seed(nkeys.PREFIX_BYTE_ACCOUNT) for _ in range(2)]
    system, account = map(public_key, accounts)
    limits = {"limits": {**_NO_LIMITS, "wildcards": True}, "type": "account"}
    with_streams = {"limits": {**limits["limits"], **_STREAMS}, "type": "account"}
    owner = public_key(operator)
    config = {
        "operator": _jwt(operator, owner, "O", {"type": "operator", "system_account": system}),
        "system_account": system,
        "resolver": "MEMORY",
        "resolver_preload": {
            system: _jwt(operator, system, "SYS", limits),
            account: _jwt(operator, account, "A", with_streams),
        },
    }
    seed = make_seed()
    user = {"type": "user", "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}}
    jwt = _jwt(accounts[1], public_key(seed), "u", user)
    creds = (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
    return config, creds
