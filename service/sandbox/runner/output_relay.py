"""What a runner passes on of a program's output, within its bounds."""

from proofbox.service.sandbox.port import OnOutput, SandboxLostError, StreamName
from proofbox.service.sandbox.runner.frames import Frame

# A runner of ours lets both outputs rest for 25 ms after a piece smaller than this.
_PIECE_BYTES_MIN = 4096
_PIECES_PER_S = 100
_PIECES_SPARE = 1_000
_NAMES: dict[Frame, StreamName] = {Frame.STDOUT: "stdout", Frame.STDERR: "stderr"}


class OutputRelay:
    """Passes the output of one run on.

    Args:
        on_output: gets each piece.
        pass_on_bytes: how much of each stream a runner passes on.
        wall_s: the wall clock of the program, by which the number of pieces is bounded.
    """

    def __init__(self, on_output: OnOutput, pass_on_bytes: int, wall_s: float) -> None:
        self._on_output = on_output
        self._bytes_left = dict.fromkeys(_NAMES, pass_on_bytes)
        self._pieces_left = _PIECES_SPARE + pass_on_bytes // _PIECE_BYTES_MIN + int(wall_s * _PIECES_PER_S)

    def take(self, kind: Frame, payload: bytes) -> None:
        """Passes a piece on.

        Raises:
            SandboxLostError: it is none, or more than a runner of ours passes on.
        """
        if kind not in _NAMES:
            raise SandboxLostError(f"the runner sent {kind.name} while the program ran")
        self._bytes_left[kind] -= len(payload) - 1
        self._pieces_left -= 1
        is_empty = len(payload) <= 1 and payload != b"\1"  # that one means that more is not passed on
        if is_empty or self._bytes_left[kind] < 0 or self._pieces_left < 0:
            raise SandboxLostError("the runner passed on more output than it may")
        self._on_output(_NAMES[kind], payload[1:], payload[:1] == b"\1")
