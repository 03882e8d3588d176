"""Answers of every kind as every API writes them: whole or streamed, alone or several, with every usage."""

import asyncio
import json
from base64 import b64encode
from dataclasses import replace
from types import SimpleNamespace

import pytest
from written_answers import (
    BILLS,
    KINDS,
    OF_TEXT,
    Bill,
    Said,
    assembled,
    chat,
    chat_pieces,
    completions,
    delta,
    logprobs,
    messages,
    paid,
    plain_logprobs,
    plain_pieces,
    response_events,
    responses,
    streamed,
)

from adaptive_eval.endpoints.apis import AnthropicMessages, OpenAIChat, OpenAICompletions, OpenAIResponses
from adaptive_eval.endpoints.batch_interfaces import AnthropicBatches, OpenAIBatches
from adaptive_eval.endpoints.batches import BatchOptions
from adaptive_eval.endpoints.streaming import Assembly
from adaptive_eval.errors import EndpointError, PermanentEndpointError, TransientEndpointError
from adaptive_eval.options.request_options import BatchConfig
from adaptive_eval.trial import Conversation, Message, Usage

APIS = {
    "chat": OpenAIChat,
    "completions": OpenAICompletions,
    "responses": OpenAIResponses,
    "messages": AnthropicMessages,
}
TOOLS = {"tools": [{"type": "function", "function": {"name": "weather"}}]}
ASK = Conversation([Message("user", "How is the weather?")], TOOLS)


WAYS = {
    "chat": ("chat", chat),
    "chat, streamed": ("chat", lambda *of: assembled(streamed(chat_pieces, *of))),
    "completions": ("completions", completions),
    "completions, streamed": ("completions", lambda *of: assembled(streamed(plain_pieces, *of))),
    "responses": ("responses", responses),
    "responses, streamed": ("responses", lambda *of: assembled(response_events(*of))),
    "messages": ("messages", messages),
}
CELLS = [
    (way, kind) for way, (api, _) in WAYS.items() for kind in KINDS if api != "completions" or kind in OF_TEXT
]


def sampled(api, body, *, n=1, question=ASK, context=None, parameters=None, **options):
    """Return what a client reads from the body of an answer."""
    client = APIS[api]("http://127.0.0.1:1/v1", "m", **options)

    async def post(path, sent):
        return body, {}

    client._exchange.post = client._exchange.stream = post
    client._context = context
    return asyncio.run(client.sample(question, seed=7, n=n, parameters=parameters))


def facts(answer):
    """Return what an answer says, without what it has cost."""
    calls = tuple((one["id"], one["name"], json.loads(one["arguments"])) for one in answer.tool_calls)
    ended = answer.finish_reason
    return answer.text, answer.reasoning, calls, ended, answer.without_text, answer.model


def wanted(said, calls=True):
    without = ""
    if not (said.text or said.refusal):
        without = "tool_calls" if said.calls else "reasoning" if said.thought else ""
    return said.text or said.refusal, said.thought, said.calls if calls else (), said.ended, without, "m-1"


@pytest.mark.parametrize(("way", "kind"), CELLS)
def test_an_answer_is_read_the_same_from_every_api(way, kind):
    api, write = WAYS[way]
    said = KINDS[kind]
    for name, bill in BILLS.items():
        if bill is not None and api == "messages":  # which reports no tokens of reasoning
            bill = Bill(answer=bill.answer, thought=0)
        body = write([said], bill)
        (answer,) = sampled(api, body)
        assert facts(answer) == wanted(said, calls=api != "completions"), name
        usage, thought = paid(bill, [said])
        assert (answer.usage, answer.paid, answer.reasoning_tokens) == (usage, usage, thought), name
        assert (answer.response_id, answer.impossible_usage) == ("r", False)
        (unasked,) = sampled(api, body, question=[Message("user", "How?")])
        assert facts(unasked) == wanted(said, calls=False)
        (small,) = sampled(api, body, context=29)
        believed = bill is None or bill.prompt <= 29
        assert (small.usage, small.impossible_usage) == (Usage(), not believed)


