"""Addresses as people and jobs write them."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.build.server_discovery import read_addresses
from adaptive_eval.options.section import check_url

TEXTS = (Path(__file__).parents[1] / "data" / "read_texts.json").read_text("utf-8")


@pytest.mark.parametrize(("line", "url"), json.loads(TEXTS)["servers"])
def test_what_a_line_may_hold(line, url):
    assert read_addresses(line) == (url,)


@given(st.text())
def test_any_text_is_a_list_of_addresses_or_is_refused(text):
    try:
        found = read_addresses(text)
    except ValueError:
        return
    assert len(set(found)) == len(found)
    assert all(check_url(url) == url for url in found)
