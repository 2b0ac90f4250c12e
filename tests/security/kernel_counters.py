"""The programs of `test_neighbours`: how one takes of each counter of the kernel, all that there is or a little.

Runs in a sandbox; the test adds the call of a function.
"""

import contextlib
import ctypes
import errno
import fcntl
import itertools
import json
import mmap
import os
import platform
import select
import signal
import socket
import struct
import time
from pathlib import Path
from typing import NoReturn

libc = ctypes.CDLL(None, use_errno=True)
ADD_KEY, IO_SETUP = {"x86_64": (248, 206), "aarch64": (217, 0)}[platform.machine()]
F_SETPIPE_SZ, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, IPC_PRIVATE, IPC_CREAT = 1031, 22, 2, 0, 0o1000
SO_ATTACH_FILTER, CLOCK_MONOTONIC, IN_MODIFY, IN_DONT_FOLLOW = 26, 1, 0x2, 0x2000000
LOCKED_BYTES, PIPE_BYTES, WATCHED, WATCHED_FILES = 16_384, 1 << 20, 500, 2_000
NUMBER = signal.SIGRTMIN + 1
held = []


class Filter(ctypes.Structure):
    """One instruction that allows everything, as the kernel takes a program."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


PROGRAM = Filter(1, struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000))


def checked(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def descriptors():
    pair = socket.socketpair()
    socket.send_fds(pair[0], [b"x"], [0] * 250)
    return pair


def pipe():
    pair = os.pipe()
    fcntl.fcntl(pair[1], F_SETPIPE_SZ, PIPE_BYTES)
    return pair


def pending_signal():
    signal.pthread_sigmask(signal.SIG_BLOCK, [NUMBER])
    checked(libc.sigqueue(os.getpid(), NUMBER, ctypes.c_void_p(0)))


def timer():
    checked(libc.timer_create(CLOCK_MONOTONIC, None, ctypes.byref(ctypes.c_void_p())))


def inotify_instance():
    return checked(libc.inotify_init())


def inotify_watches():
    """An instance that watches many files of the image."""
    if not held:
        held.append([str(path).encode() for path in itertools.islice(Path("/usr").rglob("*"), WATCHED_FILES)])
    instance = inotify_instance()
    for path in held[0]:
        checked(libc.inotify_add_watch(instance, path, IN_MODIFY | IN_DONT_FOLLOW))
    return instance


def epoll_watches():
    if not held:
        held.append([os.eventfd(0) for _ in range(WATCHED)])
    poll = select.epoll()
    for fd in held[0]:
        poll.register(fd, select.EPOLLIN)
    return poll


def terminal():
    return os.openpty()


def locked_memory():
    memory = mmap.mmap(-1, LOCKED_BYTES)
    checked(libc.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory))), LOCKED_BYTES))
    return memory


def open_file():
    return os.open("/dev/null", os.O_RDONLY)


def process():
    if os.fork() == 0:
        hold()


def key():
    checked(libc.syscall(ADD_KEY, b"user", b"name", b"value", 5, -4))


def posix_queue():
    checked(libc.mq_open(b"/queue", os.O_CREAT | os.O_RDWR, 0o600, None))


def system_v_queue():
    checked(libc.msgget(IPC_PRIVATE, IPC_CREAT | 0o600))


def system_v_memory():
    checked(libc.shmget(IPC_PRIVATE, 4_096, IPC_CREAT | 0o600))


def system_v_semaphores():
    checked(libc.semget(IPC_PRIVATE, 1, IPC_CREAT | 0o600))


def asynchronous_requests():
    checked(libc.syscall(IO_SETUP, 128, ctypes.byref(ctypes.c_ulong(0))))


def filter_of_calls():
    checked(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(PROGRAM), 0, 0))


def filter_of_a_socket():
    connection = socket.socket(socket.AF_UNIX)
    connection.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, bytes(PROGRAM))


COUNTERS = {
    # How one takes of it, and how often at most: so often that an operator's larger limit ends no test.
    "descriptors in flight": (descriptors, 500),
    "pages of pipes": (pipe, 500),
    "pending signals": (pending_signal, 5_000),
    "timers": (timer, 5_000),
    "inotify watches": (inotify_watches, 100),
    "inotify instances": (inotify_instance, 900),
    "epoll watches": (epoll_watches, 400),
    "pseudo-terminals": (terminal, 400),
    "locked memory": (locked_memory, 100),
    "open files": (open_file, 5_000),
    "processes": (process, 5_000),
    "keys": (key, 1),
    "POSIX message queues": (posix_queue, 1),
    "System V message queues": (system_v_queue, 1),
    "System V shared memory": (system_v_memory, 1),
    "System V semaphores": (system_v_semaphores, 1),
    "asynchronous requests": (asynchronous_requests, 1),
    "kernel programs, of calls": (filter_of_calls, 1),
    "kernel programs, of sockets": (filter_of_a_socket, 1),
}


def taken(take, most):
    """Takes until it is refused: by which error it was, or that it never was."""
    for _ in range(most):
        try:
            held.append(take())
        except OSError as error:
            return errno.errorcode[error.errno]
    return "taken"


def in_a_child(take, most, then):
    """The same in a process of its own, which does ``then`` with what it holds."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        os.write(writing, taken(take, most).encode())
        os.close(writing)
        then()
    os.close(writing)
    answer = os.read(reading, 100).decode()  # not to its end: a process that was taken holds the other side as well
    os.close(reading)
    return answer


def hold() -> NoReturn:
    while True:
        time.sleep(600)


def leave() -> NoReturn:
    os._exit(0)


def take_all():
    """Takes all of each counter, prints how that ended, and holds it."""
    # Processes last, or there would be none left for the others.
    found = {name: in_a_child(*how, hold) for name, how in COUNTERS.items() if name != "processes"}
    found["processes"] = taken(*COUNTERS["processes"])
    print("exhausted", json.dumps(found), flush=True)  # noqa: T201 - the test reads it
    hold()


def take_descriptors():
    """The same of the descriptors in flight alone."""
    found = {"descriptors in flight": taken(*COUNTERS["descriptors in flight"])}
    print("exhausted", json.dumps(found), flush=True)  # noqa: T201 - the test reads it
    hold()


def take_little():
    """Takes one of each counter."""
    return {name: in_a_child(take, 1, leave) for name, (take, _) in COUNTERS.items()}


def take_buffers(connections):
    """Fills connections over TCP that nobody reads from; the bytes that the kernel holds of that."""
    listener = socket.create_server(("127.0.0.1", 0))
    size = 0
    for _ in range(connections):
        connection = socket.create_connection(listener.getsockname())
        connection.settimeout(0)
        held.extend((connection, listener.accept()[0]))
        with contextlib.suppress(BlockingIOError):
            while True:
                size += connection.send(bytes(1 << 20))
    return size
