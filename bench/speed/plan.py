"""How much is measured: a full run takes half an hour, a quick one less than two minutes."""

from dataclasses import dataclass

PARTS = (
    "print", "chart", "contract", "pdf", "pdf30", "files", "large",
    "burst", "queue", "growth", "pool", "idle",
)  # fmt: skip
"""What ``--only`` can name."""


@dataclass(frozen=True, slots=True)
class Load:
    """Clients that do not pause.

    Attributes:
        clients: at one time.
        rounds: how often each side has its turn.
        calls: that count in a turn.
        everyone: whether llm-sandbox, epicbox, Docker's API and crun have a turn too.
    """

    clients: int
    rounds: int
    calls: int
    everyone: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """How often, and for how long.

    Attributes:
        rounds: how often each side has its turn.
        calls: calls of one client in a turn, by job; a job that is not named is left out.
        busy: loads, by job.
        with_libraries: jobs in which llm-sandbox and epicbox have a turn too.
        bursts: how many bursts.
        queued: lengths of the queue.
        file_counts: numbers of files.
        pool_sizes: sizes of the pool.
        idle_s: for how long nothing is done; 0 leaves that out.
    """

    rounds: int
    calls: dict[str, int]
    busy: dict[str, tuple[Load, ...]]
    with_libraries: frozenset[str]
    bursts: int
    queued: tuple[int, ...]
    file_counts: tuple[int, ...]
    pool_sizes: tuple[int, ...]
    idle_s: float


FULL = Plan(
    rounds=5,
    calls={"print": 8, "chart": 3, "contract": 4, "pdf": 4, "pdf30": 2, "files": 4, "large": 3},
    busy={
        "print": (Load(1, 3, 8), Load(2, 3, 12), Load(4, 3, 16), Load(8, 5, 24, everyone=True), Load(32, 3, 64)),
        "chart": (Load(8, 2, 16),),
        "pdf": (Load(8, 5, 16),),
    },
    with_libraries=frozenset(PARTS),
    bursts=6,
    queued=(10, 100, 1_000),
    file_counts=(1, 10, 100, 200),
    pool_sizes=(0, 1, 2, 4),
    idle_s=30.0,
)
QUICK = Plan(
    rounds=1,
    calls={"print": 3, "chart": 1, "contract": 2, "pdf": 1, "files": 1, "large": 1},
    busy={"print": (Load(8, 1, 16),)},
    with_libraries=frozenset({"print"}),
    bursts=1,
    queued=(20,),
    file_counts=(),
    pool_sizes=(),
    idle_s=0.0,
)
