"""Functions whose signatures are made of a common one and of parameters of their own."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def with_own(
    source: Callable[..., Any],
    taken: int,
    common: Callable[..., Any],
    first: int,
    call: Callable[[Mapping[str, Any], Sequence[Any]], Any],
) -> Callable[..., Any]:
    """Return a function with the name and docstring of `source`, the parameters of `common`, and its own.

    Its own parameters, those of `source` behind the number `taken`, stand behind the `first` of `common`.
    `call` gets all arguments by name, and the values of its own.
    """
    parameters = list(inspect.signature(common).parameters.values())
    own = list(inspect.signature(source).parameters.values())[taken:]
    form = inspect.Signature([*parameters[:first], *own, *parameters[first:]])

    def function(*args: Any, **options: Any) -> Any:
        given = form.bind(*args, **options)
        given.apply_defaults()
        return call(given.arguments, [given.arguments[one.name] for one in own])

    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(function, attribute, getattr(source, attribute))
    function.__signature__ = form  # type: ignore[attr-defined]
    return function