@pytest.mark.parametrize("way", [way for way, (api, _) in WAYS.items() if api in ("chat", "completions")])
def test_log_probabilities_are_those_of_every_letter(way):
    api, write = WAYS[way]
    for kind in KINDS if api == "chat" else OF_TEXT:
        said = KINDS[kind]
        (answer,) = sampled(api, write([said], Bill()))
        if api == "chat":
            assert answer.logprobs == logprobs(said)
        else:
            assert answer.logprobs == plain_logprobs(said.text)


SETS = [
    ("text", "thought", "cut off"),
    ("nothing", "calls", "text"),
    ("thought alone", "refusal", "thought"),
    ("nothing", "filtered", "nothing"),
    ("calls, cut off", "text and calls", "thought alone"),
]


@pytest.mark.parametrize("way", [way for way, (api, _) in WAYS.items() if api in ("chat", "completions")])
@pytest.mark.parametrize("kinds", SETS, ids=" / ".join)
@pytest.mark.parametrize("lost", [None, 0, 1, 2])
def test_several_answers_are_read_as_each_alone_and_paid_once(way, kinds, lost):
    """Also where one of them was broken off: it shifts no other, and its tokens are paid by the others."""
    api, write = WAYS[way]
    said = [KINDS[kind] for kind in kinds]
    if api == "completions":
        said = [Said(one.text, ended=one.ended) for one in said]
    sent = [replace(one, ended="abort") if place == lost else one for place, one in enumerate(said)]
    kept = [one for place, one in enumerate(said) if place != lost]
    for name, bill in BILLS.items():
        answers = sampled(api, write(sent, bill), n=3)
        found = [answer for answer in answers if answer is not None]
        assert [place for place, answer in enumerate(answers) if answer is None] == [
            place for place in (lost,) if place in (0, 1)
        ]
        assert list(map(facts, found)) == [wanted(one, calls=api == "chat") for one in kept], name
        usage, thought = paid(bill, kept)
        assert sum((one.paid for one in found), Usage()) == usage, name
        assert {one.usage.prompt_tokens for one in found} == {usage.prompt_tokens}, name
        assert [one.usage.completion_tokens for one in found] == [one.paid.completion_tokens for one in found]
        thoughts = [one.reasoning_tokens for one in found]
        assert all(mine <= one.paid.completion_tokens for mine, one in zip(thoughts, found, strict=True))
        assert sum(thoughts) <= thought, name
        silent = [one.reasoning_tokens for one in found if not one.reasoning]
        if thought > len(found) and any(one.reasoning for one in found):
            assert max(silent, default=0) <= 1, name  # what is rounded
        places = [place for place in range(3) if place != lost]
        assert [one.response_id for one in found] == [f"r#{place}" for place in places]
        assert not any(one.impossible_usage for one in found)


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize(("context", "believed"), [(30, True), (29, False)])
def test_several_answers_may_have_the_context_each(api, context, believed):
    write = WAYS[api][1]
    body = write([KINDS["text"]] * 3, Bill(answer=90, thought=0))
    answers = sampled(api, body, n=3, context=context)
    assert [one.impossible_usage for one in answers] == [not believed] * 3
    assert sum((one.paid for one in answers), Usage()) == (Usage(30, 90, 10) if believed else Usage())


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize(
    ("ended", "reported", "counted"),
    [
        ("length length stop", 8, 24),  # of one answer: two of eight tokens would be more
        ("length length stop", 15, 45),
        ("length length stop", 16, 16),
        ("length stop stop", 8, 8),
        ("stop stop stop", 3, 3),
    ],
)
def test_a_report_of_one_answer_of_several_is_told_by_those_that_met_the_limit(
    api, name, ended, reported, counted
):
    said = [Said("It rains.", ended=word) for word in ended.split()]
    body = WAYS[api][1](said, Bill(answer=reported, thought=0))
    answers = sampled(api, body, n=3, sampling={name: 8})
    assert sum(one.paid.completion_tokens for one in answers) == counted
    asked_otherwise = sampled(api, body, n=3, sampling={name: 8}, parameters={name: 5})
    assert sum(one.paid.completion_tokens for one in asked_otherwise) == reported


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_where_one_answer_was_asked_for_the_first_of_several_is_it(api):
    body = WAYS[api][1]([Said("one"), Said("two"), Said("three")], Bill())
    (answer,) = sampled(api, body)
    assert (answer.text, answer.paid) == ("one", Usage(30, 20, 10))
    several = sampled(api, body, n=2)
    assert [one.text for one in several] == ["one", "two"]
    assert sum((one.paid for one in several), Usage()) == Usage(30, 20, 10)


