"""What the machine says of its memory."""

from proofbox.service.sandbox.host_info import meminfo


def test_memory_is_told_in_bytes(tmp_path):
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:       2048 kB\nMemAvailable:   1024 kB\nHugePages_Total:       0\n")
    assert meminfo(told) == {"MemTotal": 2048 * 1024, "MemAvailable": 1024 * 1024}


def test_a_machine_that_says_nothing_is_no_error(tmp_path):
    assert meminfo(tmp_path / "none") == {}
