"""The mimic as a process: it starts, fails with a reason, dies with its parent; and its command."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from time import monotonic

import httpx
import pytest

from adaptive_eval.errors import UsageError
from adaptive_eval.mimic.mimic_spec import MimicSpec, ModelSpec, spec_to_json
from adaptive_eval.mimic.process import MimicProcess

SPEC = MimicSpec(models=(ModelSpec(name="coin", mean=0.5),))

PARENT = """
import sys
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.mimic.mimic_spec import spec_from_json
with MimicProcess(spec_from_json(sys.argv[1])) as mimic:
    print(mimic.url.rpartition(":")[2], flush=True)
    sys.stdin.read()
"""


def test_it_serves_between_start_and_stop_and_ctrl_c_in_the_terminal_does_not_reach_it():
    mimic = MimicProcess(SPEC)
    assert mimic.pid is None
    mimic.start()
    assert mimic.start() is mimic
    # A run drains its answers on Ctrl-C, so its mimic must outlive the signal to its process group.
    assert os.getpgid(mimic.pid) != os.getpgid(0)
    url = mimic.url
    assert httpx.get(f"{url}/health").status_code == 200
    mimic.stop()
    mimic.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


def test_it_dies_with_its_parent_even_by_kill_9():
    arguments = [sys.executable, "-c", PARENT, spec_to_json(SPEC)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        port = int(parent.stdout.readline())
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.settimeout(60)
            parent.kill()
            parent.wait()
            # The connection ends when the process does: nothing else closes an idle one. One that was
            # not accepted yet is reset.
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        # The kernel closes the sockets of a dead process one after the other.
        deadline = monotonic() + 60
        while accepts(port):
            assert monotonic() < deadline


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionError:
        return False
    return True


def test_a_port_in_use_is_told():
    with MimicProcess(SPEC) as mimic:
        port = int(mimic.url.rpartition(":")[2])
        words = f"cannot listen on 127.0.0.1 port {port}: Address already in use"
        with pytest.raises(UsageError, match=words):
            MimicProcess(SPEC, port=port).start()


# The command


def test_the_command_serves_until_ctrl_c(tmp_path):
    key = tmp_path / "key.jsonl"
    key.write_text('{"question": "What is 6 times 7?", "answer": 42}\n')
    serve = [sys.executable, "-c", "from adaptive_eval.cli.mimic import command; command()", "--port", "0"]
    serve += ["--model", "sage=1", "--model", "org/coin=0.5", "--dataset", str(key), "--latency", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(serve, stdout=pipe, stderr=pipe, text=True) as child:
        base = child.stdout.readline().removeprefix("Base URL: ").strip()
        assert child.stdout.readline() == "Models: sage, org/coin\n"
        body = {"model": "sage", "messages": [{"role": "user", "content": "What is 6 times 7?"}]}
        answer = httpx.post(f"{base}/chat/completions", json=body).json()
        assert answer["choices"][0]["message"]["content"].endswith("\\boxed{42}.")
        assert httpx.get(f"{base}/models/org/coin").json()["id"] == "org/coin"
        child.send_signal(signal.SIGINT)
        rest = child.stdout.read()
        assert child.wait(60) == 0
        assert rest.endswith("Stopped.\n")
        assert child.stderr.read() == ""