@pytest.mark.parametrize("way", ["chat, streamed", "completions, streamed"])
@pytest.mark.parametrize("said", ["text", "reasoning", "refusal", "tool_calls"])
def test_what_a_choice_says_after_its_end_makes_the_stream_doubtful(way, said):
    pieces = chat_pieces if way.startswith("chat") else plain_pieces
    after = {"index": 1, "text": "more"}
    if said != "text":
        call = [{"index": 0, "function": {"name": "now", "arguments": "{}"}}]
        after = delta(1, **{said: call if said == "tool_calls" else "more"})
    events = [*streamed(pieces, [KINDS["text"]] * 2, Bill()), {"choices": [after]}]
    with pytest.raises(TransientEndpointError) as found:
        assembled(events)
    assert found.value.kind == "malformed"


def test_reasoning_under_several_names_is_that_of_the_first_that_holds_some():
    """Servers fill the name they mean, and leave the others empty."""
    names = ("reasoning_content", "reasoning", "thinking")
    for full in names:
        for empty in ("", None):
            message = {**dict.fromkeys(names, empty), full: "Far north.", "content": "It rains."}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            (answer,) = sampled("chat", {"choices": [choice]})
            assert (answer.text, answer.reasoning) == ("It rains.", "Far north.")


# ------------------------------------------------------------------ keys, ids and log-probabilities beside


KEY = "sk-12345678"


@pytest.mark.parametrize("way", [way for way in WAYS if "completions" not in way])
@pytest.mark.parametrize(
    "parts", [(KEY[:5], KEY[5:]), (KEY[5:], KEY[:5])], ids=["thought first", "text first"]
)
def test_no_half_of_a_key_is_left_in_thought_or_text(way, parts):
    """Either may be shown above the other."""
    api, write = WAYS[way]
    thought, text = parts
    key = {"api_key_env": "KEY", "environ": {"KEY": KEY}}
    (answer,) = sampled(api, write([Said(text, thought=thought)], Bill()), **key)
    assert (answer.text, answer.reasoning) == ("[redacted]", "[redacted]")
    (apart,) = sampled(api, write([Said("It rains.", thought=thought)], Bill()), **key)
    assert (apart.text, apart.reasoning) == ("It rains.", thought)


