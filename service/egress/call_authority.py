"""The certificate authority of one call: only its sandbox trusts it, and it can speak for hosts with secrets alone.

Its key, and those of its certificates, never leave this process: the standard library reads keys from files, so one
is on disk for a moment, encrypted with a random password.
"""

import secrets
import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = timedelta(days=7)  # far longer than any call
_CLOCK_MAY_DIFFER = timedelta(hours=1)
_NAME_CHARS_MAX = 64  # of the field CN
_PASSWORD_BYTES = 32


class CallAuthority:
    """Makes certificates for the hosts of one call.

    Args:
        hosts: the names that it may speak for; certificates for others are not valid.
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = frozenset(hosts)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Proofbox call {secrets.token_hex(8)}")])
        self._contexts: dict[str, ssl.SSLContext] = {}
        public = self._key.public_key()
        self._key_id = x509.SubjectKeyIdentifier.from_public_key(public)
        self._certificate = (
            _builder(self._name, self._name, public)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(self._key_id, critical=False)
            .add_extension(
                x509.NameConstraints([x509.DNSName(host) for host in sorted(self._hosts)], None), critical=True
            )
            .sign(self._key, SHA256())
        )

    @property
    def pem(self) -> str:
        """Its certificate, without a key."""
        return self._certificate.public_bytes(Encoding.PEM).decode()

    def made_context(self, host: str) -> ssl.SSLContext | None:
        """What `context` returned for a host; None before its first use."""
        return self._contexts.get(host)

    def context(self, host: str) -> ssl.SSLContext:
        """TLS as the server of a host; each time the same. The first use blocks.

        Raises:
            KeyError: it may not speak for this host.
        """
        if host not in self._hosts:
            raise KeyError(host)
        if host not in self._contexts:
            self._contexts[host] = self._make_context(host)
        return self._contexts[host]

    def _make_context(self, host: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:_NAME_CHARS_MAX])])
        authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._key_id)
        certificate = (
            _builder(subject if len(host) <= _NAME_CHARS_MAX else x509.Name([]), self._name, public)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=len(host) > _NAME_CHARS_MAX)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(authority, critical=False)
            .sign(self._key, SHA256())
        )
        password = secrets.token_bytes(_PASSWORD_BYTES).hex().encode()
        encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
        context.num_tickets = 0
        context.set_alpn_protocols(["http/1.1"])
        with tempfile.TemporaryDirectory(prefix="proofbox-tls-") as folder:
            path = Path(folder) / "certificate.pem"
            path.write_bytes(encrypted + certificate.public_bytes(Encoding.PEM))
            context.load_cert_chain(path, password=password)
        return context


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_MAY_DIFFER)
        .not_valid_after(now + _VALID)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    """Signs certificates, or the handshakes of a server."""
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
