"""Many processes: accepted calls are queued on NATS JetStream, and workers claim and run them."""
