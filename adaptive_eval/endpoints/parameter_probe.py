"""Finds out whether a server honours, refuses or ignores the parameters of a request.

Asked with a handful of tiny requests. What their answers prove is decided by pure functions, so that it is
tested as a table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.errors import EndpointError, PermanentEndpointError
from adaptive_eval.trial import Completion, Message, Usage

REQUESTS = 7
"""Requests of one parameter probe at most."""

TOKENS = 32
"""Longest answer of each, in tokens; one request asks for two answers."""

_ASK = (Message("user", "Write fifty random words, separated by spaces."),)
_SEED, _OTHERS = 20_001, (31_013, 47_017)
_STOPS = (" ", "e", "a", "o")
"""Texts of which every answer of some length holds one."""

_NOT_TINY = ("max_tokens", "max_completion_tokens", "stop", "logprobs", "top_logprobs", "min_tokens")
_SHAPES = ("structured_outputs", "response_format", "prompt_logprobs", "guided_choice", "guided_regex")
"""Parameters of the config that are left out here: they would make the answers long, equal or expensive."""

Verdict: TypeAlias = Literal["honoured", "ignored", "refused", "unknown"]
Answers: TypeAlias = Sequence[Completion] | EndpointError


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding about one parameter."""

    parameter: str  # ``max_tokens``, ``seed``, ``n``, ``stop`` or ``logprobs``
    verdict: Verdict  # ``ignored`` is proven by an answer; ``unknown`` says that the answers prove nothing
    words: str = ""  # why, and what follows from it; empty where all is well


@dataclass(frozen=True, slots=True)
class ParameterFindings:
    """All findings about one endpoint, and their cost."""

    findings: tuple[Finding, ...]  # one for each parameter
    requests: int  # requests that were sent
    usage: Usage  # tokens that they took, as the server reports them


async def probe_parameters(endpoint: OpenAIEndpoint) -> ParameterFindings:
    """Probe how the server of `endpoint` treats the parameters of a request.

    Sends at most :data:`REQUESTS` requests, one after the other, with answers of at most :data:`TOKENS`
    tokens, under the sampling parameters that the endpoint is configured with.
    """
    prober = _Prober(endpoint)
    first = await prober.ask(_SEED)
    if isinstance(first, EndpointError):
        raise first
    random = endpoint.parameters.get("temperature") != 0
    findings = [judge_limit(first[0])]
    stopped = await prober.ask(_SEED, stop=list(_STOPS))
    findings.append(judge_stop(first[0].text, stopped))
    findings.append(judge_logprobs(await prober.ask(_SEED, logprobs=endpoint.logprobs_wanted)))
    if random:
        again = await prober.ask(_SEED)
        others = [await prober.ask(seed) for seed in _OTHERS]
        findings.append(judge_seed(first[0].text, again, others))
        distinct = {_text(answer) for answer in (first, *others)} - {"", None}
        findings.append(judge_n(await prober.ask(_SEED, n=2), varied=len(distinct) > 1))
    return ParameterFindings(tuple(findings), prober.requests, prober.usage)


class _Prober:
    """Sends tiny requests and counts their cost."""

    def __init__(self, endpoint: OpenAIEndpoint) -> None:
        self._endpoint = endpoint
        self._parameters = _tiny(endpoint.parameters)
        self.requests = 0
        self.usage = Usage()

    async def ask(self, seed: int, *, n: int = 1, **more: Any) -> Answers:
        """Ask once; return the answers or how it failed."""
        self.requests += 1
        try:
            found = await self._endpoint.sample(_ASK, seed=seed, n=n, parameters={**self._parameters, **more})
        except EndpointError as error:
            return error
        answers = [answer for answer in found if answer is not None]
        for answer in answers:
            self.usage += answer.paid
        return answers


