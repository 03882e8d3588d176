"""Answer keys from files: what is right, and what is plausibly wrong."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.mimic.answer_key import Answerable, load_answer_key
from adaptive_eval.mimic.mimic_spec import KnownQuestion, MimicSpec, ModelSpec

MODELS = (ModelSpec(name="a", mean=0.5),)


def outright(*questions: KnownQuestion) -> list[Answerable]:
    return load_answer_key(MimicSpec(models=MODELS, questions=questions))[0]


@given(st.decimals(-(10**9), 10**9, places=3) | st.integers(-(10**12), 10**12).map(Decimal))
def test_wrong_numbers_are_never_right_and_keep_their_sign(number: Decimal) -> None:
    (question,) = outright(KnownQuestion(id="q", question="How many?", target=str(number), kind="numeric"))
    wrong = [Decimal(text) for text in question.wrong]
    assert wrong
    assert number not in wrong
    assert len(set(wrong)) == len(wrong)
    assert number < 0 or min(wrong) >= 0
