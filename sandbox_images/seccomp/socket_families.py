"""What a program may do with sockets: of two address families and Unix sockets, what libraries use."""

from rules import Condition, Family

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
# A socket's type without the flags beside it, from <linux/net.h>; the two types and their protocols.
SOCK_TYPE_MASK, SOCK_STREAM, SOCK_DGRAM = 0xF, 1, 2
IPPROTO_DEFAULT, IPPROTO_TCP, IPPROTO_UDP = 0, 6, 17
# From <linux/socket.h>: flags that are refused, and the levels of options.
MSG_OOB, MSG_ZEROCOPY = 0x1, 0x4000000
SOL_IP, SOL_SOCKET, SOL_TCP, SOL_UDP, SOL_IPV6 = 0, 1, 6, 17, 41
# Options of <asm-generic/socket.h>, <linux/in.h>, <linux/tcp.h> and <linux/in6.h>.
SO_BINDTODEVICE, SO_TIMESTAMP, SO_TIMESTAMPNS = 25, 29, 35  # 26 attaches a filter
IP_TTL, IP_PKTINFO, IP_MTU_DISCOVER, IP_RECVERR, IP_RECVTTL, IP_RECVTOS, IP_MULTICAST_ALL = 2, 8, 10, 11, 12, 13, 49
TCP_WINDOW_CLAMP, TCP_USER_TIMEOUT, TCP_FASTOPEN, TCP_NOTSENT_LOWAT = 12, 18, 23, 25  # 13 chooses a kernel module
IPV6_UNICAST_HOPS, IPV6_MTU_DISCOVER, IPV6_RECVERR, IPV6_V6ONLY, IPV6_MULTICAST_ALL = 16, 23, 25, 26, 29
IPV6_RECVPKTINFO, IPV6_RECVHOPLIMIT, IPV6_RECVTCLASS, IPV6_TCLASS = 49, 51, 66, 67
OPTIONS: dict[int, tuple[int, tuple[int, ...]]] = {
    SOL_SOCKET: (SO_BINDTODEVICE, (SO_TIMESTAMP, SO_TIMESTAMPNS)),
    SOL_IP: (IP_TTL, (IP_PKTINFO, IP_MTU_DISCOVER, IP_RECVERR, IP_RECVTTL, IP_RECVTOS, IP_MULTICAST_ALL)),
    SOL_TCP: (TCP_WINDOW_CLAMP, (TCP_USER_TIMEOUT, TCP_FASTOPEN, TCP_NOTSENT_LOWAT)),
    SOL_IPV6: (
        0,
        (
            *(IPV6_UNICAST_HOPS, IPV6_MTU_DISCOVER, IPV6_RECVERR, IPV6_V6ONLY, IPV6_MULTICAST_ALL),
            *(IPV6_RECVPKTINFO, IPV6_RECVHOPLIMIT, IPV6_RECVTCLASS, IPV6_TCLASS),
        ),
    ),
}
"""What can be set, by level: all options up to one, and some beyond it."""
TCP_FASTOPEN_NO_COOKIE = 34  # the last one that can be asked for before TCP_ZEROCOPY_RECEIVE

SOCKETS = (
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
        "accept accept4 bind connect getpeername getsockname listen shutdown",
    ),
    *(
        Family(
            "messages",
            "without MSG_OOB, which had holes on Unix sockets, and without MSG_ZEROCOPY, which puts pages of a"
            " mapped file into sockets; nothing in the image uses either",
            calls,
            (Condition(flags, 0, mask=MSG_OOB | MSG_ZEROCOPY),),
        )
        for calls, flags in (("recvmsg sendmsg", 2), ("recvfrom recvmmsg sendmmsg sendto", 3))
    ),
    *(
        Family(
            "options of sockets",
            "buffers, timeouts, keepalive, addresses. Filters, protocols inside of TCP and UDP (ULP,"
            " encapsulation), signatures, offloads and zero copy are kernel code that no local program needs",
            "setsockopt",
            (Condition(1, level), option),
        )
        for level, (up_to, others) in OPTIONS.items()
        for option in (Condition(2, up_to, at_most=True), *(Condition(2, number) for number in others))
    ),
    Family(
        "options of sockets",
        "of TCP, but no pages",
        "getsockopt",
        (Condition(1, SOL_TCP), Condition(2, TCP_FASTOPEN_NO_COOKIE, at_most=True)),
    ),
    *(
        Family("options of sockets", "as they are", "getsockopt", (Condition(1, level),))
        for level in (SOL_SOCKET, SOL_IP, SOL_UDP, SOL_IPV6)
    ),
)
