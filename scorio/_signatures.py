"""Functions whose signatures are made of a common one and of parameters of their own."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def with_own(
    source: Callable[..., Any],
    taken: int,
    common: Callable[..., Any],
    first: int,
    call: Callable[[Mapping[str, Any], dict[str, Any]], Any],
) -> Callable[..., Any]:
    """Return a function with the name and docstring of `source`, the parameters of `common`, and its own.

    Its own parameters, those of `source` behind the number `taken`, stand behind the `first` of `common`;
    those that `source` has by keyword only, behind all that `common` has by position.
    `call` gets all arguments by name, and its own.
    """
    parameters = list(inspect.signature(common).parameters.values())
    own = list(inspect.signature(source).parameters.values())[taken:]
    front, behind = _by_kind(own)
    positional, keywords = _by_kind(parameters)
    behind = [one.replace(kind=one.POSITIONAL_OR_KEYWORD) for one in behind]
    places = [*positional[:first], *front, *positional[first:], *behind]
    form = inspect.Signature([*places, *keywords])
    names, known = [one.name for one in places], form.parameters
    defaults = {name: one.default for name, one in known.items() if one.default is not one.empty}

    def function(*args: Any, **options: Any) -> Any:
        given = {**defaults, **dict(zip(names, args, strict=False)), **options}
        twice = not options.keys().isdisjoint(names[: len(args)])
        if twice or len(args) > len(names) or given.keys() != known.keys():
            form.bind(*args, **options)  # says what is wrong with them
        return call(given, {one.name: given[one.name] for one in own})

    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(function, attribute, getattr(source, attribute))
    function.__signature__ = form  # type: ignore[attr-defined]
    return function


def _by_kind(parameters: list[inspect.Parameter]) -> tuple[list[inspect.Parameter], list[inspect.Parameter]]:
    """Return those that may be given by position, and those that are given by keyword only."""
    number = sum(one.kind is not one.KEYWORD_ONLY for one in parameters)
    return parameters[:number], parameters[number:]
