"""How many examples a property test draws."""

from typing import Any

from hypothesis import settings


def drawn(examples: int, **options: Any) -> settings:
    """Return settings that draw so many examples: in a search as many times more as other tests draw then."""
    usual = settings.get_profile("suite").max_examples
    more = settings().max_examples / usual
    return settings(max_examples=round(examples * more), **options)
