"""The zygote: a process that imports libraries once and is forked into containers, and what it takes."""
