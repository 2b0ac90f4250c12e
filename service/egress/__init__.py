"""The network of programs: an allow-list, checked addresses and a ledger, outside of the sandbox."""
