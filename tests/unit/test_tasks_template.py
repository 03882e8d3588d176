"""Prompt templates: fields are replaced, LaTeX and everything else stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.tasks.template import PromptTemplate

UNTOUCHED = [
    "", r"\boxed{}", r"\boxed{answer}", r"\frac{a}{b}", r"\frac{x+1}{b}{c}", r"\textbf{\frac{a}{b}}{c}",
    r"\boxed{\text{x+1}}", r"\sqrt[3]{x}", r"\operatorname*{argmax}", "x^{n} + a_{i}", '{"a": {"b": 1}}',
    "{1, 2} and { spaced } and {}", "{", "}", "{a b}", "{0}", "{input!r}", "{input:>10}", "a } b { c",
]  # fmt: skip


@pytest.mark.parametrize("text", UNTOUCHED)
def test_braces_that_are_no_field_stay(text):
    template = PromptTemplate.parse(text)
    assert template.fields == ()
    assert template.render({}) == text


@pytest.mark.parametrize(
    ("text", "fields", "rendered"),
    [
        ("{q}", ("q",), "Q"), ("{q}{r}{q}", ("q", "r"), "QRQ"), (r"{q} \boxed{{}}", ("q",), r"Q \boxed{}"),
        (r"{q} \boxed{}", ("q",), r"Q \boxed{}"), (r"\boxed{{{q}}}", ("q",), r"\boxed{Q}"),
        (r"\frac{{a}}{{b}} {q}", ("q",), r"\frac{a}{b} Q"), (r"\frac{{a}}{b} {q}", ("q",), r"\frac{a}{b} Q"),
        ("{{q}}", (), "{q}"), ('{{"a": {{"b": {q}}}}}', ("q",), '{"a": {"b": Q}}'),
        (r"\text{the {q} is}", ("q",), r"\text{the Q is}"), ("{{{{", (), "{{"), ("}}}}", (), "}}"),
        ("{q} }} {{", ("q",), "Q } {"), ("{{{x+1}}}", (), "{{x+1}}"), ("Q: {q}\nA:", ("q",), "Q: Q\nA:"),
    ],
)  # fmt: skip
def test_fields_and_doubled_braces(text, fields, rendered):
    template = PromptTemplate.parse(text)
    assert template.fields == fields
    assert template.render({"q": "Q", "r": "R"}) == rendered


@given(st.text("ab{}\\^_[] ", max_size=60))
def test_every_text_is_a_template(text):
    template = PromptTemplate.parse(text)
    rendered = template.render(dict.fromkeys(template.fields, ""))
    assert len(rendered) <= len(text)
    assert PromptTemplate.parse(text) == template
