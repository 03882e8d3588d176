"""Programs that end early, replace what judges them or look for the secret: none of them passes its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptive_eval.errors import UsageError
from adaptive_eval.scoring.sandbox import Limits, require_sandbox, run_tests

try:
    require_sandbox()
except UsageError as error:
    pytest.skip(f"no sandbox: {error}", allow_module_level=True)

PATIENT = Limits(wall=60.0, cpu=20.0)
ADD = "result = add(1, 2)\nassert result == 3\npass"
UNITTEST = """
import unittest
class Sums(unittest.TestCase):
    def test(self):
        self.assertEqual(add(1, 2), 3)
unittest.main()
"""
# Writes the end of everything in `found` that is as long as the secret to every descriptor.
TELL = """
import os
def tell(found):
    for one in {one[-32:] for one in found if isinstance(one, bytes) and len(one) >= 32}:
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, one)
            except OSError:
                pass
    os._exit(0)
"""

EXITS = {
    "sys.exit": "import sys\ndef add(a, b):\n    print(a + b)\n    sys.exit()",
    "SystemExit": "def add(a, b):\n    raise SystemExit(0)",
    "a subclass of SystemExit": "class End(SystemExit): code = 0\ndef add(a, b):\n    raise End",
    "an exception named SystemExit": "class SystemExit(BaseException): code = 0\n"
    "def add(a, b):\n    raise SystemExit",
    "another SystemExit in builtins": "import builtins\nclass End(BaseException): code = 0\n"
    "builtins.SystemExit = End\ndef add(a, b):\n    raise End",
    "SystemExit without a traceback": "def add(a, b):\n    raise SystemExit(0).with_traceback(None)",
    "SystemExit from a function of C": "import functools, sys\n"
    "add = lambda *_: functools.partial(sys.exit, 0)()",
    "os._exit": "import os\ndef add(a, b):\n    os._exit(0)",
    "KeyboardInterrupt": "def add(a, b):\n    raise KeyboardInterrupt",
    "GeneratorExit": "def add(a, b):\n    raise GeneratorExit",
    "os.execv": "import os\ndef add(a, b):\n    os.execv('/bin/true', ['true'])",
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\ndef add(a, b):\n    return 0",
    "excepthook": "import os, sys\nsys.excepthook = lambda *_: os._exit(0)\ndef add(a, b):\n    return 0",
    "a thread": "import os, threading, time\ndef add(a, b):\n"
    "    threading.Thread(target=os._exit, args=(0,)).start()\n    time.sleep(60)",
    "a signal": "import os\ndef add(a, b):\n    os.kill(os.getpid(), 15)",
    "a handler": "import signal, sys, time\nsignal.signal(signal.SIGALRM, lambda *_: sys.exit(0))\n"
    "def add(a, b):\n    signal.setitimer(signal.ITIMER_REAL, 0.01)\n    time.sleep(60)",
    "recursion": "def add(a, b):\n    return add(a, b)",
    "a copy that guesses": "import os\ndef add(a, b):\n    return 3 if os.fork() == 0 else 0",
    "an object equal to anything": "class Any:\n    def __eq__(self, other): return True\n"
    "def add(a, b):\n    return Any()",
    "a number equal to anything": "def add(a, b):\n"
    "    return type('Any', (int,), {'__eq__': lambda *_: True})()",
    "an object equal to data": "class Data:\n    def __eq__(self, other):\n"
    "        return isinstance(other, (int, float, str, list, tuple, dict))\n"
    "def add(a, b):\n    return Data()",
    "an object equal to any int": "def add(a, b):\n    class Int:\n"
    "        def __eq__(self, other): return type(other) is int\n    return Int()",
    "an int equal to anything": "class Int(int):\n    def __eq__(self, other): return True\n"
    "    __hash__ = int.__hash__\ndef add(a, b):\n    return Int(9)",
    "an object unequal to nothing": "class Some:\n    def __eq__(self, other): return other is not None\n"
    "    def __ne__(self, other): return False\ndef add(a, b):\n    return Some()",
    "mock.ANY": "from unittest.mock import ANY\ndef add(a, b):\n    return ANY",
    "a trace": "import sys\ndef skip(frame, event, _):\n    if event == 'line' and frame.f_lineno == 2:\n"
    "        frame.f_lineno = 3\n    return skip\n"
    "def add(a, b):\n    sys.settrace(skip)\n    sys._getframe(1).f_trace = skip\n    return 0",
    "the secret in descriptors": TELL + "def add(a, b):\n    found = []\n    for n in range(64):\n"
    "        try:\n            os.set_blocking(n, False)\n            found.append(os.read(n, 10**6))\n"
    "            found.append(os.pread(n, 10**6, 0))\n        except OSError:\n            pass\n"
    "    tell(found)",
    "the secret in files": TELL + "import glob\ndef add(a, b):\n    found = []\n"
    "    for place in [*glob.glob('/proc/*/fd/*'), *glob.glob('/proc/*/[ec]*')]:\n"
    "        try:\n            found.append(os.read(os.open(place, os.O_NONBLOCK), 10**6))\n"
    "        except OSError:\n            pass\n    tell(found)",
    "the secret in frames": TELL + "import sys\ndef add(a, b):\n    found, frame = [], sys._getframe()\n"
    "    while frame:\n        found += [*frame.f_locals.values(), *frame.f_globals.values()]\n"
    "        frame = frame.f_back\n    tell(found)",
    "the secret in containers": TELL + "import gc\ndef add(a, b):\n    found = gc.get_objects()\n"
    "    tell([*found, *gc.get_referents(*found)])",
}  # fmt: skip


@pytest.mark.parametrize("name", EXITS)
def test_a_program_that_ends_early_or_cheats_is_wrong(name):
    outcome = run_tests(EXITS[name], ADD, PATIENT)
    assert not outcome.passed, name


@pytest.mark.parametrize("name", [name for name in EXITS if name.startswith("the secret")])
def test_nor_where_bubblewrap_is_of_the_same_user(name):
    """As for every user but root: then a program may read the descriptors of bubblewrap's first process."""
    python = "/usr/bin/python3"
    if not Path(python).exists():
        pytest.skip(f"no {python}")
    assert not run_tests(EXITS[name], ADD, PATIENT, python).passed


