"""The methods that `Gateway` and `AsyncGateway` share: each is a plan, which they carry out in their own way."""

from collections.abc import Callable
from functools import update_wrapper
from inspect import signature
from typing import Any, get_args

from proofbox.client.run_requests import RunRequests
from proofbox.client.space_requests import SpaceRequests


class GatewayMethods(RunRequests, SpaceRequests):
    """The plans of all methods."""


def describe(method: Any, plan: Callable[..., Any], result: Any = None) -> None:
    """Give a method that carries out a plan the name, text and signature that users see.

    Args:
        method: the method.
        plan: the method that makes the plan.
        result: what the method returns; None: the result of the plan.
    """
    update_wrapper(method, plan)
    shown = signature(plan)
    returned = get_args(shown.return_annotation)[-1] if result is None else result
    method.__signature__ = shown.replace(return_annotation=returned)
