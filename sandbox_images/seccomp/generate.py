"""Writes `sandbox.json`, the seccomp profile of every sandbox, from the families below.

    python3 generate.py           writes sandbox.json beside this file
    python3 generate.py --check   exit status 1 and one sentence if sandbox.json does not match its families

The profile is an allow-list: a system call in no family is refused with EPERM. It is meant for a process that is
not root, has no capability and runs under no-new-privileges (the runtime then applies it last), on x86_64 or
aarch64. The 64-bit call table is the only one: a call through the 32-bit one kills the caller, because there
`socketcall` hides the address family from every filter. It stays inside what Docker's own profile allows a
container without capabilities.

Names that an older libseccomp does not know are left out by the runtime, so the profile also loads there.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROFILE = Path(__file__).with_name("sandbox.json")

EPERM = 1
ENOSYS = 38

# From <linux/sched.h>: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. CLONE_NEWTIME lies in
# the bits of the exit signal, where clone(2) does not look for it.
CLONE_NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
# From <sys/stat.h>: the file type in a mode, a regular file and a FIFO.
S_IFMT, S_IFREG, S_IFIFO = 0o170000, 0o100000, 0o010000
AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
# A socket's type without the flags beside it, from <linux/net.h>; the two types and their protocols.
SOCK_TYPE_MASK, SOCK_STREAM, SOCK_DGRAM = 0xF, 1, 2
IPPROTO_DEFAULT, IPPROTO_TCP, IPPROTO_UDP = 0, 6, 17
# personality(2) with all bits set asks for the current value.
PERSONALITY_LINUX, PERSONALITY_QUERY = 0, 0xFFFFFFFF


@dataclass(frozen=True)
class Condition:
    """One comparison of a call's argument; a call has to meet all conditions of a rule.

    `mask` is None for plain equality, otherwise only the masked bits are compared.
    """

    argument: int
    value: int
    mask: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The comparison in the form that container runtimes read; for a masked one `value` is the mask."""
        if self.mask is None:
            return {"index": self.argument, "value": self.value, "op": "SCMP_CMP_EQ"}
        return {
            "index": self.argument,
            "value": self.mask,
            "valueTwo": self.value,
            "op": "SCMP_CMP_MASKED_EQ",
        }


@dataclass(frozen=True)
class Family:
    """System calls that share one reason.

    `conditions` narrows an allowed family. `errno` makes it a refusal with that error in place of EPERM.
    """

    name: str
    reason: str
    syscalls: str
    conditions: tuple[Condition, ...] = ()
    errno: int | None = None

    @property
    def names(self) -> list[str]:
        """The calls of the family, sorted."""
        return sorted(self.syscalls.split())

    def as_json(self) -> dict[str, Any]:
        """The family as one rule of the profile."""
        rule: dict[str, Any] = {"names": self.names}
        if self.errno is None:
            rule["action"] = "SCMP_ACT_ALLOW"
        else:
            rule |= {"action": "SCMP_ACT_ERRNO", "errnoRet": self.errno}
        rule["args"] = [condition.as_json() for condition in self.conditions]
        rule["comment"] = f"{self.name}: {self.reason}"
        return rule


