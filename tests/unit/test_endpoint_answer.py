"""Reading an answer, whoever wrote the server; and what is refused before anything is sent."""

import base64
import codecs
import gzip
import html
import itertools
import json
import zlib
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.endpoints.answer import chat_text, plain_text, read_completions, read_usage, share_usage
from adaptive_eval.endpoints.apis import OpenAIChat, OpenAICompletions
from adaptive_eval.endpoints.redaction import Redactor, shorten, storable
from adaptive_eval.endpoints.streaming import Assembly
from adaptive_eval.errors import EndpointError, TransientEndpointError, UsageError
from adaptive_eval.trial import Message, Usage

NO_SECRETS = Redactor([])
SHOWN = json.loads((Path(__file__).parents[1] / "data" / "server_answers.json").read_text())
OURS = ["model", "messages", "prompt", "n", "seed", "echo", "stream", "stream_options"]


def body(message, **choice):
    return {"choices": [{"message": message, "finish_reason": "stop", **choice}]}


def read(data, *, text_of=chat_text, secret=None, **options):
    redact = NO_SECRETS if secret is None else Redactor([secret])
    (answer,) = read_completions(data, text_of=text_of, latency=0.25, redact=redact, **options)
    return answer


@pytest.mark.parametrize(("message", "text"), SHOWN["texts"])
def test_the_text_of_an_answer(message, text):
    answer = read(body(message))
    assert answer.text == text
    assert answer.latency == 0.25


@pytest.mark.parametrize(("server", "message"), SHOWN["reasoned"])
def test_reasoning_is_kept_beside_the_text(server, message):
    """As the documentation of each server shows it: the message, and parts of the same streamed."""
    answer = read(body(message))
    assert (answer.text, answer.reasoning) == ("7", "3 + 4")
    stream = Assembly(NO_SECRETS)
    for _ in range(2):
        stream.feed("data: " + json.dumps({"choices": [{"index": 0, "delta": message}]}))
    stream.feed("data: [DONE]")
    streamed = read(stream.body())
    assert (streamed.text, streamed.reasoning) == ("77", "3 + 43 + 4")
    thought = body({**message, "content": None, "thinking": "3 + 4"})
    assert read(thought).no_answer == "reasoning"
    usage = {"prompt_tokens": 9, "completion_tokens": 0}  # a report without the tokens of the answer is none
    assert read({**thought, "usage": usage}).usage == Usage()


