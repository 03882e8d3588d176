"""Samples per prompt where ``samples_per_request: auto`` leaves their number to the run."""

from __future__ import annotations

from collections.abc import Sequence

from adaptive_eval.config import RunConfig
from adaptive_eval.config.model import ModelConfig
from adaptive_eval.engine.independence import temperature_of
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import estimated_tokens

MOST = 8
"""The most that ``auto`` takes: with more, a decision that comes early takes half as many answers again."""

PROMPT_WEIGHT = 0.25
"""A prompt token costs a quarter of an answer token: so providers price them; to own servers it is less."""

ASSUMED_ANSWER = 1000.0
"""Tokens of an answer where no longest one is given."""

_PASSES = 8.0
"""Passes after which decisions are taken to fall."""


def asked_temperature(model: ModelConfig) -> float:
    """Return the temperature at which a model is asked; 0 where it takes the likeliest token."""
    return temperature_of({**model.sampling.as_sent(), **model.extra_body})


def further_answers(number: int, passes: float) -> float:
    """Return the share of further answers that a decision takes where a question is asked `number` in a row.

    Examples
    --------
    >>> [round(further_answers(number, passes), 2) for passes in (10, 4) for number in (1, 4, 8)]
    [0.0, 0.03, 0.11, 0.0, 0.17, 0.68]
    """
    return 0.17 * (number / passes) ** 2 if number > 1 else 0.0


def best_samples_per_prompt(prompt: float, answer: float) -> int:
    """Return how many answers with one request cost least, all that a decision takes together.

    Examples
    --------
    >>> [best_samples_per_prompt(*tokens) for tokens in ((100.0, 4096.0), (300.0, 200.0), (700.0, 64.0))]
    [1, 4, 8]
    """

    def cost(number: int) -> float:
        return (PROMPT_WEIGHT * prompt / number + answer) * (1.0 + further_answers(number, _PASSES))

    return min(range(1, MOST + 1), key=cost)


def samples_per_prompt_of(config: RunConfig, tasks: Sequence[Task]) -> int:
    """Return the samples per prompt that the models' requests can ask for.

    It is the largest number that a model has. Where a model has ``auto`` and none a number above 1,
    it follows from the prompts and longest answers of these models, which cannot change between sessions of a
    run: it orders the questions. At temperature 0 answers of one request would agree with each other: 1.
    """
    written = config.samples_written
    asking = [model for model in config.models if model.samples_per_request == "auto"]
    greedy = any(asked_temperature(model) == 0.0 for model in config.models)
    if written > 1 or not asking or greedy:
        return written
    lengths = [
        (estimated_tokens(task.render(question)), task.shuffles_options)
        for task in tasks
        for question in task.questions
    ]
    shared = sum(tokens for tokens, alone in lengths if not alone) / len(lengths)
    own = sum(tokens for tokens, alone in lengths if alone) / len(lengths)
    longest = [model.sampling.token_limit or ASSUMED_ANSWER for model in asking]
    return best_samples_per_prompt(shared, sum(longest) / len(longest) + PROMPT_WEIGHT * own)
