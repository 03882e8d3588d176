"""The mimic as the OpenAI client sees it, also where it misbehaves; and as a process with a command."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Any

import httpx
import pytest
from mimic_client import ASK, SPEC, answer, ask, chat, stats, texts, wait_until

from adaptive_eval.errors import UsageError
from adaptive_eval.mimic.examinee import Examinee, count_tokens
from adaptive_eval.mimic.mimic_spec import MimicModelSpec, MimicSpec, spec_to_json
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.mimic.requests import Response

# The mimic as the OpenAI client sees it, over real loopback HTTP, in its own process.


def test_an_answer_has_everything_the_client_reads(mimic):
    response = answer(mimic, "sage", seed=1)
    (choice,) = response.choices
    assert choice.message.role == "assistant"
    assert choice.message.content.endswith("\nThe answer is \\boxed{42}.")
    assert choice.finish_reason == "stop"
    assert response.model == "sage"
    assert response.object == "chat.completion"
    assert response.id.startswith("chatcmpl-")
    assert response.usage.completion_tokens == count_tokens(choice.message.content)
    assert response.usage.prompt_tokens == count_tokens(ASK) + 8
    assert response.usage.total_tokens == response.usage.prompt_tokens + response.usage.completion_tokens


def test_answers_over_http_are_those_of_the_pure_examinee(mimic):
    examinee = Examinee(SPEC)
    asked = examinee.asked("coin", ASK)
    replies = [examinee.reply(asked, 100 + index) for index in range(60)]
    assert texts(answer(mimic, seed=100, n=60)) == [reply.text for reply in replies]
    late = [replace(reply, latency=float(place)) for place, reply in enumerate(replies)]
    assert Response(None, late, 9, "id", 0).latency == 59.0


# Seeds


def test_sample_i_of_n_is_the_sample_of_seed_plus_i(mimic):
    several = answer(mimic, seed=7, n=4)
    single = [answer(mimic, seed=7 + index) for index in range(4)]
    assert texts(several) == [texts(response)[0] for response in single]
    assert [choice.index for choice in several.choices] == [0, 1, 2, 3]
    assert several.usage.prompt_tokens == single[0].usage.prompt_tokens
    assert several.usage.completion_tokens == sum(one.usage.completion_tokens for one in single)


# Errors


def test_a_wrong_key_is_refused_everywhere_but_for_health():
    import openai

    spec = MimicSpec(models=(MimicModelSpec(name="coin", mean=0.5),), api_key="right-key")
    with MimicProcess(spec) as locked:
        with pytest.raises(openai.AuthenticationError) as caught:
            ask(locked, chat, api_key="wrong-key")
        assert "key" in caught.value.message
        assert "wrong-key" not in caught.value.message
        assert httpx.get(f"{locked.base_url}/models").status_code == 401
        assert httpx.get(f"{locked.url}/health").status_code == 200
        assert ask(locked, chat, api_key="right-key").choices
        assert "right-key" not in httpx.get(f"{locked.url}/mimic/stats").text


# Counts


def test_requests_in_flight_are_counted(mimic):
    def counts() -> dict[str, int]:
        found: dict[str, int] = stats(mimic)["models"]["popular"]
        return found

    async def use(client: Any) -> None:
        tasks = [asyncio.ensure_future(chat(client, "popular", seed=seed)) for seed in range(20)]
        await asyncio.to_thread(wait_until, lambda: counts()["in_flight"] == 20)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    ask(mimic, use)
    wait_until(lambda: counts()["in_flight"] == 0)
    assert counts()["peak_in_flight"] == 20


def test_answers_are_counted_by_seed_with_their_usage():
    with MimicProcess(SPEC) as fresh:

        async def use(client: Any) -> list[Any]:
            return [await chat(client, seed=seed, n=2) for seed in (1, 1, 2)] + [await chat(client)]

        responses = ask(fresh, use)
        counts = stats(fresh)["models"]["coin"]
    assert counts["seeds"] == {"1": 2, "2": 1, "none": 1}
    assert (counts["requests"], counts["answers"]) == (4, 7)
    assert counts["prompt_tokens"] == sum(response.usage.prompt_tokens for response in responses)
    assert counts["completion_tokens"] == sum(response.usage.completion_tokens for response in responses)
    assert counts["right"] == sum("boxed{42}" in text for one in responses for text in texts(one))


# The ways in which a mimic misbehaves when it is told to, as the OpenAI client sees them.


def test_a_rate_limit_says_when_to_come_back(mimic, faulty):
    import openai

    faulty({"kind": "status", "status": 429, "retry_after": 1.5, "first": 1})
    with pytest.raises(openai.RateLimitError) as caught:
        answer(mimic)
    assert caught.value.response.headers["retry-after"] == "1.5"
    assert caught.value.code == "rate_limit_exceeded"
    assert answer(mimic).choices


@pytest.mark.parametrize("after", [0.0, 0.5, 1.0])
def test_a_dropped_connection_is_an_error(mimic, faulty, after):
    import openai

    faulty({"kind": "drop", "after": after, "first": 1})

    async def use(client: Any) -> None:
        with pytest.raises(openai.APIConnectionError):
            await chat(client)
        assert (await chat(client)).choices

    ask(mimic, use)


@pytest.mark.slow
def test_a_slow_start_answers_503_and_then_serves():
    body = {"model": "coin", "messages": [{"role": "user", "content": "x"}]}
    never, soon = (MimicSpec(models=SPEC.models, slow_start=seconds) for seconds in (3600.0, 0.5))
    with httpx.Client() as client, MimicProcess(never) as starting:
        assert client.get(f"{starting.url}/health").status_code == 503
        assert client.get(f"{starting.base_url}/models").status_code == 503
        assert client.post(f"{starting.base_url}/chat/completions", json=body).status_code == 503
    with httpx.Client() as client, MimicProcess(soon) as starting:
        wait_until(lambda: client.get(f"{starting.url}/health").status_code == 200)
        assert client.post(f"{starting.base_url}/chat/completions", json=body).status_code == 200


# The mimic as a process: it starts, fails with a reason, dies with its parent; and its command.


COIN = MimicSpec(models=(MimicModelSpec(name="coin", mean=0.5),))

PARENT = """
import sys
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.mimic.mimic_spec import spec_from_json
with MimicProcess(spec_from_json(sys.argv[1])) as mimic:
    print(mimic.url.rpartition(":")[2], flush=True)
    sys.stdin.read()
"""


def test_it_serves_between_start_and_stop_and_ctrl_c_in_the_terminal_does_not_reach_it():
    mimic = MimicProcess(COIN)
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
    arguments = [sys.executable, "-c", PARENT, spec_to_json(COIN)]
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
    with MimicProcess(COIN) as mimic:
        port = int(mimic.url.rpartition(":")[2])
        words = f"cannot listen on 127.0.0.1 port {port}: Address already in use"
        with pytest.raises(UsageError, match=words):
            MimicProcess(COIN, port=port).start()


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
