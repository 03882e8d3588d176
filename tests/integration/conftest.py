"""The browser that the tests of a file share."""

import chromium
import pytest


@pytest.fixture(scope="module")
def browser():
    with chromium.browser() as opened:
        yield opened
