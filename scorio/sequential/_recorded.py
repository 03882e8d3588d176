"""From arguments to trials: outcomes are read by their form, and what was read says how.

One-dimensional data are a stream of trials in their order, two-dimensional data questions x trials, three
dimensions models x questions x trials; a frame is a benchmark with a model a column and a question a row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._arguments import bounds_pair, positive
from scorio._named import Labels, Outcomes, frame_labels, is_frame
from scorio.arrays import Bools, Floats, Integers, Ints
from scorio.eval._inputs import Missing, as_array, missing_mask, read_trials, refuse_masked
from scorio.sequential.contrasts import Target
from scorio.sequential.moments import MOMENT_LEVELS, Mark, unit_scores
from scorio.sequential.trial_sequence import TrialSequence

Order: TypeAlias = "int | Sequence[int] | Integers | None"
"""Seed of the questions' order, the order itself, or None for the order as given."""
Range: TypeAlias = "tuple[float, float] | None"
"""The least and the greatest score."""
Form: TypeAlias = Literal["stream", "questions"]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreScale:
    """What outcomes are worth: categories by a table of unit scores, or numbers.

    Parameters
    ----------
    scores : ndarray of float
        Unit score of each category; of numbers those that occur.
    lowest, width : float
        The least score on the caller's scale, and how far the greatest lies above it.
    numbers : bool
        Whether scores are numbers, of which the first two moments are counted.
    """

    scores: Floats
    lowest: float = 0.0
    width: float = 1.0
    numbers: bool = False

    @classmethod
    def of_weights(cls, weights: ArrayLike | None) -> "ScoreScale":
        """Return the scale of categories with these weights; of 0 and 1 without."""
        if weights is None:
            return cls(np.array([0.0, 1.0]))
        given = np.asarray(weights)
        if given.dtype.kind not in "biuf":
            raise ValueError(f"weights must be numbers; got {weights!r}")
        numbers = given.astype(np.float64)
        return cls(unit_scores(numbers), float(numbers.min()), float(np.ptp(numbers)))

    @classmethod
    def of_range(cls, limits: Range) -> "ScoreScale":
        """Return the scale of numbers in a range, none of which is known yet."""
        low, high = bounds_pair(limits, "range")
        if not 0.0 < high - low < np.inf:
            raise ValueError(f"range must be two finite numbers, the lower one first; got {limits!r}")
        return cls(MOMENT_LEVELS, low, high - low, numbers=True)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest score."""
        return self.lowest, self.lowest + self.width

    @property
    def limits(self) -> str:
        """The same in words."""
        return "{:g} and {:g}".format(*self.ends)

    def unit(self, values: ArrayLike) -> Floats:
        """Return numbers on this scale as unit scores."""
        return np.asarray((np.asarray(values, dtype=np.float64) - self.lowest) / self.width)

    def margin(self, equivalence: float | None) -> float | None:
        """Return an equivalence margin in unit scores."""
        if equivalence is None:
            return None
        if positive("equivalence", equivalence) >= self.width:
            raise ValueError(
                f"equivalence must be less than the range of scores, {self.width:g}; got {equivalence!r}"
            )
        return equivalence / self.width


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Outcomes of one model: values of shape (M, N), and which of them are missing."""

    argument: str
    values: NDArray[Any]
    absent: Bools

    @property
    def present(self) -> NDArray[Any]:
        """The outcomes that are not missing."""
        return self.values[~self.absent]


