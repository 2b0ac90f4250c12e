"""Who may use the service, and how much of it: keys, authentication, quotas."""