REPLACED = {
    "all": ("import builtins\nbuiltins.all = lambda _: True", "assert all([add(1, 2) == 3])"),
    "abs, later": (
        "import builtins\ndef add(a, b):\n    builtins.abs = lambda _: 0\n    return 9",
        "assert abs(add(1, 2) - 3) < 1",
    ),
    "abs in the answer": ("def abs(x):\n    return 0", "assert abs(add(1, 2) - 3) < 1e-6"),
    "round in the answer": ("def round(x, n=0):\n    return 3", "assert round(add(1, 2)) == 3"),
    "sorted in the answer": ("sorted = lambda x: [3]", "assert sorted([add(1, 2)]) == [3]"),
    "abs, when called": (
        "def add(a, b):\n    globals()['abs'] = lambda x: 0\n    return 9",
        "result = add(1, 2)\nassert abs(result - 3) < 1e-6",
    ),
    "an object equal to any set": (
        "class Set:\n    def __eq__(self, other): return isinstance(other, set)\n"
        "def add(a, b):\n    return Set()",
        "assert add(1, 2) == {3}",
    ),
    "math.isclose": (
        "import math\nmath.isclose = lambda *_: True",
        "import math\nassert math.isclose(add(1, 2), 3)",
    ),
    "assertEqual": ("import unittest\nunittest.TestCase.assertEqual = lambda *_: None", UNITTEST),
    "__getattribute__": (
        "import unittest\nunittest.TestCase.__getattribute__ = lambda self, name: (lambda *_, **__: None)",
        UNITTEST,
    ),
    "unittest.main": ("import unittest\nunittest.main = lambda: None", UNITTEST),
    "unittest": (
        "import sys, types\nfake = sys.modules['unittest'] = types.ModuleType('unittest')\n"
        "fake.TestCase = object\nfake.main = lambda: None",
        UNITTEST,
    ),
    "__import__": (
        "import builtins, types\nfake = types.ModuleType('unittest')\nfake.TestCase = object\n"
        "fake.main = lambda: None\nbuiltins.__import__ = lambda *_, **__: fake",
        UNITTEST,
    ),
    "load_tests": ("import unittest\ndef load_tests(*_):\n    return unittest.TestSuite()", UNITTEST),
    "SkipTest": ("import unittest\ndef add(a, b):\n    raise unittest.SkipTest", UNITTEST),
    "the function of C": ("from sys import exit as add", "assert add(0) == 3"),
    "sys.exit in a test": ("import sys\ndef add(a, b):\n    sys.exit(0)", UNITTEST),
}  # fmt: skip


HONEST = {
    "a builtin of its own": "def max(xs):\n    return sorted(xs)[-1]\n"
    "def add(a, b):\n    return max([0, a + b])",
    "a fraction": "from fractions import Fraction\ndef add(a, b):\n    return Fraction(a) + b",
    "a counter": "from collections import Counter\ndef add(a, b):\n    return Counter('x' * (a + b))['x']",
    "its own order": "from dataclasses import dataclass\n@dataclass(order=True)\nclass P:\n    x: int\n"
    "def add(a, b):\n    return max(P(a + b), P(0)).x",
    "its own equality": "class V:\n    def __init__(self, x): self.x = x\n"
    "    def __eq__(self, other): return self.x == other.x\n"
    "def add(a, b):\n    assert V(1) == V(1)\n    return a + b",
}


@pytest.mark.parametrize("name", HONEST)
def test_a_right_program_may_shadow_builtins_and_compare_its_own_objects(name):
    assert run_tests(HONEST[name], ADD, PATIENT).passed


@pytest.mark.parametrize("name", REPLACED)
def test_a_program_that_replaces_what_judges_it_is_wrong(name):
    code, tests = REPLACED[name]
    outcome = run_tests("def add(a, b):\n    return 0\n" + code, tests, PATIENT)
    assert not outcome.passed, name


@pytest.mark.parametrize(
    "tests",
    [
        f"import sys\n{ADD}\nsys.exit(0)",
        f"{ADD}\nraise SystemExit",
        "from sys import exit\ndef main():\n    assert add(1, 2) == 3\n    exit()\n"
        "if __name__ == '__main__':\n    main()",
        UNITTEST,
        "import unittest\nclass Sums(unittest.TestCase):\n    @unittest.skip('later')\n"
        "    def test(self): pass\nunittest.main()",
        f"import unittest.mock\n{ADD}\nassert [add(1, 2)] == [unittest.mock.ANY]",
        "from answer import add\nassert add(1, 2) == 3",
        "import answer, doctest\nassert doctest.testmod(answer).failed == 0",
    ],
)
def test_tests_may_end_themselves(tests):
    code = "class Pair:\n    def __eq__(self, other):\n        return type(self) is type(other)\n"
    outcome = run_tests(code + "def add(a, b):\n    return a + b", tests, PATIENT)
    assert outcome.passed, outcome.reason
