"""Tasks of Inspect, and a provider, for tests/interop/test_inspect_driver.py."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelAPI, ModelOutput, modelapi
from inspect_ai.scorer import match
from inspect_ai.solver import solver

seen = set()


@modelapi(name="toy")
class Toy(ModelAPI):
    async def generate(self, input, tools, tool_choice, config):
        return ModelOutput.from_content(self.model_name, "yes" if self.model_name == "good" else "no")


@task
def asking():
    return Task(dataset=[Sample(input=f"{n}?", target="yes") for n in range(30)], scorer=match())


@solver
def answers():
    async def solve(state, generate):
        if state.sample_id == "bad":
            raise RuntimeError("the sandbox went away")
        state.output.completion = "yes" if "sage" in str(state.model) else "no"
        return state

    return solve


def with_errors(**more):
    samples = [Sample(id=name, input=f"{name}?", target="yes") for name in ("bad", *"abcdefghijkl")]
    return Task(dataset=samples, solver=answers(), scorer=match(), **more)


@task
def erring():
    return with_errors()


@task
def failing():
    return with_errors(sandbox="nowhere")


@solver
def agent():
    async def solve(state, generate):
        state.metadata["calls"] = 0
        while "END" not in state.input_text or state.metadata["calls"] < 2:
            state = await generate(state)
            state.metadata["calls"] += 1
            key = (str(state.model), state.sample_id, state.epoch)
            if "FAIL" in state.input_text and key not in seen:
                seen.add(key)
                raise RuntimeError("the tool went away")
        return state

    return solve


@task
def agents():
    kinds = ["END", "END FAIL", "for ever"]
    samples = [Sample(id=f"s{n}", input=f"{n} {kinds[n % 3]}", target="yes") for n in range(12)]
    return Task(dataset=samples, solver=agent(), scorer=match())
