"""What every sandboxed job shares: inputs, the run, verdicts, produced files."""
