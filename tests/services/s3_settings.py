"""Writes settings and identities of the S3 server of the tests into a folder. Run by s3.sh before each start.

Usage: s3_settings.py FOLDER HOST. The keys are made once. A port that another program has taken since the last
start is replaced by a free one.
"""

import json
import secrets
import sys
from pathlib import Path

from free_ports import choose_ports, read_settings

state, host = Path(sys.argv[1]), sys.argv[2]
file = state / "settings"
old = read_settings(file)
names = ("S3_PORT", "S3_GRPC", "MASTER", "MASTER_GRPC", "VOLUME", "VOLUME_GRPC", "FILER", "FILER_GRPC", "METRICS")
ports = choose_ports(names, old)
access_key = old.get("PROOFBOX_S3_ACCESS_KEY") or secrets.token_hex(10)
secret_key = old.get("PROOFBOX_S3_SECRET_KEY") or secrets.token_hex(20)
said = {
    "PROOFBOX_S3_ENDPOINT": f"http://{host}:{ports['S3_PORT']}",
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