ALLOWED = (
    Family(
        "files",
        "open, read, write and close; bounded by the size and the inodes of the sandbox's own mounts",
        """close close_range copy_file_range creat dup dup2 dup3 fadvise64 fallocate fcntl fdatasync flock
        fsync ftruncate ioctl lseek open openat openat2 pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev
        pwritev2 read readahead readv sendfile sync_file_range truncate write writev""",
    ),
    Family(
        "folders and names",
        "walk, make, rename and remove",
        """chdir fchdir getcwd getdents getdents64 link linkat mkdir mkdirat readlink readlinkat rename
        renameat renameat2 rmdir symlink symlinkat umask unlink unlinkat""",
    ),
    Family(
        "file attributes",
        "what ls, cp -p, tar and shutil.copystat read and set; owners cannot change without capabilities",
        """access chmod chown faccessat faccessat2 fchmod fchmodat fchmodat2 fchown fchownat fgetxattr
        flistxattr fremovexattr fsetxattr fstat fstatfs futimesat getxattr lchown lgetxattr listxattr
        llistxattr lremovexattr lsetxattr lstat newfstatat removexattr setxattr stat statfs statx utime
        utimensat utimes""",
    ),
    Family("named pipes and empty files", "mkfifo", "mknod", (Condition(1, S_IFIFO, S_IFMT),)),
    Family("named pipes and empty files", "mknod of a regular file", "mknod", (Condition(1, S_IFREG, S_IFMT),)),
    Family("named pipes and empty files", "mkfifo", "mknodat", (Condition(2, S_IFIFO, S_IFMT),)),
    Family("named pipes and empty files", "mknod of a regular file", "mknodat", (Condition(2, S_IFREG, S_IFMT),)),
    Family(
        "memory",
        "allocators, threads' stacks, shared libraries and foreign-function closures; bounded by the memory limit",
        """brk madvise membarrier mincore mlock mlock2 mmap mprotect mremap msync munlock munmap""",
    ),
    Family(
        "anonymous files",
        "memfd_create holds data that counts as the sandbox's memory; running a program from it gains nothing where"
        " arbitrary code runs anyway",
        "memfd_create",
    ),
    Family(
        "processes",
        "start, wait for and end programs; the number is bounded by the pids limit",
        """execve execveat exit exit_group fork getpgid getpgrp getpid getppid getsid gettid pidfd_open
        pidfd_send_signal prctl restart_syscall rseq set_robust_list set_tid_address setpgid setsid vfork
        wait4 waitid""",
    ),
    Family(
        "threads and forks",
        "clone without any flag that makes a namespace",
        "clone",
        (Condition(0, 0, CLONE_NEW_NAMESPACES),),
    ),
    Family(
        "signals",
        "within the sandbox's own process namespace",
        """kill pause rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend
        rt_sigtimedwait rt_tgsigqueueinfo sigaltstack signalfd signalfd4 tgkill tkill""",
    ),
    Family(
        "waiting",
        "locks, timers and event loops",
        """alarm clock_getres clock_gettime clock_nanosleep epoll_create epoll_create1 epoll_ctl epoll_pwait
        epoll_pwait2 epoll_wait eventfd eventfd2 futex getitimer gettimeofday inotify_add_watch
        inotify_init inotify_init1 inotify_rm_watch nanosleep poll ppoll pselect6 select setitimer time
        timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create
        timerfd_gettime timerfd_settime times""",
    ),
    Family(
        "identity",
        "read who one is, or set it to what it is already, as shells do",
        """capget getegid geteuid getgid getgroups getresgid getresuid getuid setfsgid setfsuid setgid
        setgroups setregid setresgid setresuid setreuid setuid""",
    ),
    Family(
        "scheduling",
        "thread pools count and choose processors and give way",
        """getcpu getpriority ioprio_get sched_get_priority_max sched_get_priority_min sched_getaffinity
        sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity
        sched_yield""",
    ),
    Family(
        "own priority",
        "nice; only for the caller, not for process 1",
        "setpriority",
        (Condition(0, 0), Condition(1, 0)),
    ),
    Family(
        "own priority",
        "a scheduling class for the caller, not for process 1",
        "sched_setattr sched_setparam sched_setscheduler",
        (Condition(0, 0),),
    ),
    Family("limits", "read and lower one's own, and the usage", "getrlimit getrusage setrlimit"),
    Family(
        "limits",
        "as glibc does it: with process 0, the caller. The limits of process 1 are out of reach",
        "prlimit64",
        (Condition(0, 0),),
    ),
    Family("system facts", "versions, load and random numbers", "getrandom sysinfo uname"),
    Family("x86 threads", "thread-local storage on x86_64", "arch_prctl"),
    Family(
        "personality",
        "only the ordinary one: others weaken the address layout or select old behaviour",
        "personality",
        (Condition(0, PERSONALITY_LINUX),),
    ),
    Family("personality", "asks for the current one", "personality", (Condition(0, PERSONALITY_QUERY),)),
    Family("local sockets", "multiprocessing, asyncio, logging", "socket", (Condition(0, AF_UNIX),)),
    Family("local sockets", "multiprocessing, asyncio", "socketpair", (Condition(0, AF_UNIX),)),
    *(
        Family(
            "loopback",
            f"a server and its client inside one sandbox: {version}, {transport}. Rarer protocols would only add to"
            " what of the kernel is in reach",
            "socket",
            (Condition(0, family), Condition(1, kind, SOCK_TYPE_MASK), Condition(2, protocol)),
        )
        for version, family in (("IPv4", AF_INET), ("IPv6", AF_INET6))
        for transport, kind, protocol in (
            ("TCP", SOCK_STREAM, IPPROTO_DEFAULT),
            ("TCP", SOCK_STREAM, IPPROTO_TCP),
            ("UDP", SOCK_DGRAM, IPPROTO_DEFAULT),
            ("UDP", SOCK_DGRAM, IPPROTO_UDP),
        )
    ),
    Family(
        "use of sockets",
        "of the three address families that can be opened",
        """accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg
        sendmmsg sendmsg sendto setsockopt shutdown""",
    ),
)

