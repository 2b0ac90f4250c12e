"""The client of the NATS servers: its credentials, TLS that is never left out, and what a refusal means."""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nkeys
from nats.aio.client import Client
from nats.errors import AuthorizationError, Error, SecureConnWantedError
from typing_extensions import override

from proofbox.service.dispatch.nats_settings import NatsSettings
from proofbox.service.dispatch.streams import NatsRefusedError

_REFUSED = ("authorization violation", "authentication")
_PERMISSIONS = "permissions violation"
_OTHER_NAME = 62  # X509_V_ERR_HOSTNAME_MISMATCH
_OTHER_ADDRESS = 64  # X509_V_ERR_IP_ADDRESS_MISMATCH
_JWT, _SEED = "BEGIN NATS USER JWT", "BEGIN USER NKEY SEED"


class LastingClient(Client):
    """A client whose link is made again whatever a server answers, and that sends nothing without TLS if it has to.

    Args:
        requires_tls: whether each server has to use TLS.
    """

    def __init__(self, *, requires_tls: bool) -> None:
        super().__init__()
        self._requires_tls = requires_tls

    def connect_later(self) -> None:
        """Try on, as after a lost link: what was subscribed until then is subscribed when a server is there."""
        self._status = Client.RECONNECTING
        self._current_server = self._current_server or self._server_pool[0]
        self._ps.reset()
        self._reconnection_task = asyncio.get_running_loop().create_task(self._attempt_reconnect())

    @override
    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if initial_connection and self._requires_tls and not info.get("tls_required"):
            raise SecureConnWantedError
        await super()._process_info(info, initial_connection)

    @override
    async def _process_connect_init(self) -> None:
        try:
            await super()._process_connect_init()
        except BaseException:
            if self._transport is not None:  # the library leaves it open when it tries again
                self._transport.close()  # type: ignore[no-untyped-call]
            raise

    @override
    async def _process_err(self, err_msg: str) -> None:
        # The library gives a link up for ever if the server refuses it later: its user may be back in a moment.
        if _PERMISSIONS in err_msg.lower():
            await super()._process_err(err_msg)
            return
        error = Error(f"nats: {err_msg}")
        await self._error_cb(error)
        await self._process_op_err(error)


def connection_options(settings: NatsSettings) -> Mapping[str, Any]:
    """Credentials and TLS for `Client.connect`.

    Raises:
        NatsRefusedError: a file cannot be used.
    """
    options = dict[str, Any]()
    if settings.credentials_file is not None:
        _check_credentials(settings.credentials_file)
        options["user_credentials"] = str(settings.credentials_file)
    elif settings.nkey_file is not None:
        _check_seed("nats_nkey_file", settings.nkey_file, _read("nats_nkey_file", settings.nkey_file).strip())
        options["nkeys_seed"] = str(settings.nkey_file)
    elif settings.token:
        options["token"] = settings.token
    elif settings.user:
        options |= {"user": settings.user, "password": settings.password}
    if settings.requires_tls:
        options["tls"] = _tls_context(settings)
    return options


def _tls_context(settings: NatsSettings) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if settings.ca_file is not None:
        _read("nats_ca_file", settings.ca_file)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(settings.ca_file)
        except ssl.SSLError as exc:
            raise NatsRefusedError(
                f"nats_ca_file: {settings.ca_file} has no certificate in PEM; name the file of the certificate "
                "authority of the NATS servers"
            ) from exc
    if settings.certificate is not None:
        certificate, key = settings.certificate
        _read("nats_certificate_file", certificate)
        _read("nats_certificate_key_file", key)
        try:
            context.load_cert_chain(certificate, key, password="")
        except (ssl.SSLError, ValueError) as exc:
            raise NatsRefusedError(
                f"nats_certificate_file: {certificate} and the key in {key} are not a certificate and its private "
                "key in PEM, without a password; name files that belong together"
            ) from exc
    return context


def _check_credentials(file: Path) -> None:
    text = _read("nats_credentials_file", file)
    lines = text.splitlines()
    places = [number for number, line in enumerate(lines[:-1]) if _SEED in line]
    if _JWT not in text or not places:
        raise NatsRefusedError(
            f"nats_credentials_file: {file} is not a .creds file, which has the JWT of a user and its NKey seed; "
            "make one with 'nsc generate creds', or name a seed alone in PROOFBOX_NATS_NKEY_FILE"
        )
    _check_seed("nats_credentials_file", file, lines[places[0] + 1].strip())


def _check_seed(setting: str, file: Path, seed: str) -> None:
    try:
        nkeys.from_seed(bytearray(seed, "ascii", "replace")).wipe()
    except Exception as exc:
        raise NatsRefusedError(
            f"{setting}: {file} has no NKey seed of a user, which begins with SU; make one with 'nk -gen user'"
        ) from exc


def _read(setting: str, file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError as exc:
        raise NatsRefusedError(
            f"{setting}: {file} cannot be read ({exc.strerror}); correct PROOFBOX_{setting.upper()}, or the rights "
            "of the file"
        ) from exc


def find_refusal(exc: BaseException, settings: NatsSettings) -> str | None:
    """Return why a server, or this process, refuses the link, with the remedy; None if it is only away."""
    text = str(exc).lower()
    if isinstance(exc, AuthorizationError) or any(each in text for each in _REFUSED):
        return f"{settings.credential}: the NATS servers refuse them; correct them there or here"
    if isinstance(exc, ssl.SSLCertVerificationError):
        if exc.verify_code in {_OTHER_NAME, _OTHER_ADDRESS}:
            return (
                f"nats_urls: the certificate of a NATS server is for another name ({exc.verify_message}); use a "
                "name that is in it"
            )
        trusted = settings.ca_file or "the authorities of this system"
        return (
            f"nats_ca_file: the certificate of a NATS server is not signed by {trusted} ({exc.verify_message}); "
            "name its certificate authority in PROOFBOX_NATS_CA_FILE"
        )
    if isinstance(exc, SecureConnWantedError):
        return (
            "nats_urls: a NATS server offers a link without TLS, and TLS is required by tls:// or "
            "PROOFBOX_NATS_CA_FILE; set tls there, or use nats:// and unset the files"
        )
    if isinstance(exc, ssl.SSLError):
        if "certificate" in text or "unknown ca" in text:
            return (
                "nats_certificate_file: a NATS server refuses the certificate of this process, or has got none; "
                "name one that it trusts in PROOFBOX_NATS_CERTIFICATE_FILE"
            )
        return f"nats_urls: TLS with a NATS server fails ({exc.reason or exc}); check its TLS settings"
    return None
