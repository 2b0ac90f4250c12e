"""Checks chains of audit lines: that every line is as it was written, in its place, and none is missing between."""

import hashlib
import json
from dataclasses import dataclass, field

from proofbox.service.calls.audit.audit_heads import SignedHeads


@dataclass(slots=True)
class ChainState:
    """A chain as far as it was read.

    Attributes:
        lines: how many.
        seq: the number of the last one.
        sha256: its hash.
        first: the number of the first one.
        problem: what is wrong with the first broken line; None as long as none is.
    """

    lines: int = 0
    seq: int = 0
    sha256: str | None = None
    first: int = 0
    problem: str | None = None


@dataclass(slots=True)
class AuditCheck:
    """Takes lines in the order of their numbers, chain by chain or mixed.

    Attributes:
        from_the_first: whether a chain has to begin with line 1; not so for a part that was exported.
        chains: what was read, by tenant and project.
        wanted: hashes that have to come, and have not.
        heads: which lines were signed, with which hashes.
    """

    from_the_first: bool
    chains: dict[tuple[str, str], ChainState] = field(default_factory=dict)
    wanted: set[str] = field(default_factory=set)
    heads: SignedHeads = field(default_factory=SignedHeads)

    def take(self, text: str, chain: tuple[str, str] | None = None, stored: tuple[int, str] | None = None) -> None:
        """Checks one line.

        Args:
            text: the line.
            chain: the chain that it is stored in; None for a line of a file, which names its chain.
            stored: its number and hash, as they are stored beside it.
        """
        fields, named = _read(text)
        state = self.chains.setdefault(chain or named, ChainState())
        if state.problem is not None:
            return
        sha256 = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        if chain is not None and named != chain:
            state.problem = "is no audit line of this project"
        elif stored is not None and stored != (fields.get("seq"), sha256):
            state.problem = "is not as it was written: its hash is another one"
        else:
            state.problem = self._misplaced(state, fields)
        if state.problem is not None:
            state.seq = stored[0] if stored else state.seq + 1
            return
        state.lines, state.seq, state.sha256 = state.lines + 1, int(str(fields["seq"])), sha256
        state.first = state.first or state.seq
        state.problem = self.heads.mismatch(chain or named, state.seq, sha256)
        self.wanted.discard(sha256)

    def end(self) -> None:
        """Notes which chains lack lines that were signed; to be called after the last line."""
        for chain in self.heads.of:
            state, head = self.chains.setdefault(chain, ChainState()), self.heads.last(chain)
            if state.problem is None and head is not None and state.seq < head.seq:
                state.seq = head.seq
                state.problem = f"was signed at {head.time} and is not there: the end of the chain was cut off"

    def _misplaced(self, state: ChainState, fields: dict[str, object]) -> str | None:
        seq, previous = fields.get("seq"), fields.get("previous")
        if state.lines == 0 and not self.from_the_first:
            return None if isinstance(seq, int) else "has no number"
        if seq != state.seq + 1:
            return f"does not follow line {state.seq}: lines are missing, or are not in order"
        if previous != state.sha256:
            return "does not name the line before it: one of the two was changed"
        return None


def _read(text: str) -> tuple[dict[str, object], tuple[str, str]]:
    """Parses a line into its fields and the chain that it names; empty for a text that is not a line."""
    try:
        fields = json.loads(text)
        who = fields["principal"]
        return fields, (str(who["tenant"]), str(who["project"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}, ("?", "?")
