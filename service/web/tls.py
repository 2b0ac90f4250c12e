"""How certificates of web servers are checked."""

import ssl
from pathlib import Path


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