def _tiny(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configured parameters with a small limit, and without what would get in the way."""
    limit = "max_tokens"
    if "max_completion_tokens" in parameters:
        limit = "max_completion_tokens"
    kept = {name: value for name, value in parameters.items() if name not in (*_NOT_TINY, *_SHAPES)}
    return {**kept, limit: TOKENS}


def judge_limit(answer: Completion) -> Finding:
    """Say whether an answer kept to the limit of :data:`TOKENS`."""
    tokens = answer.usage.completion_tokens
    if tokens > TOKENS or (not tokens and len(answer.text) > 32 * TOKENS):
        if tokens:
            said = f"{tokens} tokens"
        else:
            said = f"{len(answer.text)} characters"
        words = f"an answer of {said} came although {TOKENS} tokens were the limit: no budget can be held"
        return Finding("max_tokens", "ignored", words)
    if answer.cut_off:
        return Finding("max_tokens", "honoured")
    return Finding("max_tokens", "unknown", "the answer ended before the limit")


def judge_stop(free: str, stopped: Answers) -> Finding:
    """Say whether an answer ended at the first stop text, from the same answer `free` of them."""
    if isinstance(stopped, EndpointError):
        return _failed("stop", stopped)
    text = _text(stopped)
    if any(stop in text for stop in _STOPS):
        return Finding("stop", "ignored", "the answer runs on past the texts at which it should end")
    if not any(stop in free for stop in _STOPS):
        return Finding("stop", "unknown", "no answer held a text to stop at")
    return Finding("stop", "honoured")


def judge_logprobs(answers: Answers) -> Finding:
    """Say whether log-probabilities came when they were asked for."""
    if isinstance(answers, EndpointError):
        return _failed("logprobs", answers)
    if not answers[0].logprobs:
        return Finding("logprobs", "ignored", "none came: signals from log-probabilities will be missing")
    return Finding("logprobs", "honoured")


def judge_seed(first: str, again: Answers, others: Sequence[Answers]) -> Finding:
    """Say whether the seed decides the answer: from two answers with one seed and two with others."""
    failed = next((answer for answer in (again, *others) if isinstance(answer, EndpointError)), None)
    if failed is not None:
        return _failed("seed", failed)
    texts = list(map(_text, others))
    if not any((first, _text(again), *texts)):
        words = f"all answers are empty after {TOKENS} tokens, as of a model that thinks first"
        return Finding("seed", "unknown", words)
    if first != _text(again):
        words = "the same seed gave two different texts: trials cannot be repeated exactly"
        return Finding("seed", "ignored", words)
    if set(texts) == {first}:
        words = (
            "three seeds gave the same text: unless the model hardly varies, its answers come from a cache "
            "or a fixed seed, and asking a question again tells nothing new"
        )
        return Finding("seed", "ignored", words)
    return Finding("seed", "honoured")


def judge_n(answers: Answers, *, varied: bool) -> Finding:
    """Return whether a request for two answers gave two, distinct and counted."""
    if isinstance(answers, EndpointError):
        return _failed("n", answers)
    if len(answers) < 2:
        return Finding(
            "n", "ignored", "one answer came although two were asked for; the others are asked singly"
        )
    if varied and answers[0].text == answers[1].text:
        return Finding("n", "ignored", "both answers of a request are the same: ask for one answer at a time")
    tokens = sum(answer.usage.completion_tokens for answer in answers)
    if tokens and all(answer.cut_off for answer in answers) and tokens <= TOKENS:
        words = "the usage counts the tokens of one answer only: ask for one answer at a time"
        return Finding("n", "ignored", words)
    return Finding("n", "honoured")


def _text(answers: Answers) -> str:
    if isinstance(answers, EndpointError):
        return ""
    return answers[0].text


def _failed(parameter: str, error: EndpointError) -> Finding:
    verdict: Verdict = "unknown"
    if isinstance(error, PermanentEndpointError):
        verdict = "refused"
    return Finding(parameter, verdict, str(error))
