"""The scorer code: programs in a real sandbox, hostile ones among them, and a refusal where there is none."""

import os
import re
import shutil
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from command_line import command, finished, mimic_config, run_config, trials
from programs import programs

from adaptive_eval.errors import UsageError
from adaptive_eval.scoring import sandbox
from adaptive_eval.scoring.code import find_code
from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.sandbox import Limits, SandboxFailed, require_sandbox, run_tests
from adaptive_eval.trial import Completion, Question

sandboxed = pytest.mark.usefixtures("sandbox")
PATIENT = Limits(wall=60.0, cpu=20.0)
"""For programs that end by themselves, on a machine that is busy with other things."""

SHORT = Limits(wall=1.0, cpu=20.0), Limits(wall=10.0, cpu=20.0)
"""For programs that never end; the second if a busy machine does not start one within the first."""


# Programs that mean no harm


RIGHT = programs("right") | programs("honest")


@sandboxed
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_passes(name):
    """It may shadow builtins, and its tests may end themselves."""
    code, tests, _ = RIGHT[name]
    outcome = run_tests(code, tests, PATIENT)
    assert outcome.passed, outcome.reason


FORMS = programs("form")


@sandboxed
@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_tests_of_any_form_see_what_they_would_see_in_one_process(name):
    code, tests, _ = FORMS[name]
    outcome = run_tests(code, tests, PATIENT)
    assert outcome.passed, outcome.reason


@sandboxed
def test_half_a_character_in_a_program_harms_nothing():
    assert run_tests("x = 'é\ud800'", "pass", PATIENT).passed


@sandboxed
@pytest.mark.parametrize("name", programs("wrong"))
def test_a_wrong_program_fails_with_its_reason(name):
    code, tests, reason = programs("wrong")[name]
    outcome = run_tests(code, tests, PATIENT)
    assert not outcome.passed
    assert outcome.reason.startswith(reason), outcome.reason


# Programs that do: they end early, replace what judges them, look for the secret, never end


CHEATING = programs("cheating") | programs("replacing")


@sandboxed
@pytest.mark.parametrize("name", CHEATING)
def test_a_program_that_ends_early_or_cheats_is_wrong(name):
    code, tests, _ = CHEATING[name]
    assert not run_tests(code, tests, PATIENT).passed


ATTACKING = programs("attacking")


@sandboxed
@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKING)
def test_no_attack_on_the_process_of_the_tests_passes(name):
    """By frames, modules, descriptors, memory, signals, forged messages, objects, exceptions, callbacks."""
    code, tests, _ = ATTACKING[name]
    assert not run_tests(code, tests, PATIENT).passed


@sandboxed
def test_a_program_has_neither_the_tests_nor_the_channel():
    """Neither it nor bubblewrap's own process holds what it could read, and it sees nothing of the tests."""
    look = programs("looking")["at all memory and descriptors"]
    outcome = run_tests(look.code, look.tests, PATIENT)
    assert outcome.passed, outcome.reason


@sandboxed
@pytest.mark.parametrize("name", [name for name in CHEATING if name.startswith("the secret")])
def test_nor_where_bubblewrap_is_of_the_same_user(name):
    """As for every user but root: then a program may read the descriptors of bubblewrap's first process."""
    python = "/usr/bin/python3"
    if not Path(python).exists():
        pytest.skip(f"no {python}")
    code, tests, _ = CHEATING[name]
    assert not run_tests(code, tests, PATIENT, python).passed


@pytest.mark.slow
@sandboxed
@pytest.mark.parametrize("name", programs("endless"))
def test_a_program_that_never_ends_is_killed_with_all_its_processes(name):
    code = programs("endless")[name].code
    seen: set[tuple[str, str]] = set()
    others = descendants()  # of earlier tests in this process
    with ThreadPoolExecutor() as pool:
        for limits in SHORT:
            running = pool.submit(run_tests, code, "pass", limits)
            while not running.done():
                seen |= descendants() - others
                wait([running], 0.05)
            if not isinstance(running.exception(), SandboxFailed):  # a busy machine may not start it in time
                break
    outcome = running.result()
    assert (outcome.passed, outcome.reason) == (False, f"took longer than {limits.wall:g} s")
    assert seen, "the sandbox itself, at least"
    deadline = time.monotonic() + 60.0
    while seen & set(processes()):
        assert time.monotonic() < deadline, "they go on"


