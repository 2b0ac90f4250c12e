"""Makes one harmless call (getpid) through the 32-bit table of x86 and prints how the caller ended."""
# ruff: noqa: T201 -- what a probe prints is its answer

import ctypes
import json
import mmap
import os
import platform

# mov eax, 20; int 0x80; ret
GETPID_OF_32_BITS = bytes.fromhex("b814000000cd80c3")

if platform.machine() == "x86_64":
    child = os.fork()
    if child == 0:
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(GETPID_OF_32_BITS)
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
        os._exit(0)
    print(json.dumps({"x86_64": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}))
else:
    print(json.dumps({platform.machine(): "no 32-bit table"}))
