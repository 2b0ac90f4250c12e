"""The services of waits that routes use."""

from dataclasses import dataclass

from proofbox.service.gateway.waits.answers import WaitAnswers
from proofbox.service.gateway.waits.port import WaitStore
from proofbox.service.gateway.waits.webhook_signing import CallbackTokens, SigningSecrets


@dataclass(frozen=True, slots=True)
class WaitServices:
    """Waits of calls and the webhooks that begin some of them.

    Attributes:
        answers: takes answers from outside.
        store: the waits.
        secrets: the secrets that sign webhooks.
        tokens: the tokens that services call back with.
    """

    answers: WaitAnswers
    store: WaitStore
    secrets: SigningSecrets
    tokens: CallbackTokens
