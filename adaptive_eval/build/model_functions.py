"""User functions named in a config: models and solvers."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from adaptive_eval.config import RunConfig
from adaptive_eval.endpoints.function import Answerer, litellm_model
from adaptive_eval.engine.solving import Solver
from adaptive_eval.errors import UserCodeError
from adaptive_eval.options.section import IN_LITELLM, PYTHON
from adaptive_eval.scoring.together import asked_times
from adaptive_eval.tasks.sources import modules_of


def functions_of(config: RunConfig) -> dict[str, Answerer]:
    """Return the function of every model that is one, by the name of the model."""
    return {
        model.name: litellm_model(model.name, model.model_id)
        if model.function == IN_LITELLM
        else _function(model.function, config.base_dir)
        for model in config.models
        if model.function is not None
    }


def solvers_of(config: RunConfig) -> dict[str, Solver]:
    """Return the solver of every task that has one, by the name of the task."""
    found = {}
    for task in config.tasks:
        if task.solver is not None:
            name = task.solver.function
            function = _function(name.removeprefix(PYTHON), config.base_dir)
            found[task.name] = Solver(name, function, task.solver.calls, task.solver.prompt_tokens)
        elif task.answers is not None:
            count = task.answers.k
            found[task.name] = Solver(f"{count} answers", asked_times(count), count, sys.maxsize)
    return found


def _function(name: str, base: Path) -> Answerer:
    """Return the function ``module:function`` or ``path/to/file.py:function``, as from the folder `base`."""
    place, _, attribute = name.rpartition(":")
    folder, module = base, place
    if place.endswith(".py"):
        file = base / Path(place).expanduser()
        if not file.is_file():
            raise UserCodeError(
                f"{PYTHON}{name}: there is no file {file}; a relative path starts from the config's folder"
            )
        folder, module = file.parent, file.stem
    with modules_of(folder, module):
        try:
            found = getattr(import_module(module), attribute, None)
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            raise UserCodeError(f"{PYTHON}{name}: {place} cannot be imported: {words}") from error
    if not callable(found):
        raise UserCodeError(f"{PYTHON}{name}: {place} has no function {attribute!r}")
    function: Answerer = found
    return function
