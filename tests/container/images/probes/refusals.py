"""Calls each refused system call with zeros and prints the error's name for each.

The numbers are those of asm/unistd.h: x86_64, aarch64. A call that a machine lacks is left out.
"""
# ruff: noqa: T201 -- what a probe prints is its answer

import ctypes
import errno
import json
import platform

NUMBERS = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "setns": (308, 268),
    "unshare": (272, 97),
    "chroot": (161, 51),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "lookup_dcookie": (212, 18),
    "perf_event_open": (298, 241),
    "seccomp": (317, 277),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "acct": (163, 89),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "ioperm": (173, None),
    "iopl": (172, None),
    "modify_ldt": (154, None),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "settimeofday": (164, 170),
    "sync": (162, 81),
    "syncfs": (306, 267),
    "get_mempolicy": (239, 236),
    "set_mempolicy": (238, 237),
    "mbind": (237, 235),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "ioprio_set": (251, 30),
    "capset": (126, 91),
    "remap_file_pages": (216, 234),
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    "io_submit": (209, 2),
    "splice": (275, 76),
    "tee": (276, 77),
    "vmsplice": (278, 75),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "semget": (64, 190),
    "shmget": (29, 194),
    "pkey_alloc": (330, 289),
    "landlock_create_ruleset": (444, 444),
    "memfd_secret": (447, 447),
    "process_mrelease": (448, 448),
    "set_mempolicy_home_node": (450, 450),
    "cachestat": (451, 451),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "lsm_list_modules": (461, 461),
    "mseal": (462, 462),
}

column = ("x86_64", "aarch64").index(platform.machine())
libc = ctypes.CDLL(None, use_errno=True)
told = {}
for name, numbers in NUMBERS.items():
    if numbers[column] is not None:
        ctypes.set_errno(0)
        result = libc.syscall(numbers[column], 0, 0, 0, 0, 0, 0)
        told[name] = errno.errorcode[ctypes.get_errno()] if result == -1 else f"answered {result}"
print(json.dumps(told))
