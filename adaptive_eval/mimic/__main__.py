"""The mimic server as a child process: :func:`adaptive_eval.mimic.serving.main`."""

import sys

from adaptive_eval.mimic.serving import main

if __name__ == "__main__":
    sys.exit(main())
