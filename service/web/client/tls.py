"""How certificates of web servers are checked."""

import re
import ssl
from collections.abc import Callable
from functools import cache
from pathlib import Path

_HASHED = re.compile(r"[0-9a-f]{8}\.[0-9]+")  # how OpenSSL names the files of a folder of authorities
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

Tls = Callable[[], ssl.SSLContext]
"""Returns the context that checks certificates, each time the same; the first call loads it and blocks."""


def loaded_when_asked(ca_file: Path | None) -> Tls:
    """`checked_tls` at its first use: a service that asks no web server is spared 2 MB.

    Raises:
        OSError, ssl.SSLError: the ``ca_file``, which is read now, cannot be used.
    """
    tls = cache(lambda: checked_tls(ca_file))
    if ca_file is not None:
        tls()
    return tls


def checked_tls(ca_file: Path | None) -> ssl.SSLContext:
    """Certificates are checked against the machine's authorities and those of ``ca_file``, names too.

    Raises:
        OSError: ``ca_file`` cannot be read.
        ssl.SSLError: it holds no certificate.
    """
    tls = ssl.create_default_context()
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is not None:
        try:
            tls.load_verify_locations(cafile=ca_file)
        except OSError as exc:
            exc.filename = str(ca_file)  # OpenSSL leaves it out
            raise
    return tls


def read_roots(ca_file: Path | None) -> str:
    """The authorities that `checked_tls` trusts, as PEM, for a program that has no OpenSSL.

    Raises:
        OSError: ``ca_file`` cannot be read.
        ssl.SSLError: it holds no certificate.
    """
    found = {ssl.DER_cert_to_PEM_cert(der): None for der in checked_tls(ca_file).get_ca_certs(binary_form=True)}
    folder = ssl.get_default_verify_paths().capath  # whose files OpenSSL reads one by one as it needs them
    for path in sorted(Path(folder).iterdir()) if folder else ():
        if _HASHED.fullmatch(path.name) and path.is_file():
            for pem in _PEM.findall(path.read_text("latin-1")):
                found[ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(pem))] = None
    return "".join(found)
