"""How certificates of web servers are checked."""

import ssl
from collections.abc import Callable
from functools import cache
from pathlib import Path

Tls = Callable[[], ssl.SSLContext]
"""Says how certificates are checked, each time the same; blocks for the time of loading them at the first."""


def loaded_when_asked(ca_file: Path | None) -> Tls:
    """`checked_tls` at its first use: a service that asks no web server is spared 2 MB.

    Raises:
        OSError, ssl.SSLError: there is a ``ca_file``, which is looked at now, and it cannot be used.
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
