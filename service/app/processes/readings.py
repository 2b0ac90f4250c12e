"""The metrics of one process of a service of many: the queue, the workers and the link to the NATS servers."""

from collections.abc import Callable, Iterator

from proofbox.service.dispatch.figures import QueueCounts
from proofbox.service.dispatch.port import QueueFigures
from proofbox.service.observability.metrics_port import Reading


def dispatch_readings(
    figures: Callable[[], QueueFigures | None], counts: QueueCounts, *, is_up: bool
) -> Iterator[Reading]:
    """What a process shows; nothing is asked of a server for it.

    Args:
        figures: those of the queue, which the process that leads has read lately; None in the others, whose metrics
            of the queue have no values then.
        counts: what this process has counted.
        is_up: whether its link to the NATS servers is up.
    """
    found = figures()
    gauges = {
        "queue_waiting": ("Calls that wait for a worker.", lambda it: it.waiting),
        "queue_oldest_seconds": ("How long the oldest waiting call has waited.", lambda it: it.oldest_waiting_s),
        "queue_held": ("Calls that workers have.", lambda it: it.held),
        "queue_set_aside": ("Dead letters.", lambda it: it.set_aside),
        "queue_expired": ("Calls whose worker was lost, and that are not ended yet.", lambda it: it.expired),
        "workers": ("Processes that live and run calls.", lambda it: it.workers),
    }
    for name, (what, read) in gauges.items():
        yield Reading(name, what, (), {} if found is None else {(): read(found)})
    delivered = {("first",): counts.delivered, ("again",): counts.delivered_again}
    yield Reading(
        "queue_deliveries", "Calls that the queue gave this worker.", ("delivery",), delivered, only_grows=True
    )
    lost = {("begun",): counts.lost_begun, ("waiting",): counts.lost_waiting}
    what = "Calls that this process took from lost workers."
    yield Reading("queue_lost", what, ("program",), lost, only_grows=True)
    yield Reading("nats_up", "1 if this process has a link to a NATS server.", (), {(): is_up})
    yield Reading("nats_links_lost", "How often that link was lost.", (), {(): counts.links_lost}, only_grows=True)
