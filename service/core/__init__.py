"""The story of a call, with no I/O library in it: ports, execution, rehosting, verdicts, reports, blocks."""
