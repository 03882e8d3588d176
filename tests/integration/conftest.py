"""The browser that the tests of a file share."""

import chromium
import pytest
from command_line import needs_sandbox


@pytest.fixture(scope="module")
def browser():
    with chromium.browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def sandbox():
    needs_sandbox()
