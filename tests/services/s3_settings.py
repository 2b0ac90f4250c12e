"""Writes settings and identities of the S3 server of the tests into a folder. Run by s3.sh before each start.

The keys are made once. A port that another program has taken since the last start is replaced by a free one.
Ports come from below the range that the kernel gives to clients: a connection of another test must not take one
between this choice and the server's start.
"""

import json
import random
import secrets
import socket
import sys
from pathlib import Path

state = Path(sys.argv[1])
file = state / "settings"
old = dict(line.split("=", 1) for line in file.read_text().split()) if file.exists() else {}
held = []  # until all are chosen, so that no port is chosen twice


def port(wanted: int) -> int:
    first_of_clients = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    others = random.sample(range(10_000, max(first_of_clients, 20_000)), 100)
    for each in (wanted, *others) if wanted else others:
        held.append(socket.socket())
        try:
            held[-1].bind(("127.0.0.1", each))
        except OSError:
            continue
        return each
    sys.exit("s3: no port is free")


names = ("S3_PORT", "S3_GRPC", "MASTER", "MASTER_GRPC", "VOLUME", "VOLUME_GRPC", "FILER", "FILER_GRPC")
ports = {name: port(int(old.get(name, 0))) for name in names}
access_key = old.get("PROOFBOX_S3_ACCESS_KEY") or secrets.token_hex(10)
secret_key = old.get("PROOFBOX_S3_SECRET_KEY") or secrets.token_hex(20)
said = {
    "PROOFBOX_S3_ENDPOINT": f"http://127.0.0.1:{ports['S3_PORT']}",
    "PROOFBOX_S3_BUCKET": "proofbox-tests",
    "PROOFBOX_S3_ACCESS_KEY": access_key,
    "PROOFBOX_S3_SECRET_KEY": secret_key,
}
file.write_text("".join(f"{name}={value}\n" for name, value in (said | ports).items()))
identity = {
    "name": "proofbox",
    "credentials": [{"accessKey": access_key, "secretKey": secret_key}],
    "actions": ["Admin", "Read", "Write", "List", "Tagging"],
}
(state / "identities.json").write_text(json.dumps({"identities": [identity]}))