@sandboxed
def test_a_sandbox_that_is_given_up_while_it_is_made_leaves_no_process():
    """In 52 of 60 tries bubblewrap's second process stayed where only the first was killed."""
    begun: set[str] = set()
    with ThreadPoolExecutor() as pool:
        for wall in np.linspace(0.001, 0.03, 16):
            running = pool.submit(run_tests, "", "pass", Limits(wall=float(wall)))
            while not running.done():
                begun |= {number for number, _ in descendants()}
    assert begun, "no sandbox was begun"
    deadline = time.monotonic() + 60.0
    while begun & set(map(session, processes())):
        assert time.monotonic() < deadline, "they go on"


def session(process: tuple[str, str]) -> str | None:
    """Return the number of the process that began the session of a process."""
    with suppress(OSError):
        return Path("/proc", process[0], "stat").read_text().rpartition(")")[2].split()[3]
    return None


def processes() -> dict[tuple[str, str], str]:
    """Return the parent of every process that is not dead; a process is its number and the time it began."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                found[folder.name, fields[19]] = fields[1]
    return found


def descendants() -> set[tuple[str, str]]:
    """Return the processes that this one has started, and theirs."""
    parents = processes()
    found, more = set(), {str(os.getpid())}
    while more:
        children = {one for one, parent in parents.items() if parent in more} - found
        found |= children
        more = {number for number, _ in children}
    return found


@sandboxed
def test_cpu_time_is_bounded_whatever_the_clock_says():
    outcome = run_tests("while True: pass", "pass", Limits(wall=120.0, cpu=1.0))
    assert (outcome.passed, outcome.reason) == (False, "used up its 1 s of CPU time, or was killed")


@sandboxed
@pytest.mark.parametrize("name", programs("greedy"))
def test_what_a_program_takes_is_bounded(name):
    code, _, reason = programs("greedy")[name]
    outcome = run_tests(code, "pass", PATIENT)
    assert not outcome.passed
    assert reason in outcome.reason


PYTHONS = [None, "/usr/bin/python3"]
"""The second may be read by every user, so that root has it run in a user namespace."""


def skip_without(protection, python):
    try:
        cure = sandbox.protections(python)[protection]
    except UsageError as error:
        cure = str(error)
    if cure is not None:
        pytest.skip(cure)


REFUSED = programs("refused by the kernel")


@sandboxed
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", REFUSED)
def test_the_kernel_refuses_what_a_program_has_no_need_of(name, python):
    skip_without("a filter on system calls", python)
    outcome = run_tests(REFUSED[name].code, "pass", PATIENT, python)
    assert not outcome.passed
    assert any(words in outcome.reason for words in ("PermissionError", "OSError")), outcome.reason


@sandboxed
@pytest.mark.parametrize("python", PYTHONS)
def test_the_memory_of_all_processes_together_is_bounded(python):
    skip_without("a limit on the memory of all processes together", python)
    code = "import os, time\nheld = bytearray(b'a') * (100 * 2**20)\n"
    code += "for _ in range(3):\n    if os.fork() == 0:\n"
    shared = f"{code}        time.sleep(0.2)\n        os._exit(0)\nfor _ in range(3): os.wait()"
    limits = Limits(wall=60.0, cpu=20.0, memory=300 * 2**20)
    outcome = run_tests(shared, "pass", limits, python)
    assert outcome.passed, outcome.reason
    own = f"{code}        for place in range(0, len(held), 4096): held[place] = 0\n        time.sleep(60)\n"
    outcome = run_tests(f"{own}for _ in range(3): os.wait()", "pass", limits, python)
    assert outcome.reason == "used more than 300 MB of memory in all of its processes"


@sandboxed
def test_strict_refuses_where_a_protection_is_missing(monkeypatch):
    scorer = build_scorer("code", {"allow_execution": True, "require_sandbox": "strict"})
    lacks = [name for name, cure in sandbox.protections().items() if cure is not None]
    if lacks:
        with pytest.raises(UsageError, match=f"strict.* lacks here {lacks[0]}"):
            scorer.check_target(question())
    else:
        assert scorer.check_target(question()) is None
    monkeypatch.setattr(sandbox, "_enclosure", lambda _: sandbox.Enclosure(True, False, False))
    with pytest.raises(UsageError, match=r"install bubblewrap 0\.8.*; a filter on system calls"):
        scorer.check_target(question())


@sandboxed
def test_an_older_bubblewrap_runs_programs_and_says_what_it_lacks(tmp_path, monkeypatch):
    python = "/usr/bin/../bin/python3"  # one that no other test has asked about
    if not Path(python).exists():
        pytest.skip(f"no {python}")
    old = tmp_path / "bwrap"
    real = shutil.which("bwrap")
    unknown = "echo 'bwrap: Unknown option --disable-userns' >&2; exit 1"
    old.write_text(f'#!/bin/sh\ncase "$*" in *--disable-userns*) {unknown};; esac\nexec {real} "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = sandbox.protections(python)
    assert found.pop("a bar on further user namespaces") is not None
    assert found["a filter on system calls"] is None
    outcome = run_tests(REFUSED["a larger disk"].code, "pass", PATIENT, python)
    assert "PermissionError" in outcome.reason


@sandboxed
def test_validate_and_run_say_which_protections_hold(tmp_path):
    scorer = {"kind": "code", "allow_execution": True, "code": "value = {answer}", "tests": "value"}
    config = mimic_config({"scorer": scorer, "limit": 2}, goal="budget", budget={"trials": 2})
    _, result = run_config(tmp_path, config)
    assert "a filter on system calls, an IPC namespace" in result.err, result
    result = command("validate", tmp_path / "config.yaml", "--offline")
    assert "a filter on system calls, an IPC namespace" in result.out, result


@sandboxed
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (f"import os\nos.kill({os.getpid()}, 9)", "ProcessLookupError|PermissionError"),
        ("import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (1000, 1000))", "ValueError|Permission"),
    ],
    ids=["another process", "its own limits"],
)
def test_a_program_cannot_change(code, words):
    outcome = run_tests(code, "pass", PATIENT)
    assert not outcome.passed
    assert re.search(words, outcome.reason)


@sandboxed
def test_a_program_has_no_network():
    server = socket.create_server(("127.0.0.1", 0))
    seen = []
    threading.Thread(target=lambda: seen.append(server.accept()), daemon=True).start()
    port = server.getsockname()[1]
    for address in (f"('127.0.0.1', {port})", "('192.0.2.1', 80)"):
        outcome = run_tests(f"import socket; socket.create_connection({address}, 5)", "pass", PATIENT)
        assert not outcome.passed
        assert re.search("OSError|ConnectionRefusedError", outcome.reason), outcome.reason
    assert seen == []
    server.close()


@sandboxed
def test_a_program_sees_no_file_of_ours_and_writes_none(tmp_path, monkeypatch):
    secret = tmp_path / "secret.txt"
    secret.write_text("treasure")
    home = Path.home() / f".sandbox-test-{os.getpid()}"
    home.write_text("treasure")
    monkeypatch.setenv("MY_API_KEY", "treasure")
    try:
        for place in (secret, home, Path("/etc/shadow"), Path("/etc/passwd"), Path(__file__)):
            outcome = run_tests(f"open({str(place)!r}).read()", "pass", PATIENT)
            assert not outcome.passed, place
            assert re.search("FileNotFoundError|PermissionError", outcome.reason)
        for place in ("/x", "/usr/x", "/dev/shm/x", "/proc/x", str(tmp_path / "x"), str(Path.home() / "x")):
            outcome = run_tests(f"open({place!r}, 'w').write('a')", "pass", PATIENT)
            assert not outcome.passed, place
    finally:
        home.unlink()
    assert sorted(tmp_path.iterdir()) == [secret]
    alone = "import os\nassert 'treasure' not in str(os.environ)\nassert len(os.listdir('/tmp')) == 0\n"
    alone += "assert len([name for name in os.listdir('/proc') if name.isdecimal()]) <= 3\n"
    alone += "assert os.getuid() != 0"
    outcome = run_tests(alone, "pass", PATIENT)
    assert outcome.passed, outcome.reason


# Homes, and what a reason holds


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Return a folder that is the prefix of a Python and holds a key, as after `configure --prefix=$HOME`."""
    home = tmp_path_factory.mktemp("prefix")
    library = Path(os.__file__).parent
    left_out = shutil.ignore_patterns("site-packages", "test", "tests", "idlelib", "__pycache__", "config-*")
    shutil.copytree(library, home / "lib" / library.name, symlinks=True, ignore=left_out)
    for shared in Path(sys.base_prefix, "lib").glob("libpython*.so*"):
        shutil.copy2(shared, home / "lib", follow_symlinks=False)
    (home / "bin").mkdir()
    shutil.copy2(
        Path(sys.base_prefix, "bin", f"python{library.name.removeprefix('python')}"), home / "bin/python3"
    )
    (home / "key").write_text("treasure")
    (home / "lib" / "key").write_text("treasure")
    for folder in (home, *home.parents[:2]):
        folder.chmod(0o755)
    return home


