"""What the kernel would answer to a system call by a seccomp filter: its machine, as far as filters use it."""

import platform
import struct

ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[platform.machine()]
ALLOWED = 0x7FFF0000
ERRNO = 0x00050000


def verdict(program: bytes, number: int, *arguments: int, architecture: int = ARCHITECTURE) -> int:
    """The answer of a filter to one call: `ALLOWED`, or `ERRNO` and the number of an error."""
    data = struct.pack("<iIQ6Q", number, architecture, 0, *(*arguments, *[0] * 6)[:6])
    rows = list(struct.iter_unpack("<HBBI", program))
    at, held = 0, 0
    while True:
        code, jump_true, jump_false, value = rows[at]
        at += 1
        kind = code & 0x07
        if kind == 0x00:  # load a word
            held = struct.unpack_from("<I", data, value)[0]
        elif kind == 0x04:  # of arithmetic only "and" is used
            assert code & 0xF0 == 0x50, hex(code)
            held &= value
        elif kind == 0x05:
            test = code & 0xF0
            if test == 0x00:
                at += value
            else:
                is_true = {0x10: held == value, 0x20: held > value, 0x30: held >= value, 0x40: held & value != 0}[
                    test
                ]
                at += jump_true if is_true else jump_false
        else:
            assert kind == 0x06, hex(code)
            return value
