"""The environment variables of a program with a network."""

from proofbox.sandbox_images.runner_protocol.network import CA_BUNDLE, PROXY_PORT

PROXY_VARIABLES = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), f"http://127.0.0.1:{PROXY_PORT}"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1"),
    "NODE_USE_ENV_PROXY": "1",
    **dict.fromkeys(
        ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"),
        CA_BUNDLE,
    ),
    **dict.fromkeys(("PIP_CERT", "AWS_CA_BUNDLE"), CA_BUNDLE),
}
"""The variables by which programs find the proxy, and the certificates that they are to trust."""