@pytest.mark.parametrize(("limit", "shares"), [(None, [79, 21]), (50, [50, 50])])
def test_reasoning_has_its_part_in_what_an_answer_of_several_has_cost(limit, shares):
    (long,), (short,) = (body({"content": "7", "reasoning": "x" * n})["choices"] for n in (79, 19))
    usage = {"completion_tokens": 100, "completion_tokens_details": {"reasoning_tokens": 90}}
    data = {"choices": [long, short], "usage": usage}
    answers = read_completions(data, text_of=chat_text, latency=0.0, redact=NO_SECRETS, most=2, limit=limit)
    assert [answer.share.completion_tokens for answer in answers] == shares
    thoughts = [answer.reasoning_tokens for answer in answers]
    assert sum(thoughts) == 90 if limit is None else max(thoughts) == limit
    usage = {"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 7}}
    assert read({**body({"content": "7"}), "usage": usage}).reasoning_tokens == 5


@pytest.mark.parametrize(("data", "kind", "status"), SHOWN["no_answers"])
def test_what_is_no_completion_is_refused_by_its_kind(data, kind, status):
    with pytest.raises(EndpointError) as raised:
        read(data)
    assert (raised.value.kind, raised.value.status) == (kind, status)
    assert isinstance(raised.value, TransientEndpointError) == (kind != "auth")


def test_other_ends_of_an_answer_are_kept():
    for word in ("stop", "length", "content_filter", "tool_calls"):
        assert read(body({"content": "x"}, finish_reason=word)).finish_reason == word
        assert read(body({"content": "x"}, finish_reason=word.upper())).finish_reason == word


@pytest.mark.parametrize(("usage", "tokens"), SHOWN["usages"])
def test_usage(usage, tokens):
    assert read_usage(usage) == (tokens and Usage(*tokens))
    if tokens is not None and not tokens[1]:  # a text is billed: a report that lacks its tokens is none
        usages = [read({**body({"content": text}), "usage": usage}).usage for text in ("7", "")]
        assert usages == [Usage(), Usage(*tokens)]


def test_more_tokens_than_the_context_holds_are_no_report():
    usage = {"prompt_tokens": 900, "completion_tokens": 2_100}
    assert read_usage(usage, context=1_000) is None
    assert read_usage(usage, context=1_000, answers=3) == Usage(900, 2_100)
    answer = read({**body({"content": "a"}), "usage": usage}, context=1_000)
    assert (answer.usage, answer.impossible_usage) == (Usage(), True)


def test_a_key_echoed_in_an_answer_is_not_spelled_by_its_logprobs():
    """The figures stay, token by token; without a key in the text the tokens stay too."""
    tokens = ["key ", "sk-1", "2345", "678"]
    top = [{"token": "sk-1", "bytes": [115, 107], "logprob": -0.5}]
    common = {"logprob": -0.5, "top_logprobs": top}
    spelled = [{"token": token, "bytes": list(token.encode()), **common} for token in tokens]
    data = body({"content": "".join(tokens)}, logprobs={"content": spelled})
    hidden = {"token": "[redacted]", "bytes": None, "logprob": -0.5, "top_logprobs": None}
    assert read(data, secret="sk-12345678").logprobs == {"content": [hidden] * 4}
    assert read(data).logprobs == {"content": spelled}


def test_a_key_spelled_by_the_logprobs_of_a_plain_completion():
    figures = {"token_logprobs": [-0.5, -0.1]}
    logprobs = {"tokens": ["sk-1", "2345678"], "top_logprobs": [{"sk-1": -0.5}], **figures}
    choice = {"index": 0, "text": "sk-12345678", "finish_reason": "stop", "logprobs": logprobs}
    answer = read({"choices": [choice]}, text_of=plain_text, secret="sk-12345678")
    assert answer.logprobs == {"tokens": ["[redacted]"] * 2, "top_logprobs": None, **figures}


SPELLED = "sk-12345678"
TOKENS = ("sk", "-1", "2345", "678")


def entry(token, **more):
    return {"token": token, "bytes": list(token.encode()), "logprob": -0.5, **more}


def ranked(*columns):
    """Return the log-probabilities of a prompt, as vLLM gives them: one column for each rank."""
    numbers = itertools.count(100)
    places = zip(*columns, strict=True)
    return [
        {str(next(numbers)): {"logprob": -0.5, "decoded_token": one} for one in place} for place in places
    ]


@pytest.mark.parametrize(
    "logprobs",
    [
        {"content": [entry(token) for token in TOKENS]},
        {"content": [entry("x", bytes=list(token.encode())) for token in TOKENS]},
        {"content": [entry("x", bytes=[float(byte) for byte in token.encode()]) for token in TOKENS]},
        {"content": [entry("x", top_logprobs=[entry("a"), entry(token)]) for token in TOKENS]},
        {"content": [entry("x", logprob=byte) for byte in SPELLED.encode()]},
        {"content": [entry("x", token_id=byte) for byte in SPELLED.encode()]},
        {"content": [entry("x", said={"ids": [list(SPELLED.encode())]})]},
        {"content": [entry(SPELLED.upper())]},
        {"content": [entry(token) for token in reversed([token[::-1] for token in TOKENS])]},
        {"content": [entry(base64.b64encode(SPELLED.encode()).decode())]},
        {"tokens": list(TOKENS), "token_logprobs": [-0.5] * 4},
        {"tokens": list("abcd"), "top_logprobs": [{"e": -0.5, token: -0.5} for token in TOKENS]},
        {"tokens": ["a"], SPELLED: 1},
        {"tokens": ["a"], "text_offset": list(SPELLED.encode())},
        SPELLED,
        list(SPELLED.encode()),
        list(SPELLED),
        {"prompt": [None, *ranked(TOKENS)]},
        {"prompt": [None, *ranked("abcd", TOKENS)]},
        {"prompt": [{"1": {"decoded_token": f"my {SPELLED}.", "logprob": -0.5}}]},
    ],
)
@pytest.mark.parametrize("text", ["x", SPELLED, "X"])
def test_a_key_is_spelled_by_no_column_of_logprobs(logprobs, text):
    """Tokens, bytes, names and numbers, of the answer, its alternatives and the prompt."""
    data = body({"content": text})
    if isinstance(logprobs, dict) and "prompt" in logprobs:
        data["prompt_logprobs"] = logprobs["prompt"]
    else:
        data["choices"][0]["logprobs"] = logprobs
    assert read(data).logprobs == logprobs
    kept = json.dumps(read(data, secret=SPELLED).logprobs)
    assert not [part for part in (SPELLED, *TOKENS[1:], *(one[::-1] for one in TOKENS[1:])) if part in kept]
    assert json.dumps(list(SPELLED.encode()))[1:-1] not in kept
    assert kept.count("115") == 0


def test_logprobs_without_a_key_stay_as_they_are_and_too_deep_ones_go():
    other = {
        "content": [entry(token, top_logprobs=[entry("sk"), entry("5678")]) for token in ("1234", "sk-")]
    }
    prompt = [None, *ranked(("sk-", "a", "678"), "xyz")]
    data = {**body({"content": "1234sk-"}, logprobs=other), "prompt_logprobs": prompt}
    assert read(data, secret=SPELLED).logprobs == {**other, "prompt": prompt}
    deep = []
    for _ in range(5_000):
        deep = [deep]
    assert read(body({"content": "a"}, logprobs=deep), secret=SPELLED).logprobs is None


def test_figures_stay_where_only_the_tokens_of_the_prompt_spell_a_key():
    prompt = ranked(TOKENS)
    data = {**body({"content": "a"}, logprobs={"content": [entry("a")]}), "prompt_logprobs": prompt}
    kept = read(data, secret=SPELLED).logprobs
    assert [one["logprob"] for one in kept["content"]] == [-0.5]
    assert [one["logprob"] for place in kept["prompt"] for one in place.values()] == [-0.5] * 4


def test_a_key_in_a_call_of_a_tool_or_in_reasoning_is_hidden():
    call = {"id": "c1", "function": {"name": "f", "arguments": '{"key": "sk-12345678"}'}}
    data = body({"content": None, "tool_calls": [call], "reasoning": "It is sk-12345678."})
    assert read(data, secret="sk-12345678").reasoning == "It is [redacted]."
    (answer,) = read_completions(
        data, text_of=chat_text, latency=0.0, redact=Redactor(["sk-12345678"]), tools=True
    )
    assert answer.tool_calls[0]["arguments"] == '{"key": "[redacted]"}'


@pytest.mark.parametrize("answer", [[{}], {"message": "KEY"}, {"message": {"content": {"said": "KEY"}}}])
def test_a_key_is_hidden_before_what_came_is_cut_short(answer):
    """What is left of a key after a cut is most of it, and looks like nothing known."""
    key = "sk-" + "0123456789" * 20
    told = json.loads(json.dumps(answer).replace("KEY", "x" * 10 + key))
    with pytest.raises(TransientEndpointError) as caught:
        read({"choices": [told]}, secret=key)
    assert "sk-0123" not in str(caught.value)
    assert len(str(caught.value)) < 300


KEY_WITH_EVERYTHING = 'sk-Q7/x+2d9=a "b"&<c> \\ é'


@pytest.mark.parametrize(
    "echo",
    [
        lambda key: key,
        lambda key: json.dumps({"error": f"bad key {key}"}),
        lambda key: json.dumps({"error": f"bad key {key}"}, ensure_ascii=False),
        lambda key: json.dumps({"error": json.dumps({"inner": key})}),
        lambda key: json.dumps({"error": key}).replace("/", "\\/"),
        lambda key: f"<p>bad key {html.escape(key)}</p>",
        lambda key: f"<p>bad key {html.escape(key, quote=False)}</p>",
        lambda key: f"https://host/?key={quote(key)}&x=1",
        lambda key: f"https://host/?{urlencode({'key': key})}",
        lambda key: f"https://host/{quote(key, safe='')}",
        str.upper,
        str.swapcase,
        lambda key: f"bad key {key[::-1]}",
        lambda key: key[::-1].upper(),
        lambda key: "".join(f"%{byte:02X}" for byte in key.encode()),
        lambda key: key.encode().hex(),
        lambda key: key.encode().hex().upper(),
        lambda key: f"bytes {list(key.encode())}",
        lambda key: json.dumps(list(key.encode()), separators=(",", ":")),
        lambda key: json.dumps(list(key.encode())[::-1]),
        lambda key: " ".join(map(str, key.encode())),
        lambda key: f"key {base64.b64encode(key.encode()).decode()}",
        lambda key: base64.b64encode(key.encode()).decode().rstrip("=")[::-1],
        lambda key: base64.urlsafe_b64encode(key.encode()).decode(),
        lambda key: base64.b64encode(f"Bearer {key}".encode()).decode(),
        lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
        lambda key: base64.b64encode(f"me:{key}, and more".encode()).decode(),
        lambda key: json.dumps(base64.b64encode(key.encode()).decode()).replace("/", "\\/"),
        lambda key: base64.b64encode(base64.b64encode(key.encode())).decode(),
        lambda key: base64.b32encode(key.encode()).decode(),
        lambda key: codecs.encode(key, "rot13"),
        lambda key: key.encode().hex(":").upper(),
        lambda key: key.encode().hex(" "),
        lambda key: "".join(f"&#{ord(char)};" for char in key),
        lambda key: key.replace("/", "&#x2F;").replace("+", "&#43;").replace("Q", "&#0081;"),
        lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
        lambda key: key.replace("Q", "\\u0051").replace("7", "\\\\u0037"),
        lambda key: key.replace("Q", "\\x51").replace("s", "\\163"),
        lambda key: "".join(f"\\u{{{ord(char):x}}}" for char in key),
        lambda key: quote(quote(key, safe=""), safe=""),
        lambda key: key.replace("Q", "%51").replace("s", "%2573"),
        lambda key: "\u200b".join(key),
        lambda key: f"{key[:9]}\n{key[9:]}",
        " ".join,
        "-".join,
        lambda key: " ".join(reversed(key)),
        lambda key: ", ".join(map(repr, key)),
        lambda key: json.dumps(list(key.upper())),
        lambda key: json.dumps(json.dumps(list(key))),
        lambda key: f"{key[:5]}... {key[5:12]} - {key[12:]}",
        lambda key: "".join(f"\\U{ord(char):08x}" for char in key),
        lambda key: "".join(f"\\{ord(char):06x}" for char in key),
        lambda key: "".join(f"%u{ord(char):04x}" for char in key),
        lambda key: "".join(chr(ord(char) + 0xFEE0) if char != " " else char for char in key),
        lambda key: base64.b64encode(gzip.compress(f"The key is {key}.".encode())).decode(),
        lambda key: base64.encodebytes(zlib.compress(f"The key is {key}, and more.".encode())).decode(),
        lambda key: zlib.compress(f"The key is {key}.".encode())[2:-4].hex(),
        lambda key: base64.b64encode(base64.b64encode(f"The key is {key}.".encode())).decode(),
        lambda key: base64.b32encode(f"The key is {key}.".encode()).decode(),
        lambda key: base64.b64encode(f"The key is {key}.".encode("utf-16-le")).decode(),
    ],
)
def test_a_key_is_found_in_the_ways_in_which_servers_write_it(echo):
    hidden = Redactor([KEY_WITH_EVERYTHING])(echo(KEY_WITH_EVERYTHING))
    assert "[redacted]" in hidden
    assert "Q7" not in hidden
    written = base64.b64encode(KEY_WITH_EVERYTHING.encode()).decode()[4:-4]
    assert not [part for part in ("q7", "7q", "51, 55", written, written[::-1]) if part in hidden.lower()]


def test_a_key_is_found_where_it_is_divided_between_reasoning_and_answer():
    (answer,) = read_completions(
        body({"content": KEY_WITH_EVERYTHING[9:], "reasoning_content": f"so: {KEY_WITH_EVERYTHING[:9]}"}),
        text_of=chat_text,
        latency=0.1,
        redact=Redactor([KEY_WITH_EVERYTHING]),
    )
    assert (answer.text, answer.reasoning) == ("[redacted]", "[redacted]")


@given(st.text())
def test_every_text_can_be_stored(text):
    assert storable(text).encode("utf-8").decode("utf-8") == storable(text)
    assert storable(storable(text)) == storable(text)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_good_text_is_left_alone(text):
    assert storable(text) == text


@given(st.text(), st.integers(5, 600))
def test_shortening_holds_its_limit(text, limit):
    line = shorten(text, limit)
    assert len(line) <= limit
    assert line.isprintable()


@given(
    st.text(alphabet=st.characters(codec="ascii"), min_size=4, max_size=30),
    st.text(max_size=40),
    st.text(max_size=40),
)
def test_no_secret_survives(secret, before, after):
    assert secret not in Redactor([secret])(before + secret + after).replace("[redacted]", "\0")


@pytest.mark.parametrize("before", ["", "a", "ab"])
@pytest.mark.parametrize("size", [17, 18, 19])
def test_of_a_key_in_the_middle_of_base64_nothing_is_left_but_its_edges(before, size):
    key = KEY_WITH_EVERYTHING[:size]
    encoded = base64.b64encode(f"{before}{key}, and more".encode()).decode()
    first, last = -(-len(before) * 8 // 6), (len(before) + size) * 8 // 6
    hidden = Redactor([key])(encoded)
    assert hidden.startswith(f"{encoded[:first]}[redacted]")
    assert encoded[last + 1 :] == hidden[-len(encoded[last + 1 :]) :], "what follows stays"


def test_the_longer_of_two_secrets_goes_as_a_whole_and_short_values_are_none():
    assert Redactor(["secret", "secret-key"])("my secret-key") == "my [redacted]"
    assert Redactor(["on", ""])("based on this") == "based on this"


def test_an_ordinary_word_of_a_header_is_hidden_as_it_is_written_only():
    assert Redactor(["Live"])("Live, live, LIVE and evil") == "[redacted], live, LIVE and evil"
    assert Redactor(["team-5d1c"])("TEAM-5D1C") == "[redacted]"
    several = Redactor(["a-model-team", "2024-06-01", "n 42"])
    assert several("a model team, 20240601, n42") == "a model team, 20240601, n42"
    assert Redactor(["Team of /x"])("?by=Team+of+%2Fx, Team%20of%20/x") == "?by=[redacted], [redacted]"


@pytest.mark.parametrize(("url", "base"), SHOWN["addresses"])
def test_an_address_as_it_is_shown(url, base):
    assert OpenAIChat(url, "m").url == base


@pytest.mark.parametrize("field", OURS)
@pytest.mark.parametrize("place", ["sampling", "extra_body"])
@pytest.mark.parametrize("api", [OpenAIChat, OpenAICompletions])
def test_what_the_run_decides_cannot_be_configured(api, place, field):
    with pytest.raises(UsageError, match=field):
        api("http://h/v1", "m", **{place: {field: 1}})


def test_the_extra_body_wins_and_a_seed_may_be_left_out():
    chat = OpenAIChat("http://h/v1", "tiny", sampling={"top_k": 20, "max_tokens": 8}, extra_body={"top_k": 5})
    body = chat.body([Message("system", "Be brief.")], seed=7)
    assert body["messages"] == [{"role": "system", "content": "Be brief."}]
    assert (body["seed"], body["top_k"], body["max_tokens"]) == (7, 5, 8)
    assert "seed" not in chat.body([], seed=None)
    assert "seed" not in OpenAIChat("http://h/v1", "tiny", send_seed=False).body([], seed=7)


def test_nothing_shows_the_key():
    key = {"api_key_env": "K", "environ": {"K": "sk-12345678"}}
    chat = OpenAIChat("http://h/v1", "m", headers={"x-auth": "tok-87654321"}, **key)
    assert "12345678" not in repr(chat)
    assert "87654321" not in repr(chat) + repr(chat._exchange) + repr(chat._exchange.redact)


def test_the_prompts_logprobs_are_kept_beside_those_of_the_answer():
    prompt = [None, {"15": {"logprob": -0.5, "rank": 1, "decoded_token": "a"}}]
    data = {**body({"content": "a"}, logprobs={"content": []}), "prompt_logprobs": prompt}
    assert read(data).logprobs == {"content": [], "prompt": prompt}
    assert read({**body({"content": "a"}), "prompt_logprobs": prompt}).logprobs == {"prompt": prompt}
    plain = {"choices": [{"text": "a", "logprobs": {"tokens": ["a"]}, "prompt_logprobs": prompt}]}
    assert read(plain, text_of=plain_text).logprobs == {"tokens": ["a"], "prompt": prompt}


def several(*choices, limit=None, **usage):
    data = {"choices": list(choices), "usage": usage, "id": "cmpl-1"}
    return read_completions(
        data, text_of=plain_text, latency=0.25, redact=NO_SECRETS, most=len(choices), limit=limit
    )


def test_several_answers_in_the_order_of_their_indices():
    answers = several({"index": 1, "text": "b"}, {"index": 2, "text": "c"}, {"index": 0, "text": "a"})
    assert [answer.text for answer in answers] == ["a", "b", "c"]
    assert [answer.response_id for answer in answers] == ["cmpl-1#0", "cmpl-1#1", "cmpl-1#2"]
    beyond = several({"index": 0, "text": "a"}, {"index": 2, "text": "c"})
    assert [answer.text for answer in beyond] == ["a"]


@pytest.mark.parametrize("aborted", range(3))
def test_a_choice_that_was_broken_off_shifts_no_other(aborted):
    parts = [{"index": index, "text": "abc"[index], "finish_reason": "stop"} for index in range(3)]
    parts[aborted]["finish_reason"] = "abort"
    answers = several(*parts, prompt_tokens=9, completion_tokens=6)
    texts = [None if answer is None else answer.text for answer in answers]
    wanted = ["a", "b", "c"]
    wanted[aborted] = None
    assert [*texts, None][:3] == wanted
    paid = [answer.paid for answer in answers if answer is not None]
    assert sum(one.prompt_tokens for one in paid) == 9
    assert sum(one.completion_tokens for one in paid) == 6


@pytest.mark.parametrize("indices", [(0, 0), (-1, 0), ("0", "1"), (True, False)])
def test_indices_that_are_no_indices_are_refused(indices):
    with pytest.raises(TransientEndpointError) as found:
        several(*({"index": index, "text": "a"} for index in indices))
    assert found.value.kind == "malformed"


ENDED, GOES_ON = {"index": 0, "text": "a", "finish_reason": "stop"}, {"index": 1, "text": "b"}


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([{"choices": [{"index": -1, "text": "a"}]}], "malformed"),
        ([{"choices": [ENDED]}, {"choices": [{**GOES_ON, "index": 0}]}], "malformed"),
        ([{"type": "response.created", "response": {"status": "in_progress", "output": []}}], "dropped"),
        ([{"choices": [ENDED, GOES_ON]}], "dropped"),
    ],
    ids=["negative", "again after its end", "response", "one of two choices has ended"],
)
def test_a_stream_with_a_choice_that_cannot_be_or_without_its_last_event_is_refused(events, kind):
    stream = Assembly(NO_SECRETS)
    lines = [f"data: {json.dumps(event)}" for event in events]
    told = stream.body  # what is missing is told at the end, and what cannot be at once
    if kind == "malformed":
        told = partial(stream.feed, lines.pop())
    for line in lines:
        stream.feed(line)
    with pytest.raises(TransientEndpointError) as found:
        told()
    assert found.value.kind == kind


