"""A container that was started, as the pool and the calls hold it."""

from dataclasses import dataclass

from proofbox.service.sandbox.containers import ContainerTransport
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.runner.sandbox import RunnerSandbox


@dataclass(slots=True, eq=False)
class PooledContainer:
    """One started container.

    Attributes:
        container_id: its id.
        name: what it was started as.
        transport: the stream to its runner.
        sandbox: the sandbox behind it, ready for a call.
        flavour: what its interpreter has imported.
        born: when it began to wait, on the pool's clock.
    """

    container_id: str
    name: str
    transport: ContainerTransport
    sandbox: RunnerSandbox
    flavour: PreloadSet = PreloadSet.BARE
    born: float = 0.0