@sandboxed
@pytest.mark.parametrize("strict", [False, True])
def test_an_interpreter_whose_prefix_is_the_home_shows_only_its_own_files(prefix, strict, monkeypatch):
    monkeypatch.setenv("HOME", str(prefix))
    python = "~/bin/python3" if strict else str(prefix / "bin" / "python3")
    require_sandbox(python, strict=strict and not any(sandbox.protections(python).values()))
    look = f"""
import os, ssl, ctypes, sqlite3, decimal
assert os.sys.prefix == {str(prefix)!r}
assert sorted(os.listdir(os.sys.prefix)) == ["bin", "lib"], os.listdir(os.sys.prefix)
for folder, _, files in os.walk(os.sys.prefix):
    assert "key" not in files, folder
"""
    outcome = run_tests(look, "pass", PATIENT, python)
    assert outcome.passed, outcome.reason


@sandboxed
def test_an_interpreter_whose_library_holds_a_home_is_refused(prefix, monkeypatch):
    library = next((prefix / "lib").glob("python*"))
    python = str(prefix / "bin" / ".." / "bin" / "python3")  # one that no other test has asked about
    for home in (library, library / "xml"):
        monkeypatch.setenv("HOME", str(home))
        with pytest.raises(UsageError, match=re.escape(f"the home {home}")) as raised:
            require_sandbox(python, strict=True)
        assert raised.value.code == "scorer/no-sandbox"