def test_a_usage_that_counts_one_answer_is_taken_for_each():
    """As llama.cpp's server reports it; certain only where the answers met a known limit."""
    cut = {"text": "abc", "finish_reason": "length"}
    whole = {"text": "d", "finish_reason": "stop"}
    for choices, limit, said, paid in (
        ([cut, cut, whole], 8, 8, 24), ([cut, cut], 8, 16, 16), ([cut, cut], None, 8, 8),
    ):  # fmt: skip
        answers = several(*choices, limit=limit, completion_tokens=said)
        assert sum(answer.paid.completion_tokens for answer in answers) == paid
    answers = several(cut, cut, limit=8, completion_tokens=50)  # beyond the limit of both
    tokens = [(one.paid.completion_tokens, one.usage.completion_tokens) for one in answers]
    assert tokens == [(8, 8), (42, 42)]


def test_of_several_answers_the_broken_ones_are_left_out_and_paid_for():
    gone = {"index": 0, "text": "gone", "finish_reason": "abort"}
    good = {"index": 1, "text": "b", "finish_reason": "stop"}
    first, answer = several(gone, good, {"index": 2, "text": 7}, prompt_tokens=5, completion_tokens=9)
    assert first is None
    assert (answer.text, answer.usage) == ("b", Usage(5, 9))
    with pytest.raises(TransientEndpointError) as raised:
        several({"text": "gone", "finish_reason": "abort"}, {"text": 7})
    assert raised.value.kind == "aborted"


