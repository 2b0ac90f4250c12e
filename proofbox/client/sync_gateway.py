"""Agents, runs, spaces and messages, with blocking calls: `Client.gateway`. Imported on first use."""

from collections.abc import Callable, Iterator
from typing import Concatenate, ParamSpec, TypeVar

from proofbox.client.api import Api
from proofbox.client.exchange import Plan
from proofbox.client.gateway_events import GatewayEvent
from proofbox.client.gateway_methods import GatewayMethods, describe
from proofbox.client.sync_driver import SyncDriver
from proofbox.contracts.gateway.agents import ListedAgent
from proofbox.contracts.gateway.runs import Run
from proofbox.contracts.gateway.spaces import Space

P = ParamSpec("P")
T = TypeVar("T")


def _completed(
    plan: Callable[Concatenate[GatewayMethods, P], Plan[T]],
) -> "Callable[Concatenate[Gateway, P], T]":
    """The method that carries out a plan and returns its result."""

    def complete(self: "Gateway", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._driver.complete(plan(self._methods, *args, **kwargs))

    describe(complete, plan)
    return complete


def _iterated(
    plan: Callable[Concatenate[GatewayMethods, P], Plan[None]], item: type[T]
) -> "Callable[Concatenate[Gateway, P], Iterator[T]]":
    """The method that carries out a plan and yields the items that it delivers."""

    def iterate(self: "Gateway", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        yield from self._driver.iterate(plan(self._methods, *args, **kwargs))

    describe(iterate, plan, Iterator[item])  # type: ignore[valid-type]
    return iterate


class Gateway:
    """The gateway of a service: tools of agents, their runs, and the spaces that show them.

    Methods have the names of the operations of the HTTP API. They raise as those of the client do. A run that is
    passed as a whole has the lease under which the request is sent.

    Args:
        api: the service.
        driver: its connections.
    """

    def __init__(self, api: Api, driver: SyncDriver) -> None:
        self._methods = GatewayMethods(api)
        self._driver = driver

    # ---- agents ----

    put_agent = _completed(GatewayMethods.put_agent)
    get_agent = _completed(GatewayMethods.get_agent)
    list_agents = _iterated(GatewayMethods.list_agents, ListedAgent)
    delete_agent = _completed(GatewayMethods.delete_agent)

    # ---- runs ----

    create_run = _completed(GatewayMethods.create_run)
    claim_run = _completed(GatewayMethods.claim_run)
    list_runs = _iterated(GatewayMethods.list_runs, Run)
    get_run = _completed(GatewayMethods.get_run)
    get_run_context = _completed(GatewayMethods.get_run_context)
    extend_run_lease = _completed(GatewayMethods.extend_run_lease)
    release_run = _completed(GatewayMethods.release_run)
    finish_run = _completed(GatewayMethods.finish_run)
    fail_run = _completed(GatewayMethods.fail_run)
    cancel_run = _completed(GatewayMethods.cancel_run)
    watch_run = _iterated(GatewayMethods.watch_run, GatewayEvent)

    # ---- calls ----

    list_run_tools = _completed(GatewayMethods.list_run_tools)
    call_tool = _completed(GatewayMethods.call_tool)
    answer_message = _completed(GatewayMethods.answer_message)
    answer_tool_call = _completed(GatewayMethods.answer_tool_call)

    # ---- spaces ----

    put_entity = _completed(GatewayMethods.put_entity)
    create_space = _completed(GatewayMethods.create_space)
    get_space = _completed(GatewayMethods.get_space)
    list_spaces = _iterated(GatewayMethods.list_spaces, Space)
    archive_space = _completed(GatewayMethods.archive_space)
    add_member = _completed(GatewayMethods.add_member)
    remove_member = _completed(GatewayMethods.remove_member)
    create_space_token = _completed(GatewayMethods.create_space_token)
    watch_space = _iterated(GatewayMethods.watch_space, GatewayEvent)

    # ---- messages ----

    list_messages = _completed(GatewayMethods.list_messages)
    get_message = _completed(GatewayMethods.get_message)
    post_message = _completed(GatewayMethods.post_message)