@sandboxed
def test_a_home_below_a_folder_of_the_system_is_hidden(monkeypatch):
    python = "/usr/bin/python3"
    if not Path(python).exists():
        pytest.skip(f"no {python}")
    monkeypatch.setenv("HOME", "/usr/share")
    outcome = run_tests("import os\nassert os.listdir('/usr/share') == []", "pass", PATIENT, python)
    assert outcome.passed, outcome.reason
    assert not run_tests("open('/usr/share/x', 'w')", "pass", PATIENT, python).passed


@pytest.mark.parametrize("python", ["/dev/null/python3", "/bin/ls"])
def test_what_is_no_python_is_refused(python):
    if shutil.which("bwrap") is None:
        pytest.skip("no bubblewrap")
    with pytest.raises(UsageError, match=python):
        require_sandbox(python)


TELLING = {
    "a message": "raise ValueError('treasure')",
    "a class": "class treasure(KeyError): pass\nraise treasure",
    "a class of a class": "raise type('treasure', (OSError,), {'__module__': 'builtins'})('treasure')",
    "an exit": "import sys\nsys.exit('treasure')",
    "the error output": "import os\nos.write(2, b'treasure')\nos._exit(3)",
    "the channel": "import os\nos.write(int(os.sys.orig_argv[-1]), b'treasure 1 1 0')\nos._exit(3)",
    "a file": "exec(compile('\\n' * 99 + '1/0', 'treasure', 'exec'))",
    "a number": "exec(compile('\\n' * 73241 + '1/0', '<answer>', 'exec'))",
}


