"""The sums of a call's connections by host."""

from proofbox.service.egress.ledger import Entry, Ledger


def close(ledger, host, *, allowed=True, sent=1, received=2):
    ledger.close(Entry(host=host, port=443, allowed=allowed, bytes_sent=sent, bytes_received=received))


def test_connections_to_one_host_and_port_are_summed():
    ledger = Ledger(1000, [])
    close(ledger, "a.test")
    close(ledger, "b.test", sent=5)
    close(ledger, "a.test", allowed=False, received=0)
    ledger.close(Entry(host="a.test", port=80, allowed=True))
    found = [(each.host, each.port, each.connections, each.refused, each.bytes_sent) for each in ledger.use.hosts]
    assert found == [("a.test", 443, 2, 1, 2), ("b.test", 443, 1, 0, 5), ("a.test", 80, 1, 0, 0)]


def test_refused_hosts_take_no_room_from_those_with_connections():
    ledger = Ledger(1000, [])
    for number in range(300):
        close(ledger, f"evil{number}.test", allowed=False)
    for number in range(300):
        close(ledger, f"good{number}.test")
    refused = [each.host for each in ledger.use.hosts if each.refused]
    assert (len(refused), len(ledger.use.hosts)) == (50, 150)
    assert (ledger.use.total, ledger.use.refused) == (600, 300)


def test_a_connection_that_named_no_host_is_in_no_sum_of_a_host():
    ledger = Ledger(1000, [])
    close(ledger, "", allowed=False)
    assert ledger.use.hosts == []
    assert ledger.use.total == 1
