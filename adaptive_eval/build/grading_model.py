"""The model behind a judge or verifier: asked through an endpoint, by the engine's retry, on an account."""

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from adaptive_eval.build.model_clients import prompt_bound
from adaptive_eval.core.budget import NOTHING, PICODOLLARS, Account, Amount
from adaptive_eval.core.results import BudgetLine
from adaptive_eval.core.spec import BudgetSpec
from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.endpoints.transport import body_limit
from adaptive_eval.engine.discards import Discards, cause_of
from adaptive_eval.engine.retry import with_retries
from adaptive_eval.engine.seed_proof import Repeat, SeedProof
from adaptive_eval.errors import REQUEST_STATUSES, EndpointError, ScorerUnavailable, TransientEndpointError
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.options.scorers import ScorerBudgetConfig
from adaptive_eval.scoring.model_graded import LONGEST, MODELS, Bill, CannotScore, ModelGradedScorer
from adaptive_eval.scoring.text import sendable
from adaptive_eval.trial import Completion, DiscardCause, Message, Question

RETRY = RetryConfig(attempts=2, max_seconds=60.0)
"""One more attempt after a dropped connection or a busy server; then the engine scores the answer later."""

_TEST_SEEDS = 1_000_000
"""Beyond the seeds of an answer's judgements: seeds that test whether the judge repeats itself."""
_ROUNDING = 5e-9


class Failure(NamedTuple):
    """A failed request."""

    error: EndpointError
    latency: float  # seconds after which it failed


