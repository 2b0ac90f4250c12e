"""What agents note for later runs, and the timer that fires their plans."""