tokens = st.integers(0, 10**6)


@given(usage=st.builds(Usage, tokens, tokens, tokens), lengths=st.lists(st.integers(0, 10**5), min_size=1))
def test_shares_add_up_to_the_usage_of_the_request(usage, lengths):
    shares = share_usage(usage, lengths)
    assert len(shares) == len(lengths)
    for field in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        assert sum(getattr(share, field) for share in shares) == getattr(usage, field)
    assert all(share.completion_tokens >= 0 for share in shares)
    assert all((share.prompt_tokens, share.cached_tokens) == (0, 0) for share in shares[1:])
    least = 1 if usage.completion_tokens >= len(lengths) else 0
    assert all(share.completion_tokens >= least for share in shares)
    rest = max(usage.completion_tokens - len(lengths), 0)
    wanted = [rest * length / max(sum(lengths), 1) for length in lengths]
    if sum(lengths):
        assert all(abs(one.completion_tokens - want) <= 2 for one, want in zip(shares, wanted, strict=True))


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=8), st.integers(1, 64), st.data())
def test_no_share_is_longer_than_an_answer_can_be(lengths, limit, data):
    """Budgets reserve so much for each; a share beyond it would look like a server that keeps no limit."""
    tokens = data.draw(st.integers(0, limit * len(lengths)))
    shares = share_usage(Usage(7, tokens), lengths, limit)
    assert sum(share.completion_tokens for share in shares) == tokens
    assert all(0 <= share.completion_tokens <= limit for share in shares)
    assert [share.prompt_tokens for share in shares] == [7, *[0] * (len(lengths) - 1)]