@pytest.mark.parametrize("way", [way for way in WAYS if "completions" not in way])
def test_a_key_in_any_part_of_an_answer_is_hidden(way):
    api, write = WAYS[way]
    key = {"api_key_env": "KEY", "environ": {"KEY": KEY}}
    calls = ((f"id {KEY}", f"name {KEY}", {"of": KEY}),)
    for said in (Said(KEY), Said("a", thought=KEY), Said(refusal=KEY), Said(calls=calls, ended="tool_calls")):
        body = write([said], Bill()) | {"id": f"r {KEY}", "model": f"m {KEY}"}
        (answer,) = sampled(api, body, **key)
        assert KEY not in repr(answer)
        assert (answer.response_id, answer.model) == ("r [redacted]", "m [redacted]")


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("place", ["body", "choice"])
def test_the_prompts_log_probabilities_come_with_or_without_those_of_the_answer(api, asked, place):
    body = WAYS[api][1]([KINDS["text"]], Bill())
    (choice,) = body["choices"]
    of_answer = choice["logprobs"] if asked else None
    choice["logprobs"] = of_answer
    of_prompt = [None, {"9": {"logprob": -0.5, "decoded_token": "x"}}]
    (body if place == "body" else choice)["prompt_logprobs"] = of_prompt
    (answer,) = sampled(api, body)
    assert answer.logprobs == {**(of_answer or {}), "prompt": of_prompt}


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_answers_of_a_body_without_an_id_have_none(api):
    body = {**WAYS[api][1]([KINDS["text"]] * 2, Bill()), "id": None}
    assert [one.response_id for one in sampled(api, body, n=2)] == ["", ""]


def test_a_call_in_the_old_form_is_in_the_place_of_a_text():
    message = {"content": None, "function_call": {"name": "weather", "arguments": "{}"}}
    (answer,) = sampled("chat", {"choices": [{"message": message, "finish_reason": "function_call"}]})
    assert (answer.without_text, answer.no_answer) == ("tool_calls", "tool_calls")


@pytest.mark.parametrize(
    "arguments", [None, {}, "{}", {"city": "Oslo"}, '{"city": "Oslo"}', ["Oslo"], "Oslo"]
)
def test_arguments_of_a_call_are_kept_as_text(arguments):
    call = {"id": "c", "function": {"name": "weather", "arguments": arguments}}
    body = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    (answer,) = sampled("chat", body)
    (found,) = answer.tool_calls
    text = found["arguments"]
    given = {} if arguments is None else arguments
    assert text == arguments or json.loads(text) == given
    assert isinstance(text, str)


@pytest.mark.parametrize(("left", "pause"), [(129, 6.0), (130, 0.0)])
def test_the_next_request_waits_where_fewer_tokens_are_left_than_this_one_took(left, pause):
    """Its prompt is paid once, for all of its answers."""
    limits = {"x-ratelimit-remaining-tokens": str(left), "x-ratelimit-reset-tokens": "6s"}
    client = OpenAIChat("http://127.0.0.1:1/v1", "m")
    body = chat([KINDS["text"]] * 4, Bill(prompt=90, answer=40))

    async def post(path, sent):
        return body, limits

    client._exchange.post = post
    answers = asyncio.run(client.sample(ASK, seed=7, n=4))
    assert {one.pause for one in answers} == {pause}


# ------------------------------------------------------------------ what goes out


def sent(api, *talk, **options):
    return APIS[api]("http://127.0.0.1:1/v1", "m", **options).body(
        list(map(Message.from_mapping, talk)), seed=7, n=2
    )


def calling(content, arguments='{"city": "Oslo"}'):
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": arguments}}
    return {"role": "assistant", "content": content, "tool_calls": [call]}


PARTS = [{"type": "text", "text": "I look."}]


