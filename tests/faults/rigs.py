"""A rig that many cases share, for starting a service takes longer than most of them."""

from collections.abc import Callable

from rig import Rig


class Rigs:
    """One rig for many cases, made anew after one that failed."""

    def __init__(self, make: Callable[[], Rig]) -> None:
        self._make = make
        self._rig: Rig | None = None

    @property
    def rig(self) -> Rig:
        if self._rig is None:
            self._rig = self._make().__enter__()
        return self._rig

    def close(self) -> None:
        if self._rig is not None:
            self._rig.__exit__()
        self._rig = None
