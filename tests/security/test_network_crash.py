"""The service is killed while a program downloads: its audit line says so, and nothing else is left."""

import contextlib
import json
import signal
import socket
import threading
import time

import pytest
from service_process import eventually, request, serving

pytestmark = pytest.mark.docker

_DOWNLOADS = """
import socket, subprocess
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(b"GET http://localhost:{port}/ HTTP/1.0\\r\\n\\r\\n")
assert s.recv(12) == b"HTTP/1.1 200"
subprocess.Popen(["sleep", "987"])
while s.recv(65536):
    pass
"""

_PAUSE_S = 0.01
"""Without it the transfer takes both processors from the tests beside it."""


class EndlessServer:
    """Sends without end, and notes when its client is gone."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    connection.sendall(bytes(65_536))
                    time.sleep(_PAUSE_S)
            self.ended.set()

    def close(self) -> None:
        self._listener.close()
        self._thread.join()


def _are_all_started(counts: tuple[int, int]) -> bool:
    ready, there = counts
    return ready >= 1 and there == ready + 1


@pytest.mark.slow
def test_kill_9_in_a_download_leaves_no_container_no_connection_and_an_audit_line(tmp_path, engine):
    server = EndlessServer()
    host = f"localhost:{server.port}"
    network = {
        "sandbox_network": json.dumps([host]),
        "sandbox_network_ranges": json.dumps(["127.0.0.0/8", "::1/128"]),
    }
    with serving(tmp_path / "data", engine, pool_size=1, **network) as service:
        body = request(_DOWNLOADS.format(port=server.port), network={"allow": [host]})
        assert service.post(body, Prefer="respond-async").status_code == 202
        assert len(eventually(service.busy, lambda busy: len(busy) == 1)) == 1
        # One that the engine is just creating has no stream yet: it would stay until a service sweeps it.
        counts = eventually(lambda: (service.ready_containers(), len(service.containers())), _are_all_started)
        assert _are_all_started(counts)
        assert not server.ended.is_set()
        service.signal(signal.SIGKILL)
        service.wait()
        assert eventually(service.containers, lambda left: left == []) == []
        assert server.ended.wait(60)
        service.start()
        path = f"/v1/tool-calls/{body['tool_call_id']}/provenance"
        line = service.client.get(path, params={"conversation_id": body["conversation_id"]}).json()
        assert line["network"]["allow"] == [host]
        assert line["network"]["unknown"] is True
        assert line["network"]["connections"] == []
    server.close()