@pytest.mark.parametrize(
    ("content", "blocks", "items"),
    [
        (None, [], []),
        ("", [], [{"role": "assistant", "content": ""}]),
        ("I look.", PARTS, [{"role": "assistant", "content": "I look."}]),
        (PARTS, PARTS, [{"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}]),
    ],
)
@pytest.mark.parametrize("arguments", ['{"city": "Oslo"}', "{}", ""])
def test_a_turn_of_text_and_calls_goes_out_as_each_api_has_it(content, blocks, items, arguments):
    """No API takes an empty block of text."""
    turn = calling(content, arguments)
    (sent_turn,) = sent("messages", turn)["messages"]
    use = {"type": "tool_use", "id": "c1", "name": "weather", "input": json.loads(arguments or "{}")}
    assert sent_turn == {"role": "assistant", "content": [*blocks, use]}
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": arguments}
    assert sent("responses", turn)["input"] == [*items, call]
    assert sent("chat", turn)["messages"] == [turn]


@pytest.mark.parametrize("api", APIS)
def test_a_seed_and_a_number_go_where_they_are_known(api):
    body = sent(api, {"role": "user", "content": "How?"}, sampling={"max_tokens": 9})
    known = api in ("chat", "completions")
    assert ({"seed", "n"} & body.keys() == {"seed", "n"}) is known
    assert known or not {"seed", "n"} & body.keys()


def test_an_effort_is_joined_with_what_is_written_about_reasoning():
    for own, joined in (
        ({"summary": "auto"}, {"effort": "low", "summary": "auto"}),
        ({"effort": "high"}, {"effort": "high"}),
        (None, {"effort": "low"}),
    ):
        extra = {} if own is None else {"reasoning": own}
        body = sent("responses", sampling={"reasoning_effort": "low"}, extra_body=extra)
        assert (body["reasoning"], "reasoning_effort" in body) == (joined, False)


@pytest.mark.parametrize("name", ["content", "summary"])
def test_reasoning_of_a_response_is_its_text_or_the_summary_of_it(name):
    """Servers of open models give the text, OpenAI a summary in parts."""
    item = {"type": "reasoning", "content": [], "summary": []}
    item[name] = [{"type": "text", "text": "Far"}, {"type": "text", "text": "north."}]
    if name == "content":
        item["summary"] = [{"type": "summary_text", "text": "short"}]
    said = {"type": "message", "content": [{"type": "output_text", "text": "It rains."}]}
    (answer,) = sampled("responses", {"status": "completed", "output": [item, said]})
    assert (answer.text, answer.reasoning) == ("It rains.", "Far\n\nnorth.")


def test_parts_of_an_event_without_indices_are_of_one_choice_and_of_a_body_of_several():
    parts = [{"delta": {"content": word}, "finish_reason": "stop"} for word in ("one", "two")]
    with pytest.raises(TransientEndpointError):
        assembled([{"choices": parts}])
    whole = [{"message": one["delta"], "finish_reason": "stop"} for one in parts]
    assert [one.text for one in sampled("chat", {"choices": whole}, n=2)] == ["one", "two"]


@pytest.mark.parametrize(
    ("api", "listed", "serves"),
    [
        ("messages", "m-20250929", True),
        ("messages", "m", True),
        ("messages", "m2", False),
        ("messages", "models/m", False),
        ("chat", "models/m", True),
        ("chat", "m-20250929", False),
        ("completions", "m", True),
        ("responses", "models/m", True),
    ],
)
def test_a_listed_name_is_the_models_with_a_date_or_a_folder_where_its_api_writes_those(api, listed, serves):
    assert APIS[api]("http://127.0.0.1:1/v1", "m").serves(["other", listed]) is serves


@pytest.mark.parametrize("api", APIS)
def test_json_of_another_kind_is_a_refusal_until_an_answer_has_come(api):
    """Later it may be that of a gateway that is out of order."""
    client = APIS[api]("http://127.0.0.1:1/v1", "m")
    bodies = [{"status": "ok"}, {"detail": "here"}, WAYS[api][1]([KINDS["text"]], Bill()), {"status": "ok"}]
    told = []

    async def post(path, sent):
        return bodies[len(told)], {}

    client._exchange.post = post
    for _ in bodies:
        try:
            told.append(len(asyncio.run(client.sample(ASK, seed=7, n=1))))
        except EndpointError as error:
            told.append((type(error).__name__, error.kind))
    refused, doubtful = ("PermanentEndpointError", "not_found"), ("TransientEndpointError", "malformed")
    assert told == [refused, refused, 1, doubtful]


# ------------------------------------------------------------------ a key in what is no answer


SECOND = "hunter2-0123456789"
SECRETS = {"key": KEY, "second word of a header": SECOND}
ECHOES = {
    "plain": str,
    "backwards": lambda secret: secret[::-1],
    "base64": lambda secret: b64encode(secret.encode()).decode(),
    "in capitals": str.upper,
}


def endpoint(api="chat", **options):
    headers = {"X-Team": f"Token {SECOND}"}
    key = {"api_key_env": "KEY", "environ": {"KEY": KEY}, "headers": headers}
    return APIS[api]("http://127.0.0.1:1/v1", "m", **key, **options)


def batches(kind):
    return kind(endpoint()._exchange, BatchOptions("run", BatchConfig()))


def fed(event):
    Assembly(endpoint()._exchange.redact).feed(f"data: {event}")


def read_by(api, body):
    async def post(path, sent):
        return body, {}

    client = endpoint(api)
    client._exchange.post = post
    asyncio.run(client.sample(ASK, seed=7, n=1))


def probed(body):
    async def get(path):
        return json.dumps(body).encode()

    client = endpoint()
    client._exchange.get = get
    asyncio.run(client.probe())


def failed_batch(echo):
    errors = SimpleNamespace(data=[SimpleNamespace(message=echo)])
    return batches(OpenAIBatches)._seen(SimpleNamespace(id="b", status="failed", errors=errors)).refused


def of_lines(kind, line):
    raise batches(kind)._answer(line)


PLACES = {
    "a failed batch": lambda echo: of_words(failed_batch(echo)),
    "a line with a status": lambda echo: of_lines(
        OpenAIBatches, {"response": {"status_code": 400, "body": {"error": {"message": echo}}}}
    ),
    "a line without a response": lambda echo: of_lines(
        OpenAIBatches, {"error": {"code": "x", "message": echo}}
    ),
    "an errored request": lambda echo: of_lines(
        AnthropicBatches, {"type": "errored", "error": {"error": {"type": "api_error", "message": echo}}}
    ),
    "a result of another kind": lambda echo: of_lines(AnthropicBatches, {"type": echo}),
    "no batch": lambda echo: batches(AnthropicBatches)._seen({"said": echo}),
    "an event": lambda echo: fed(echo),
    "an event of an error": lambda echo: fed(json.dumps({"type": "error", "message": echo})),
    "an error in an event": lambda echo: fed(json.dumps({"error": {"message": echo}})),
    "an index in an event": lambda echo: fed(json.dumps({"choices": [{"index": echo}]})),
    "an index": lambda echo: read_by("chat", {"choices": [{"index": echo, "message": {}}]}),
    "a message": lambda echo: read_by("chat", {"choices": [{"message": echo}]}),
    "a content": lambda echo: read_by("chat", {"choices": [{"message": {"content": {"text": echo}}}]}),
    "a text": lambda echo: read_by("completions", {"choices": [{"text": [echo]}]}),
    "an error in an answer": lambda echo: read_by("chat", {"error": {"message": echo, "code": 418}}),
    "an error without a status": lambda echo: read_by("messages", {"error": {"message": echo}}),
    "a failed response": lambda echo: read_by("responses", {"status": "failed", "error": {"message": echo}}),
    "JSON of another kind": lambda echo: read_by("chat", {"said": echo}),
    "a web page": lambda echo: endpoint()._exchange.json(f"<html><title>{echo}</title>".encode()),
    "no JSON": lambda echo: endpoint()._exchange.json(echo.encode()),
    "names of models": lambda echo: probed({"data": [{"id": echo}]}),
}


def of_words(words):
    raise PermanentEndpointError(words, kind="bad_request")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_in_no_error_wherever_a_server_says_it(place, secret):
    for name, written in ECHOES.items():
        echo = written(SECRETS[secret])
        with pytest.raises(EndpointError) as raised:
            PLACES[place](f"You sent {echo}, which is wrong" if name != "base64" else f"{echo}.")
        assert echo.lower() not in str(raised.value).lower()
        assert "redacted" in str(raised.value), name