@dataclass(frozen=True, slots=True, eq=False)
class ReadOutcomes:
    """Outcomes of models as they were read.

    Parameters
    ----------
    names : tuple of str or None
        The models, if they came with names.
    models : list of Model
        Their outcomes; streams have one trial a question.
    form : {'stream', 'questions'}
        How they were read.
    scale : Scale
        What the outcomes are worth.
    """

    names: Labels | None
    models: list[Model]
    form: Form
    scale: ScoreScale

    @property
    def reading(self) -> str:
        """How the outcomes were read, in words."""
        questions, repeats = self.models[0].values.shape
        if self.form == "stream":
            return f"a stream of {questions} trials in their order, of a population of questions"
        return f"{counted(questions, 'question')} x {counted(repeats, 'trial')}"

    def target(self, target: Target) -> Target:
        """Return the target: trials of a stream are a sample of questions."""
        if self.form == "stream":
            return "population"
        return target

    def order(self, order: Order) -> Order:
        """Return the order of the questions: streams keep theirs."""
        if self.form == "stream":
            return None
        return order

    def trials(self) -> Ints:
        """Return categories of shape (L, M, N), -1 if a trial is missing."""
        shapes = [model.values.shape for model in self.models]
        if self.form == "questions" and len(set(shapes)) > 1:
            said = " and ".join(f"{one} ({_shape_in_words(one)})" for one in dict.fromkeys(shapes))
            raise ValueError(
                f"{_arguments(self.models)} must have the same shape, questions x trials; got {said}. Fill "
                "up the shorter with a value that `missing` names"
            )
        longest = max(questions for questions, _ in shapes)
        found = np.full((len(shapes), longest, shapes[0][1]), Mark.MISSING, dtype=np.int64)
        for categories, model in zip(found, self.models, strict=True):
            categories[: len(model.values)] = self._categories(model)
        return found

    def question_means(self) -> list[Floats]:
        """Return each model's mean score on every question, on the caller's scale."""
        return list(map(self._means, self.models))

    def known_scores(self) -> list[list[Floats]]:
        """Return the scores of each model's trials, one array a question, on the caller's scale."""
        found = []
        for model in self.models:
            rows = zip(self._values(model), model.absent, strict=True)
            found.append([values[~absent] for values, absent in rows])
        return found

    def _categories(self, model: Model) -> Ints:
        scale = self.scale
        if scale.numbers:
            found = np.searchsorted(scale.scores, scale.unit(model.values))
            return np.where(model.absent, Mark.MISSING, found)
        missing = None
        if model.absent.any():
            missing = model.absent
        return read_trials(model.argument, model.values, scale.scores.size, missing)

    def _means(self, model: Model) -> Floats:
        number = np.logical_not(model.absent).sum(axis=1)
        if not number.all():
            question = int(number.argmin())
            raise ValueError(
                f"{model.argument} must have a trial of every question; question {question} has none"
            )
        return np.asarray(np.where(model.absent, 0.0, self._values(model)).sum(axis=1) / number)

    def _values(self, model: Model) -> Floats:
        """Return the score of each trial; if a trial is missing, any."""
        if self.scale.numbers:
            return np.asarray(model.values, dtype=np.float64)
        rewards = self.scale.lowest + self.scale.width * self.scale.scores
        return np.asarray(rewards[self._categories(model)])


def read_each(
    outcomes: Mapping[str, ArrayLike],
    weights: ArrayLike | None = None,
    missing: Missing = None,
    limits: Range = None,
) -> ReadOutcomes:
    """Read arguments that hold one model each."""
    return _recorded(None, dict(outcomes), [missing] * len(outcomes), weights, limits)


def read_models(
    R: Outcomes, weights: ArrayLike | None = None, missing: Missing = None, limits: Range = None
) -> ReadOutcomes:
    """Read an argument that holds several models: a mapping, a frame, or an array of three dimensions."""
    if isinstance(R, Mapping):
        found = {f"R[{name!r}]": outcomes for name, outcomes in R.items()}
        return _recorded(tuple(map(str, R)), found, _masks(missing, found), weights, limits)
    refuse_masked("R", R, missing)
    labels = frame_labels(R)
    array = as_array("R", R)
    if missing is None or np.ndim(missing) == 0:
        mask = missing
    else:
        mask = np.asarray(missing)
    if is_frame(R):  # a model a column, one trial a question
        array = array.T[:, :, None]
        if isinstance(mask, np.ndarray):
            mask = mask.T[:, :, None]
    elif array.ndim == 2 and labels is not None:  # xarray: models x questions
        array = array[:, :, None]
        if isinstance(mask, np.ndarray):
            mask = mask[:, :, None]
    if array.ndim != 3 or array.size == 0:
        raise ValueError(
            "R must hold several models: a mapping of names to outcomes, a frame with a model a column and "
            f"a question a row, or an array of shape (models, questions, trials); got shape {array.shape}"
            f"{_form_in_words(array)}"
        )
    found = {f"R[{number}]": outcomes for number, outcomes in enumerate(array)}
    return _recorded(labels, found, _masks(mask, found), weights, limits)


def _masks(missing: Missing, outcomes: Mapping[str, ArrayLike]) -> list[Missing]:
    """Return what marks missing trials, for each model: a mask of all is cut along its first axis."""
    axes = max(map(np.ndim, outcomes.values()), default=0)
    if missing is None or np.ndim(missing) != axes + 1 or len(np.asarray(missing)) != len(outcomes):
        return [missing] * len(outcomes)
    return list(np.asarray(missing))


def _recorded(
    names: Labels | None,
    outcomes: dict[str, ArrayLike],
    missing: Sequence[Missing],
    weights: ArrayLike | None,
    limits: Range,
) -> ReadOutcomes:
    pairs = zip(outcomes.items(), missing, strict=True)
    models = [_read_model(name, values, marker) for (name, values), marker in pairs]
    if not models:
        raise ValueError("R must hold at least one model; got none")
    forms = {model.values.ndim for model in models}
    if len(forms) > 1:
        said = "; ".join(f"{model.argument} is{_form_in_words(model.values)[1:]}" for model in models)
        raise ValueError(f"{_arguments(models)} must have one form; {said}")
    form: Form = "questions"
    if forms == {1}:
        form = "stream"
    columns = list(map(_as_matrix, models))
    return ReadOutcomes(names, columns, form, _scale_of(columns, weights, limits))