class GradingModelClient:
    """Asks a scorer's model, and counts what that costs.

    A request that may have been billed although no answer came, or none with a report of tokens, counts at
    its worst. What an answer without a score has cost is put on the bill of the next answer, since a run
    file keeps the bills alone.
    """

    def __init__(self, scorer: ModelGradedScorer) -> None:
        self._scorer = scorer
        limits = scorer.budget or ScorerBudgetConfig()
        self._price = scorer.price
        self.account = Account(BudgetSpec(limits.requests, limits.tokens, limits.usd))
        self._unbilled = Bill()
        self._discards = Discards()
        # Statuses before the first answer of the server, by the prompt: judged once there is one.
        self._not_judged: dict[int, list[Failure]] = {}
        # Whether judgements repeat, by temperature: at 0 they may not depend on the seed.
        self._proofs: defaultdict[float, SeedProof] = defaultdict(SeedProof)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._endpoint: OpenAIChat | None = None

    async def ask(
        self, messages: Sequence[Message], bill: Bill, *, seed: int | None = None, **parameters: Any
    ) -> Completion:
        """Ask within the budget, and put the cost on `bill`; see :class:`GradingModel`.

        A failed request that the server may have begun has given up a judgement. Unless the judge is shown to
        repeat itself, another draw stands for it, so its cause is put on `bill` too. The chances of a
        verifier are no draws: asked again, they are the same.
        """
        kind = self._scorer.kind
        model = self._scorer.model
        sent = [replace(message, content=sendable(message.content)) for message in messages]
        failed = self._not_judged.pop(hash(tuple(sent)), [])
        parameters |= self._scorer.extra_body or {}
        attempt = partial(self._attempt, sent, bill, parameters=parameters)
        try:
            answer = await with_retries(
                partial(attempt, failed, seed),
                RETRY,
                sleep=asyncio.sleep,
                jitter=random.random,
                unwanted=lambda: False,
            )
        except EndpointError as error:
            if error.status in REQUEST_STATUSES:
                raise CannotScore(f"refused the request ({error})") from None
            self._unbilled.add(bill)
            wait = None
            if isinstance(error, TransientEndpointError):
                wait = error.retry_after
            words = f"the {kind} ({model}) did not answer: {error}"
            bill.discarded += self._given_up(failed)
            if self._scorer.endpoint not in self._discards.fastest:
                self._not_judged[hash(tuple(sent))] = [one for one in failed if one.error.status is not None]
            discarded = tuple(bill.discarded)
            raise ScorerUnavailable(words, kind=kind, retry_after=wait, discarded=discarded) from None
        causes = self._given_up(failed)
        if causes and not await self._is_same_draw(answer, seed, attempt, parameters.get("temperature")):
            bill.discarded += causes
        bill.add(self._unbilled)
        self._unbilled = Bill()
        return answer

    @property
    def spare(self) -> bool:
        """Whether half of every limit is left, for requests that decide nothing and that nobody reserved."""
        limited = [line for line in self.lines() if line.limit is not None]
        return all(line.spent + line.reserved < (line.limit or 0.0) / 2 for line in limited)

    def _given_up(self, failed: Sequence[Failure]) -> list[DiscardCause]:
        """Return why failed requests may have given up a judgement."""
        if self._scorer.kind != "judge":
            return []
        fastest = self._discards.fastest.get(self._scorer.endpoint)
        causes = [cause_of(one.error.kind, one.error.status, one.latency, fastest) for one in failed]
        return [cause for cause in causes if cause is not None]

    async def _is_same_draw(
        self,
        answer: Completion,
        seed: int | None,
        attempt: Callable[[list[Failure], int], Awaitable[Completion]],
        temperature: float | None,
    ) -> bool:
        """Return whether the judge gives this answer whenever it is asked so; test it within the budget."""
        url = self._scorer.endpoint
        if seed is None or temperature is None or not self.spare:
            return False

        async def again(number: int, _: Collection[str]) -> Repeat | None:
            try:
                found = await attempt([], seed + number * _TEST_SEEDS)
            except (EndpointError, CannotScore):
                return None
            return Repeat(found.text, url)

        repeats = temperature == 0.0
        return await self._proofs[temperature].holds(Repeat(answer.text, url), {url}, again, repeats=repeats)

    async def _attempt(
        self,
        messages: Sequence[Message],
        bill: Bill,
        failed: list[Failure],
        seed: int | None,
        *,
        parameters: dict[str, Any],
    ) -> Completion:
        worst = self._amount(prompt_bound(messages), self._scorer.longest_reply)
        if not self.account.affords(worst):
            raise CannotScore(f"was not asked: {self._used_up(worst)}")
        self.account.reserve(worst)
        # Without a budget of tokens or money a bound would only be a wrong figure.
        used: Amount | None = worst if self.account.limits.metered else NOTHING
        started = time.monotonic()
        try:
            (answer,) = await self._connected().sample(messages, seed=seed, n=1, parameters=parameters)
            assert answer is not None
            self._discards.answered(self._scorer.endpoint, time.monotonic() - started)
            if answer.usage.total_tokens:
                used = self._amount(answer.usage.prompt_tokens, answer.usage.completion_tokens)
            return answer
        except EndpointError as error:
            failed.append(Failure(error, time.monotonic() - started))
            if not error.billed:
                used = None
            raise
        finally:
            self.account.release(worst)
            if used is not None:
                self.account.charge(used)
                bill.add(Bill(1, used.prompt, used.completion))

    def _connected(self) -> OpenAIChat:
        """Return the endpoint of this event loop: connections belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        if self._endpoint is None or self._loop is not loop:
            scorer = self._scorer
            self._loop = loop
            self._proofs.clear()
            self._endpoint = OpenAIChat(
                scorer.endpoint,
                scorer.model,
                api_key_env=scorer.api_key_env,
                total_timeout=scorer.timeout,
                concurrency=scorer.concurrency,
                most_bytes=body_limit({"max_tokens": scorer.longest_reply}),
            )
        return self._endpoint

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        if self._endpoint is not None and self._loop is asyncio.get_running_loop():
            await self._endpoint.aclose()
            self._endpoint = None

    def resume(self, spent: Bill, lost: int, questions: Sequence[Question]) -> None:
        """Begin with what previous sessions have spent, and with `lost` answers that may have been graded."""
        self.account = Account(self.account.limits)
        self.account.charge(self._amount(spent.prompt_tokens, spent.completion_tokens))
        self.account.trials = spent.requests
        if lost and self.account.limits.limited:
            requests = lost * self._scorer.requests_each
            worst = self._amount(self.longest_prompt(questions), self._scorer.longest_reply)
            self.account.presume_billed(worst, requests)
            self.account.trials += requests

    def longest_prompt(self, questions: Sequence[Question]) -> int:
        """Return the most tokens of a prompt about an answer to one of `questions`."""
        longest = max(prompt_bound(self._scorer.messages("", question)) for question in questions)
        return longest + LONGEST * self._scorer.texts_each

    def room(self, prompt: int) -> int | None:
        """Return how many answers can still be graded with prompts of so many tokens; None: any number."""
        worst = self._amount(prompt, self._scorer.longest_reply)
        each = self._scorer.requests_each
        rooms = [
            (line.limit + _ROUNDING - line.spent) / (amount * each)
            for line, amount in self._limited(worst)
            if line.limit is not None and amount > 0.0
        ]
        if rooms:
            return max(0, int(min(rooms)))
        return None

    def lines(self, owner: str = "") -> Iterator[BudgetLine]:
        """Yield the amounts spent, by unit, under the name `owner`."""
        for line in self.account.lines(priced=self._price is not None):
            name = "requests"
            if line.name != "trials":
                name = line.name
            yield replace(line, name=name, scope="scorer", owner=owner)

    def _limited(self, worst: Amount) -> Iterator[tuple[BudgetLine, float]]:
        """Yield each line with what one request of this worst case takes of it."""
        amounts = {"requests": 1.0, "tokens": worst.prompt + worst.completion, "usd": worst.usd / PICODOLLARS}
        for line in self.lines():
            yield line, amounts[line.name]

    def _used_up(self, worst: Amount) -> str:
        limited = [(line, amount) for line, amount in self._limited(worst) if line.limit is not None]
        short = [line for line, more in limited if line.spent + line.reserved + more > (line.limit or 0.0)]
        line = (short or [line for line, _ in limited])[0]
        return f"its budget of {line.limit:g} {line.name} is used up"

    def _amount(self, prompt: int, completion: int) -> Amount:
        usd = 0
        if self._price is not None:
            usd = self._price.most(prompt, completion)
        return Amount(prompt, completion, usd)


MODELS["openai"] = GradingModelClient
