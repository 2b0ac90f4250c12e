"""The metrics of one process of a service of many: the queue, the workers and the link to the NATS servers."""

from collections.abc import Callable, Iterator

from proofbox.service.dispatch.figures import QueueCounts
from proofbox.service.dispatch.nats_link import NatsLink
from proofbox.service.dispatch.port import QueueFigures
from proofbox.service.observability.metrics_port import Reading

_OF_THE_QUEUE = (
    ("queue_waiting", "Calls that wait for a worker.", "waiting"),
    ("queue_oldest_seconds", "How long the oldest waiting call has waited.", "oldest_waiting_s"),
    ("queue_held", "Calls that workers have.", "held"),
    ("queue_set_aside", "Dead letters.", "set_aside"),
    ("queue_expired", "Calls whose worker was lost, and that are not ended yet.", "expired"),
    ("workers", "Processes that live and run calls.", "workers"),
)


def dispatch_readings(
    figures: Callable[[], QueueFigures | None], counts: QueueCounts, link: NatsLink
) -> Iterator[Reading]:
    """What a process shows; nothing is asked of a server for it.

    Args:
        figures: those of the queue, which the process that leads has read lately; None in the others, whose metrics
            of the queue have no values then.
        counts: what this process has counted.
        link: its link to the NATS servers.
    """
    found = figures()
    for name, what, attribute in _OF_THE_QUEUE:
        yield Reading(name, what, (), {} if found is None else {(): getattr(found, attribute)})
    yield Reading(
        "queue_deliveries",
        "Calls that the queue gave this worker.",
        ("delivery",),
        {("first",): float(counts.delivered), ("again",): float(counts.delivered_again)},
        only_grows=True,
    )
    yield Reading(
        "queue_lost",
        "Calls that this process took from lost workers.",
        ("program",),
        {("begun",): float(counts.lost_begun), ("waiting",): float(counts.lost_waiting)},
        only_grows=True,
    )
    yield Reading("nats_up", "1 if this process has a link to a NATS server.", (), {(): link.is_up})
    yield Reading(
        "degraded",
        "1 if the part is away, and accepted calls wait for it.",
        ("part",),
        {("nats",): link.why_away() is not None},
    )
    yield Reading("nats_links_lost", "How often that link was lost.", (), {(): counts.links_lost}, only_grows=True)