def _read_model(name: str, outcomes: ArrayLike, missing: Missing) -> Model:
    refuse_masked(name, outcomes, missing)
    if is_frame(outcomes) and np.shape(outcomes)[1:] != (1,):
        raise ValueError(
            f"{name} is a frame, which holds a model a column and a question a row: pass it alone, or "
            f"{name}.to_numpy() for the questions x trials of one model"
        )
    array = as_array(name, outcomes)
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"{name} must be a stream of trials (one dimension) or questions x trials (two), at least one; "
            f"got shape {array.shape}"
        )
    absent = np.zeros(array.shape, dtype=bool)
    if missing is not None:
        absent = missing_mask(name, array, np.asarray(missing))
    return Model(name, array, absent)


def _as_matrix(model: Model) -> Model:
    if model.values.ndim == 2:
        return model
    return Model(model.argument, model.values[:, None], model.absent[:, None])


def _scale_of(models: Sequence[Model], weights: ArrayLike | None, limits: Range) -> ScoreScale:
    """Return the scale of outcomes: of weights or a range if given, else of 0 and 1 or of [0, 1]."""
    _refuse_not_numbers(models)
    if weights is not None:
        if limits is not None:
            raise ValueError("range must be None with weights: categories have weights, scores a range")
        return ScoreScale.of_weights(weights)
    known = np.concatenate([model.present for model in models])
    if limits is None and np.isin(known, (0, 1)).all():
        return ScoreScale.of_weights(None)
    ends = limits
    if limits is None:
        ends = (0.0, 1.0)
    scale = ScoreScale.of_range(ends)
    low = scale.lowest
    outside = int(((known < low) | (known > low + scale.width)).sum())
    if outside:
        raise ValueError(
            f"{_arguments(models)} must hold scores between {scale.limits}; got {outside} of {known.size} "
            f"beyond them, from {known.min():g} to {known.max():g}. Scores of another range need "
            "range=(low, high), categories weights=, a value that marks missing trials missing="
        )
    values = np.unique(np.append(scale.unit(known), MOMENT_LEVELS))
    return ScoreScale(values, low, scale.width, numbers=True)


def _refuse_not_numbers(models: Sequence[Model]) -> None:
    """Refuse NaN that `missing` does not name, and infinite numbers, in one error that counts them."""
    found = [
        (model.argument, int((~np.isfinite(model.present)).sum()), model.values.size) for model in models
    ]
    bad = [f"{number} of {size} in {name}" for name, number, size in found if number]
    if bad:
        raise ValueError(
            f"outcomes must be finite numbers; got NaN or infinite ones: {', '.join(bad)}. NaN that marks "
            "trials without an answer needs missing=np.nan"
        )


def _arguments(models: Sequence[Model]) -> str:
    return " and ".join(dict.fromkeys(model.argument.partition("[")[0] for model in models))


def _form_in_words(array: NDArray[Any]) -> str:
    if array.ndim == 1:
        return f", a stream of {counted(array.size, 'trial')} of one model (one dimension)"
    if array.ndim == 2:
        return f", the {_shape_in_words(array.shape)} of one model (two dimensions)"
    return ""


def _shape_in_words(shape: tuple[int, ...]) -> str:
    return f"{counted(shape[0], 'question')} x {counted(shape[1], 'trial')}"


def counted(number: int, thing: str) -> str:
    """Return a number of things in words."""
    if number == 1:
        return f"{number} {thing}"
    return f"{number} {thing}s"


def sequence_of(order: Order, questions: int, *, early_repeats: bool = True) -> TrialSequence:
    """Return the trial sequence with the questions in the given order, or drawn with it as seed."""
    if order is None:
        permutation = np.arange(questions)
    elif isinstance(order, (int, np.integer)) and order >= 0:
        permutation = np.random.default_rng(int(order)).permutation(questions)
    else:
        permutation = np.asarray(order)
    if permutation.shape != (questions,) or not np.array_equal(np.sort(permutation), np.arange(questions)):
        raise ValueError(f"order must be None, a seed or a permutation of 0..{questions - 1}; got {order!r}")
    return TrialSequence(permutation, early_repeats=early_repeats)


def lay_out(trials: Ints, order: Order) -> tuple[TrialSequence, Ints, Ints]:
    """Return the trial sequence of recorded trials (L, M, N), the categories along it, and their numbers.

    Categories have shape (L, M N). Trials that are missing at a model's end were not made.
    """
    _, questions, repeats = trials.shape
    sequence = sequence_of(order, questions, early_repeats=repeats > 1)  # which need a second trial
    steps = questions * repeats
    categories = trials[:, sequence.question(0, steps), sequence.repeats(0, steps)]
    return sequence, categories, np.where(categories >= 0, np.arange(1, steps + 1), 0).max(axis=1)
