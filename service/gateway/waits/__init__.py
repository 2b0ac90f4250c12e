"""Waiting for answers from outside: space tools, approval, webhooks, and the ends of waits."""
