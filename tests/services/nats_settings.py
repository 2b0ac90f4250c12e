"""Writes settings and configurations of the NATS cluster of the tests into a folder. Run by nats.sh before a start.

The password is made once. Ports are chosen anew only while no broker runs.
"""

import secrets
import sys
from pathlib import Path

from free_ports import choose_ports, read_settings
from nats_config import Broker, build_config, build_settings

state = Path(sys.argv[1])
numbers = (1, 2, 3)
old = read_settings(state / "settings")
password = old.get("PROOFBOX_NATS_PASSWORD") or secrets.token_hex(16)
ports = choose_ports((f"{use}_{n}" for use in ("CLIENT", "ROUTE", "MONITOR") for n in numbers), old)
cluster = [
    Broker(
        f"proofbox-{n}",
        "127.0.0.1",
        ports[f"CLIENT_{n}"],
        ports[f"ROUTE_{n}"],
        ports[f"MONITOR_{n}"],
        state / str(n),
    )
    for n in numbers
]
for number, broker in zip(numbers, cluster, strict=True):
    (state / f"{number}.conf").write_text(build_config(broker, cluster, password))
shown = {f"PROOFBOX_{name.upper()}": value for name, value in build_settings(cluster, password).items()}
monitors = ",".join(broker.monitor_url for broker in cluster)
values = {**shown, "MONITORS": monitors, **ports}
(state / "settings").write_text("".join(f"{name}={value}\n" for name, value in values.items()))
