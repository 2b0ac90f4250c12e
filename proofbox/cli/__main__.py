"""``python -m proofbox.cli``: the command line without an installed script."""

from proofbox.cli.program import main

if __name__ == "__main__":
    main()