@sandboxed
@pytest.mark.parametrize("name", TELLING)
def test_a_reason_holds_no_text_of_the_programs_own(name):
    reason = run_tests(TELLING[name], "pass", PATIENT).reason
    assert re.fullmatch(
        r"failed: (exit code 3|[A-Z]\w+Error|OSError|SystemExit)( \(line [12] of the program\))?", reason
    )
    cases = '[{"input": "", "output": "1", "testtype": "stdin"}]'
    program = f"```python\n{TELLING[name]}\n```"
    score = scored(program, question(public=cases), cases=("public",))
    assert score.category == 0
    assert "treasure" not in score.reason
    assert "732" not in score.reason


# The scorer


def question(target="assert f(1) == 2", **fields):
    return Question("t", "q", target, fields)


def scored(text, asked=None, finish="stop", **options):
    scorer = build_scorer("code", {"allow_execution": True, "time_limit": 60.0, **options})
    asked = asked or question()
    assert scorer.check_target(asked) is None
    return scorer.score(Completion(text, finish), asked)


@sandboxed
def test_an_answer_is_run_and_tested():
    right = scored("Here:\n```python\ndef f(x):\n    return x + 1\n```\nIt adds one.")
    assert (right.category, right.reason) == (1, "the tests pass")
    assert right.extracted == "def f(x):\n    return x + 1\n"
    wrong = scored("```python\ndef f(x):\n    return x - 1\n```")
    assert (wrong.category, wrong.reason) == (0, "failed: AssertionError (line 1 of the tests)")
    assert scored("I cannot write code.").reason == "no code found"
    assert scored("<think>```python\nx\n```", finish="length").reason == "truncated"


@sandboxed
def test_code_and_tests_are_templates_over_the_questions_fields():
    asked = question("def check(f):\n    assert f(1) == 2", start="def f(x):\n", name="f")
    options = {"code": "{start}{answer}", "tests": "{target}\ncheck({name})"}
    assert scored("```python\n    return x + 1\n```", asked, **options).category == 1
    assert scored("```python\n    return {x}\n```", asked, **options).category == 0
    scorer = build_scorer("code", {"allow_execution": True, "tests": "{target}\n{entry}"})
    assert "the field 'entry'" in scorer.check_target(asked)
    scorer = build_scorer("code", {"allow_execution": True})
    assert scorer.check_target(question(" ")) == "the tests are empty"


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("```python\na = 1\n```\n```\n$ ls\n```", "a = 1\n"),
        ("```py\na = 1\n```\n```python\nb = 2\n```", "b = 2\n"),
        ("1. So:\n   ```python\n   a = 1\n   ```", "   a = 1\n"),
        ("```bash\nls\n```", None),
        ("```\na = 1\n```", "a = 1\n"),
        ("def f():\n    pass", "def f():\n    pass"),
        ("```python\na = 1", None),
        ("", None),
        ("`" * 100_000, None),
        ("```python\n" * 20_000, None),
    ],
)
def test_the_program_of_an_answer(text, program):
    assert find_code(text) == program


def test_nothing_is_run_unless_the_config_says_so(tmp_path):
    with pytest.raises(UsageError, match="allow_execution: true"):
        build_scorer("code").check_target(question())
    for scorer in ("code", {"kind": "code"}, {"kind": "code", "allow_execution": False}):
        _, result = run_config(tmp_path, mimic_config({"scorer": scorer}))
        assert result.code == 2
        assert "{kind: code, allow_execution: true}" in result.err


