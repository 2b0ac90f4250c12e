"""Counts of the queue of calls in one process, for its metrics."""

from dataclasses import dataclass


@dataclass(slots=True)
class QueueCounts:
    """Counts since the process started.

    Attributes:
        delivered: messages of calls that this worker got for the first time.
        delivered_again: messages that had been delivered before: their worker gave them back, or was lost.
        lost_begun: calls that this process ended because their worker was lost while they ran.
        lost_waiting: calls that it queued again because their worker was lost before they began.
        links_lost: how often the link to the NATS servers was lost.
    """

    delivered: int = 0
    delivered_again: int = 0
    lost_begun: int = 0
    lost_waiting: int = 0
    links_lost: int = 0

    def note_delivery(self, *, again: bool) -> None:
        """Count a message of a call."""
        if again:
            self.delivered_again += 1
        else:
            self.delivered += 1
