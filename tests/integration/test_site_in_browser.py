"""Pages of the documentation site that ./scripts/site has built, in a real browser."""

from pathlib import Path

import pytest
from chromium import hosted, objections

SITE = Path(__file__).parents[2] / "build" / "site"


@pytest.mark.slow
@pytest.mark.skipif(not (SITE / "index.html").exists(), reason="no documentation site here: ./scripts/site")
@pytest.mark.parametrize("name", ["index", "getting-started", "cli-reference"])
def test_pages_of_the_site_fit_screens_and_are_accessible(browser, name):
    with hosted(SITE) as address:
        page = browser.new_page(reduced_motion="reduce")
        page.goto(f"{address}{name}.html")
        assert "\\|" not in page.inner_text("main")
        assert objections(page) == []
