"""Many workers on one machine: throughput, what dispatch adds, kills, and the operations of a call."""
