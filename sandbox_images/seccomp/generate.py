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
from pathlib import Path
from typing import Any

from rules import Condition, Family
from socket_families import SOCKETS

PROFILE = Path(__file__).with_name("sandbox.json")

EPERM = 1
EINVAL = 22
ENOSYS = 38

# From <linux/sched.h>: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. CLONE_NEWTIME lies in
# the bits of the exit signal, where clone(2) does not look for it.
CLONE_NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
# From <sys/stat.h>: the file type in a mode, a regular file and a FIFO.
S_IFMT, S_IFREG, S_IFIFO = 0o170000, 0o100000, 0o010000
# From <linux/prctl.h>: of the lower options the next is PR_SET_SECCOMP (22).
PR_GET_SECCOMP, PR_CAPBSET_READ = 21, 23
PR_SET_VMA, PR_SET_PTRACER = 0x53564D41, 0x59616D61
# personality(2) with all bits set asks for the current value.
PERSONALITY_LINUX, PERSONALITY_QUERY = 0, 0xFFFFFFFF


ALLOWED = (
    Family(
        "files",
        "open, read, write and close; bounded by the size and the inodes of the sandbox's own mounts",
        """close close_range copy_file_range creat dup dup2 dup3 fadvise64 fallocate fcntl fdatasync flock
        fsync ftruncate ioctl lseek open openat openat2 pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev
        pwritev2 read readahead readv sync_file_range truncate write writev""",
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
        pidfd_send_signal restart_syscall rseq set_robust_list set_tid_address setpgid setsid vfork
        wait4 waitid""",
    ),
    *(
        Family(
            "own process",
            "names of threads, the signal at the parent's death, and other settings of the caller alone; all but"
            " PR_SET_SECCOMP, which gives the kernel programs to compile, in memory that all containers share",
            "prctl",
            (condition,),
        )
        for condition in (
            Condition(0, PR_GET_SECCOMP, at_most=True),
            Condition(0, PR_CAPBSET_READ),
            Condition(0, 24, mask=0xFFFFFFF8),  # 24 to 31
            Condition(0, 32, mask=0xFFFFFFE0),  # 32 to 63
            Condition(0, PR_SET_VMA),
            Condition(0, PR_SET_PTRACER),
        )
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
    *SOCKETS,
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
        "puts pages of files that containers share into pipes: the way of Dirty Pipe. Copying remains",
        "splice tee vmsplice",
        errno=ENOSYS,
    ),
    Family(
        "page cache in sockets",
        "puts pages of files that containers share into sockets: the way of Dirty Frag. EINVAL is what the kernel"
        " answers where it cannot, so all libraries then read and write; copy_file_range takes no socket",
        "sendfile",
        errno=EINVAL,
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
