"""The service's side of a zygote, whose other side is a thread with the other end of its socket."""

import contextlib
import errno
import json
import os
import socket
import threading

import pytest

from proofbox.service.sandbox.containers import NotForkedError
from proofbox.service.sandbox.zygotes import zygote as module
from proofbox.service.sandbox.zygotes.fork_target import Target
from proofbox.service.sandbox.zygotes.zygote import Zygote


class OtherSide:
    """Does what the test says with each message, and remembers it."""

    def __init__(self, *answers):
        self.ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.messages = []
        self.ended = 0
        self._answers = answers
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        with self._theirs:
            for answer in self._answers:
                message, fds, _, _ = socket.recv_fds(self._theirs, 65_536, 64)
                self.messages.append((json.loads(message), len(fds)))
                answer(self._theirs, fds)
                for fd in fds:
                    os.close(fd)

    def end(self):
        self.ended += 1

    def join(self):
        self._thread.join(10)

    def close(self):
        self.ours.close()
        self.join()


@pytest.fixture
def side_that():
    with contextlib.ExitStack() as stack:

        def side(*answers):
            made = OtherSide(*answers)
            stack.callback(made.close)
            return made

        yield side


@pytest.fixture
def target():
    with contextlib.ExitStack() as stack:
        fds = [os.open("/dev/null", os.O_RDWR) for _ in range(6)]
        for fd in fds:
            stack.callback(os.close, fd)
        yield Target(fds[0], (fds[1], fds[2]), (fds[3],), (fds[4], fds[5]), "docker-default (enforce)", 20_007)


def reports(text):
    return lambda _, fds: os.write(fds[0], text)


def test_a_zygote_is_told_what_to_be_and_says_when_it_is_ready(side_that):
    side = side_that(lambda connection, _: connection.send(b"."))
    Zygote(side.ours, side.end).prepare({"imports": ["numpy"]}, 5)
    side.join()
    assert side.messages == [({"imports": ["numpy"]}, 0)]


def test_a_zygote_that_dies_while_it_imports_is_told(side_that):
    side = side_that(lambda *_: None)
    with pytest.raises(NotForkedError, match="a zygote died while it imported"):
        Zygote(side.ours, side.end).prepare({}, 5)


def test_a_zygote_that_is_not_ready_in_time_is_told(side_that):
    side = side_that(lambda *_: None, lambda *_: None)
    zygote = Zygote(side.ours, side.end)
    with pytest.raises(NotForkedError, match="a zygote was not ready within 0 s"):
        zygote.prepare({}, 0.05)
    zygote._socket.send(b"{}")


def test_a_fork_is_asked_for_with_the_descriptors_of_its_container(side_that, target):
    side = side_that(reports(b"."))
    zygote = Zygote(side.ours, side.end)
    zygote.fork_into(target)
    side.join()
    asked = {"namespaces": 2, "control_groups": 1, "label": "docker-default (enforce)", "user": 20_007}
    assert side.messages == [(asked, 7)]
    assert zygote.forks == 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reports(b"OSError: [Errno 1] Operation not permitted"), r"Operation not permitted"),
        (lambda *_: None, "it was killed, by a lack of memory in the sandbox for one, or the zygote died"),
    ],
)
def test_a_fork_that_fails_says_why_and_counts_for_nothing(side_that, target, answer, why):
    side = side_that(answer)
    zygote = Zygote(side.ours, side.end)
    with pytest.raises(NotForkedError, match=why):
        zygote.fork_into(target)
    assert zygote.forks == 0


def test_a_zygote_that_has_died_is_seen_and_is_removed_when_it_is_asked(side_that, target):
    side = side_that()
    side.join()
    zygote = Zygote(side.ours, side.end)
    assert zygote.is_alive is False
    with pytest.raises(NotForkedError, match="the zygote has died"):
        zygote.fork_into(target)
    zygote.end()
    assert (side.ended, zygote.is_alive) == (1, False)


def test_a_fork_that_says_nothing_is_given_up_and_ends_the_zygote(side_that, target, monkeypatch):
    monkeypatch.setattr(module, "_FORK_S_MAX", 0.05)
    monkeypatch.setattr(module, "_ANSWER_S_MAX", 0.05)
    given_up = threading.Event()
    side = side_that(lambda *_: given_up.wait(30))
    zygote = Zygote(side.ours, side.end)
    with pytest.raises(NotForkedError, match="did not answer"):
        zygote.fork_into(target)
    outcome = (side.ended, zygote.is_alive)
    given_up.set()
    assert outcome == (1, False)


def test_a_fork_that_its_container_holds_up_ends_no_zygote_that_serves_others(side_that, target, monkeypatch):
    monkeypatch.setattr(module, "_FORK_S_MAX", 0.05)
    held = []
    side = side_that(lambda _, fds: held.append(os.dup(fds[0])), reports(b"."), reports(b"."))
    zygote = Zygote(side.ours, side.end)
    with pytest.raises(NotForkedError, match="did not answer"):
        zygote.fork_into(target)
    zygote.fork_into(target)
    side.join()
    os.close(held[0])
    assert (side.messages[1], side.ended, zygote.forks) == (({}, 1), 0, 1)


def test_where_there_is_nothing_to_be_told_by_nothing_is_forked(side_that, target, monkeypatch):
    side = side_that()
    zygote = Zygote(side.ours, side.end)

    def none_left(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(module.os, "pipe", none_left)
    with pytest.raises(NotForkedError, match="Too many open files"):
        zygote.fork_into(target)