@pytest.mark.parametrize(
    ("bwrap", "words"),
    [
        (None, "bubblewrap is not installed; for example: apt install bubblewrap"),
        ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "No permissions to create new"),
    ],
)
def test_a_run_without_a_working_bubblewrap_is_refused(tmp_path, monkeypatch, bwrap, words):
    """No other way to run programs is looked for: rather none than one that is not safe."""
    if bwrap is not None:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{bwrap}\n")
        (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sandbox, "_enclosure", sandbox._enclosure.__wrapped__)  # remembers nothing
    out, result = run_config(tmp_path, mimic_config({"scorer": {"kind": "code", "allow_execution": True}}))
    assert result.code == 2
    assert words in result.err
    assert not out.exists()


@sandboxed
def test_a_sandbox_that_is_there_later_is_used_then(monkeypatch):
    """As after `apt install bubblewrap` from a notebook."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    python = f"{sys.base_prefix}/bin/../bin/{name}"  # one that no other test has asked about
    with monkeypatch.context() as without:
        without.setattr(shutil, "which", lambda _: None)
        with pytest.raises(UsageError, match="apt install bubblewrap"):
            require_sandbox(python)
    require_sandbox(python)


@pytest.fixture
def out_of_memory(monkeypatch):
    """Have sandboxes killed from outside once their program runs, as often as this list has items."""
    kills: list[str] = []
    run, listen = sandbox._run, sandbox._listen

    def one(code, *arguments, **options):
        return run("import time\ntime.sleep(60)" if kills else code, *arguments, **options)

    def killed(process, channel, deadline, heard, *limits):
        if kills and process.poll() is None:
            heard.verdict += channel.recv(len("started\n"))
            process.kill()
            kills.pop()
        return listen(process, channel, deadline, heard, *limits)

    monkeypatch.setattr(sandbox, "_run", one, raising=False)
    monkeypatch.setattr(sandbox, "_listen", killed)
    return kills


@sandboxed
def test_a_program_whose_sandbox_is_killed_is_run_again_once(out_of_memory):
    out_of_memory += ["once"]
    assert run_tests("x = 1", "assert x == 1", PATIENT).passed
    assert not out_of_memory
    out_of_memory += ["once", "twice"]
    with pytest.raises(SandboxFailed, match="it was killed"):
        run_tests("x = 1", "assert x == 1", PATIENT)
    assert not out_of_memory


@sandboxed
def test_a_sandbox_that_fails_leaves_the_answer_unscored(monkeypatch):
    def fail(*_):
        raise SandboxFailed("it did not start within 10 s")

    monkeypatch.setattr("adaptive_eval.scoring.code.run_tests", fail)
    found = scored("```python\nx = 1\n```")
    assert (found.category, found.reason) == (None, "the sandbox failed: it did not start within 10 s")


@sandboxed
def test_a_run_is_scored_by_its_programs(tmp_path):
    """The mimic answers with an expression, which is the program: right where it has the question's value."""
    task = {
        "scorer": {
            "kind": "code",
            "allow_execution": True,
            "time_limit": "60s",
            "tests": "assert value == {target}",
            "code": "value = {answer}",
        },
        "limit": 10,
    }
    mimic = {**mimic_config()["mimic"], "answer": "So:\n```python\n{answer}\n```"}
    out = finished(tmp_path, mimic_config(task, mimic=mimic, goal="budget", budget={"trials": 20}), code=0)
    records = trials(out)
    assert {record.score.category for record in records} == {0, 1}
    reasons = {record.score.category: record.score.reason for record in records}
    assert reasons == {0: "failed: AssertionError (line 1 of the tests)", 1: "the tests pass"}


@pytest.mark.skipif(shutil.which("bwrap") is None or os.getuid() != 0, reason="needs root and bubblewrap")
@sandboxed
def test_what_root_runs_is_run_as_somebody_else():
    outcome = run_tests("import os\nassert 20_000 <= os.getuid() < 60_000", "os.setuid(0)", PATIENT)
    # In a user namespace of its own there is no user 0 to become, which is an invalid argument.
    assert re.search("PermissionError|OSError", outcome.reason), outcome.reason
