"""A certificate authority of a test, and certificates of servers as a test wants them."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass
class Issuer:
    """An authority.

    Attributes:
        folder: where its files are.
        certificate: its certificate.
        key: its key.
    """

    folder: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def path(self) -> Path:
        """The file of its certificate, PEM."""
        path = self.folder / "authority.pem"
        path.write_bytes(self.certificate.public_bytes(Encoding.PEM))
        return path

    def server_tls(self, name: str, *, days: tuple[int, int] = (-1, 2)) -> ssl.SSLContext:
        """TLS as a server with a certificate.

        Args:
            name: the host that the certificate is for.
            days: from when to when it is valid, in days from now.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = issue(name, key, self.certificate.subject, self.key, days=days)
        return context_of(self.folder, key, certificate)

    def client_tls(self) -> ssl.SSLContext:
        """TLS as a client that trusts it, and nobody else."""
        return ssl.create_default_context(cafile=str(self.path))


def make_issuer(folder: Path) -> Issuer:
    """Make an authority of a test."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of a test")])
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _dated(name, name, key, (-1, 2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, SHA256())
    )
    return Issuer(folder, certificate, key)


def issue(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    days: tuple[int, int] = (-1, 2),
) -> x509.Certificate:
    """A certificate of a server."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return (
        _dated(subject, issuer, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(authority, critical=False)
        .sign(issuer_key, SHA256())
    )


def context_of(folder: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> ssl.SSLContext:
    """TLS as a server with a certificate and its key."""
    path = folder / "server.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def _dated(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: tuple[int, int]
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
    )
