"""Addresses as people and jobs write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.build.server_discovery import read_addresses
from adaptive_eval.options.section import check_url


@pytest.mark.parametrize(
    ("line", "url"),
    [
        ("gpu1:8000", "http://gpu1:8000/v1"),
        ("  gpu1:8000\t# node 7", "http://gpu1:8000/v1"),
        ("10.1.2.3:8000", "http://10.1.2.3:8000/v1"),
        ("[fd00::7]:8000", "http://[fd00::7]:8000/v1"),
        ("http://gpu1:8000/qwen/v1/", "http://gpu1:8000/qwen/v1"),
        ("https://gpu1.example.com", "https://gpu1.example.com"),
    ],
)
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
