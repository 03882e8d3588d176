"""``python -m adaptive_eval``: the command line."""

from adaptive_eval.cli import main

if __name__ == "__main__":
    main()
