"""Making a call while its events are shown; an interrupt cancels it."""

import contextlib
import secrets
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from proofbox.cli.shared.exit_codes import CommandError, ExitCode
from proofbox.cli.shared.failures import describe_error
from proofbox.cli.shared.outcomes import CallNames
from proofbox.cli.shared.terminal import Progress, Terminal

if TYPE_CHECKING:
    from proofbox.client import CallEvent, Client

FIRST_TURN = "turn_1"
CALL_ID_HELP = "the id of the call; it runs once for each conversation, which is derived from the id if not given"


def call_names(conversation: str | None, turn: str | None = None, call_id: str | None = None) -> CallNames:
    """The ids of a new call; those that are not given are made.

    The conversation of a given call id is derived from it, as the clients do: the service runs a call once for each
    conversation.
    """
    if conversation is None and call_id:
        from proofbox.client.call_bodies import conversation_of  # noqa: PLC0415 - loads the client

        conversation = conversation_of(call_id)
    elif conversation is None:
        conversation = f"cli-{secrets.token_hex(6)}"
    return CallNames(call_id or f"call_{secrets.token_hex(6)}", conversation, turn or FIRST_TURN)


class _EventDisplay:
    """Shows the events of one call."""

    def __init__(self, terminal: Terminal, progress: Progress) -> None:
        self._terminal = terminal
        self._progress = progress
        self._has_output = False

    def __call__(self, event: "CallEvent") -> None:
        """Show an event."""
        if event.name == "queued":
            self._progress.show(f"queued, {event.data.position} before")  # type: ignore[union-attr]
        elif event.name == "started":
            self._progress.show("running")
        elif event.name == "result" and not self._has_output:
            # The output of a call that ended before this process of the service is in the answer only.
            self._write(event.data.output.stdout, "stdout")  # type: ignore[union-attr]
            self._write(event.data.output.stderr, "stderr")  # type: ignore[union-attr]
        else:
            self._write(event.text, event.name)

    def _write(self, text: str, stream: str) -> None:
        if text and not self._terminal.is_json:
            self._has_output = True
            self._progress.pause()
            self._terminal.write_output(text, stream)


@contextlib.contextmanager
def live_call(
    client: "Client", names: CallNames, terminal: Terminal, *, is_cancelled: bool = True
) -> Iterator[Callable[["CallEvent"], None]]:
    """Show the events of a call while it runs; give the function that takes them.

    Args:
        client: the service.
        names: the ids of the call.
        terminal: where output and progress are shown.
        is_cancelled: whether an interrupt cancels the call.

    Raises:
        CommandError: the user interrupted the command, or the call failed.
        BrokenPipeError: the reader of the output ended; the call was cancelled.
    """
    with terminal.progress("waiting for the service") as progress:
        show = _EventDisplay(terminal, progress)
        try:
            with _ended_like_interrupted():
                yield show
        except KeyboardInterrupt as exc:
            if is_cancelled:
                _cancel(client, names, terminal)
            message = f"interrupted; the call {names.call_id} was cancelled" if is_cancelled else "interrupted"
            raise CommandError(message, code="interrupted", exit_code=ExitCode.INTERRUPTED) from exc
        except BrokenPipeError:
            if is_cancelled:
                _cancel(client, names)
            raise
        except Exception as exc:
            raise _with_names(describe_error(exc), names) from exc
    terminal.end_line()


@contextlib.contextmanager
def _ended_like_interrupted() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does, unless nohup ignores them: the call would run to its end."""
    numbers = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _with_names(error: CommandError, names: CallNames) -> CommandError:
    """An error of a call, with the command that shows the call if it may run, or has an answer."""
    has_call = error.exit_code not in {ExitCode.USAGE, ExitCode.REFUSED, ExitCode.INTERRUPTED}
    if has_call and not error.hint:
        option = f" --conversation {names.conversation}" if names.conversation else ""
        error.hint = f"if the call began, 'proofbox watch {names.call_id}{option}' shows it"
    return error


def _cancel(client: "Client", names: CallNames, terminal: Terminal | None = None) -> None:
    from proofbox.client import NotFoundError, ProofboxError  # noqa: PLC0415 - loaded by now

    if terminal is not None:
        terminal.note("proofbox: cancelling the call")
    try:
        client.cancel(names.call_id, names.conversation)
    except NotFoundError:
        pass  # it had not begun
    except ProofboxError as exc:
        raise CommandError(
            f"interrupted, but the call {names.call_id} could not be cancelled: {exc}",
            code="interrupted",
            exit_code=ExitCode.INTERRUPTED,
            hint=f"proofbox cancel {names.call_id} --conversation {names.conversation}",
        ) from exc
