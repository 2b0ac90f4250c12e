"""The sandbox image: its build, the programs inside it, and what the service shares with them."""
