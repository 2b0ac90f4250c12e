"""How certificates of web servers are checked."""

import ssl
from collections.abc import Callable
from functools import cache
from pathlib import Path

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
        tls.load_verify_locations(cafile=ca_file)
    return tls