# Refused as if this kernel did not have them: libraries try these first and fall back to the older call only on
# ENOSYS.
UNAVAILABLE = (
    Family(
        "clone3",
        "its flags lie in memory where a filter cannot read them; glibc falls back to clone",
        "clone3",
        errno=ENOSYS,
    ),
    Family(
        "io_uring",
        "submits other system calls past every filter, and has been the way into the kernel of many an escape",
        "io_uring_enter io_uring_register io_uring_setup",
        errno=ENOSYS,
    ),
    Family(
        "old asynchronous input and output",
        "nothing in the image uses it",
        "io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit",
        errno=ENOSYS,
    ),
    Family(
        "page cache in pipes",
        "puts pages of files that containers share into pipes: the way of Dirty Pipe. sendfile and copying remain",
        "splice tee vmsplice",
        errno=ENOSYS,
    ),
    Family(
        "System V and POSIX message queues, semaphores and segments",
        "kernel objects that outlive their process; Python's multiprocessing uses files in /dev/shm",
        """mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd
        semctl semget semop semtimedop shmat shmctl shmdt shmget""",
        errno=ENOSYS,
    ),
    Family(
        "memory protection keys",
        "used by nothing in the image",
        "pkey_alloc pkey_free pkey_mprotect",
        errno=ENOSYS,
    ),
    Family(
        "newer calls",
        "since Linux 5.12; optional everywhere, used by nothing in the image. Where libseccomp does not know one"
        " yet, the runtime answers in the same way",
        """cachestat file_getattr file_setattr futex_requeue futex_wait futex_waitv futex_wake getxattrat
        landlock_add_rule landlock_create_ruleset landlock_restrict_self listmount listxattrat
        lsm_get_self_attr lsm_list_modules lsm_set_self_attr map_shadow_stack memfd_secret mount_setattr mseal
        open_tree_attr process_mrelease quotactl_fd removexattrat set_mempolicy_home_node setxattrat
        statmount""",
        errno=ENOSYS,
    ),
)

# In no rule, so refused with EPERM. Named here so that the tests can show each refusal, and so that moving one of
# them up is a decision somebody has to write down.
REFUSED = (
    Family(
        "other processes' memory and files",
        "process 1 holds the stream to the service: nothing may look into it",
        "kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace",
    ),
    Family("namespaces", "a new user namespace gives capabilities over new kernel code", "setns unshare"),
    Family(
        "mounts",
        "the sandbox's file systems are settled before it starts",
        """chroot fsconfig fsmount fsopen fspick mount move_mount open_tree pivot_root umount2""",
    ),
    Family(
        "file handles",
        "reach files by number past the mount's root, the way of shocker",
        "name_to_handle_at open_by_handle_at",
    ),
    Family(
        "kernel programs and probes",
        "whole attack surfaces of their own",
        "bpf fanotify_init fanotify_mark lookup_dcookie perf_event_open seccomp userfaultfd",
    ),
    Family("key rings", "are shared by everything that runs under one user id", "add_key keyctl request_key"),
    Family(
        "the machine",
        "modules, kexec, power, swap, quota, accounting, names, the log and raw input and output",
        """acct delete_module finit_module init_module ioperm iopl kexec_file_load kexec_load modify_ldt
        quotactl reboot setdomainname sethostname swapoff swapon syslog vhangup""",
    ),
    Family(
        "the clock",
        "belongs to the machine",
        "adjtimex clock_adjtime clock_settime settimeofday",
    ),
    Family(
        "flushing",
        "sync and syncfs write out the file systems of the whole host and hold up everybody on it; fsync remains",
        "sync syncfs",
    ),
    Family(
        "placement",
        "memory policy and disk priority act on others too",
        "get_mempolicy ioprio_set mbind migrate_pages move_pages set_mempolicy",
    ),
    Family("capabilities", "there are none to set", "capset"),
    Family("obsolete", "kept by the kernel for old programs only", "remap_file_pages uselib ustat sysfs _sysctl"),
)


def profile() -> dict[str, Any]:
    """The whole profile as a JSON object.

    Raises:
        ValueError: a call is both allowed and refused, or a family has no reason.
    """
    if silent := [family.names for family in (*ALLOWED, *UNAVAILABLE, *REFUSED) if not family.reason.strip()]:
        raise ValueError(f"no reason is given for {silent}")
    allowed = {name for family in ALLOWED for name in family.names}
    refused = {name for family in (*UNAVAILABLE, *REFUSED) for name in family.names}
    if allowed & refused:
        raise ValueError(f"both allowed and refused: {', '.join(sorted(allowed & refused))}")
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": [family.as_json() for family in (*ALLOWED, *UNAVAILABLE)],
    }


def main(arguments: list[str]) -> int:
    """Writes the profile, or checks it; the exit status says whether it was in step."""
    wanted = json.dumps(profile(), indent=2) + "\n"
    if arguments == ["--check"]:
        if PROFILE.is_file() and PROFILE.read_text(encoding="utf-8") == wanted:
            return 0
        sys.stderr.write("sandbox.json does not match its families: run generate.py and commit the result\n")
        return 1
    PROFILE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
