"""What runs inside the sandbox: bounds itself for good, runs an answer's code, then the tests.

Its text is given to the sandbox's Python with ``-c``; it knows nothing of this package. The standard input
holds the task as JSON and then a secret. The secret is read only after the tests have passed, and written to
the outside: an answer that ends the process before the tests have run does not know it. Arguments: the length
of the task, and the descriptor to write to.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from types import ModuleType


def main() -> None:
    """Run the task."""
    length, outside = int(sys.argv[1]), int(sys.argv[2])
    given = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # nothing for an answer that reads its input
    data = b""
    while len(data) < length:
        data += os.read(given, length - len(data))
    task = json.loads(data)
    for name, (soft, hard) in task["limits"].items():
        resource.setrlimit(getattr(resource, name), (soft, hard))
    if task["user"] is not None:  # begun as root, for which some limits do not hold
        os.setgroups([])
        os.setgid(task["user"])
        os.setuid(task["user"])
    os.write(outside, b"started\n")
    answer = ModuleType("answer")
    sys.modules["answer"] = answer
    sys.argv = ["answer"]
    exec(compile(task["code"], "<answer>", "exec"), answer.__dict__)  # noqa: S102 - what the sandbox is for
    answer.__dict__["__name__"] = "__main__"  # where unittest.main() looks for tests
    sys.modules["__main__"] = answer
    try:
        exec(compile(task["tests"], "<tests>", "exec"), answer.__dict__)  # noqa: S102
    except SystemExit as end:
        if end.code not in (None, 0, False):
            raise
    os.write(outside, os.read(given, 64))


if __name__ == "__main__":
    main()
