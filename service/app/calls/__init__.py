"""The wiring of calls: who may run how many, and what runs their programs."""
