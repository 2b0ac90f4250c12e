"""What several commands share: inputs and promises, calls and their outcomes, output, errors, saved services."""
