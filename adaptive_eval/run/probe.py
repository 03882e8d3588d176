"""Ask servers whether they answer, and on request which parameters they honour."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from adaptive_eval.build.assembly import PreparedRun
from adaptive_eval.build.grading import scorer_endpoints
from adaptive_eval.build.model_clients import ModelEndpoint
from adaptive_eval.build.server_discovery import Finder
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.endpoints.parameter_probe import ParameterFindings, probe_parameters
from adaptive_eval.endpoints.server_info import Probe
from adaptive_eval.errors import (
    EndpointError,
    EndpointsUnusable,
    PermanentEndpointError,
    TransientEndpointError,
)


@dataclass(frozen=True)
class Probed:
    """The reply of one server of a model, or its failure."""

    model: str
    endpoint: ModelEndpoint
    result: Probe | EndpointError

    @property
    def words(self) -> str:
        """The failure, with the model and the address."""
        words = str(self.result)
        url = self.endpoint.url
        start = ""
        if url not in words:
            start = f"{url}: "
        return f"{self.model}: {start}{words}"


async def probe_all(endpoints: Mapping[str, Sequence[ModelEndpoint]]) -> list[Probed]:
    """Probe all servers of all models at once; return what each said, in the order given."""

    async def probe(model: str, endpoint: ModelEndpoint) -> Probed:
        try:
            return Probed(model, endpoint, await endpoint.probe())
        except EndpointError as error:
            return Probed(model, endpoint, error)

    return await asyncio.gather(*(probe(model, one) for model, pool in endpoints.items() for one in pool))


def require_usable(probed: Sequence[Probed], *, all_there: bool = False) -> list[str]:
    """Raise EndpointsUnusable naming every server without which its model cannot be asked."""
    there = {one.model for one in probed if isinstance(one.result, Probe)}
    missing: list[str] = []
    absent: list[str] = []
    for one in probed:
        if isinstance(one.result, EndpointError):
            spared = isinstance(one.result, TransientEndpointError) and one.model in there and not all_there
            group = missing
            if spared:
                group = absent
            group.append(one.words)
    if missing:
        noun = "endpoints are"
        if len(missing) == 1:
            noun = "endpoint is"
        lines = [f"{len(missing)} {noun} not usable; nothing was spent:", *(f"  {line}" for line in missing)]
        raise EndpointsUnusable("\n".join(lines))
    return absent


async def report_endpoints(
    built: PreparedRun, mimic_url: str | None, say: Callable[[str], None], *, spend: bool
) -> None:
    """Report the models of every server, and with `spend` its treatment of request parameters.

    Sources that name servers are read once. A server that is found and cannot be asked is no mistake: a run
    leaves it out.
    """
    models = built.endpoints(mimic_url)
    endpoints = {**models, **scorer_endpoints(built.scorers)}
    async with Finder(built.config) as finder:
        models = {**models, **await _found(built, finder, say)}
        try:
            deaf = await _report(models, {**endpoints, **models}, finder.discoveries, say, spend=spend)
        finally:
            for endpoint in chain.from_iterable(endpoints.values()):
                await endpoint.aclose()
    readers = [task.name for task in built.config.tasks if task.scorer.has("choice_probability")]
    if deaf and readers:
        raise EndpointsUnusable(
            f"{', '.join(deaf)}: the server gives no log-probabilities, which the scorer choice_probability "
            f"of {', '.join(readers)} reads; use a server that gives them, such as vLLM, or the scorer choice"
        )


async def _found(
    built: PreparedRun, finder: Finder, say: Callable[[str], None]
) -> dict[str, tuple[ModelEndpoint, ...]]:
    """Read every source once, report its servers, and return their clients."""
    found: dict[str, tuple[ModelEndpoint, ...]] = {}
    for source in {one.source: None for one in finder.discoveries.values()}:
        reading = await source.read()
        patience = {
            name: one.config.patience for name, one in finder.discoveries.items() if one.source is source
        }
        listed = ", ".join(reading.addresses)
        listed = listed or f"nothing now; a run waits {min(patience.values()):g} s for a server"
        say(f"found      {', '.join(patience)}: {source.name} names {listed}")
        if reading.problem:
            say(f"warning    {reading.problem}")
        for name in patience:
            model = built.config.model(name)
            found[name] = tuple(finder.client(model, url) for url in reading.addresses)
    return found


async def _report(
    models: Mapping[str, Sequence[ModelEndpoint]],
    endpoints: Mapping[str, Sequence[ModelEndpoint]],
    found: Collection[str],
    say: Callable[[str], None],
    *,
    spend: bool,
) -> list[str]:
    """Probe all `endpoints`; with `spend` also how those of `models` treat the parameters of a request.

    Return the models whose servers are seen to give no log-probabilities.
    """
    deaf = []
    probed = await probe_all(endpoints)
    for one in probed:
        if isinstance(one.result, Probe):
            say(f"endpoint   {one.model}: {_offer(one.endpoint, one.result)}")
        elif one.model in found:
            then = "leave it out"
            if isinstance(one.result, TransientEndpointError):
                then = "ask it again"
            say(f"warning    {one.words.rstrip('.')}; a run would {then}")
    require_usable([one for one in probed if one.model not in found], all_there=True)
    for one in probed:
        for line in _mismatch(one.endpoint, one.result):
            say(f"warning    {one.model}: {line}")
    refused = []
    for one in probed if spend else ():
        if one.model not in models or not isinstance(one.result, Probe):
            continue
        if not isinstance(one.endpoint, OpenAIEndpoint):
            continue
        try:
            lines = await _examined(one.endpoint)
        except EndpointError as error:
            lines = [f"the first request failed: {error}"]
            if isinstance(error, PermanentEndpointError):
                refused.append(f"{one.model}: {one.endpoint.url}: {error}")
        for line in lines:
            say(f"probe      {one.model}: {line}")
            if line.startswith(("logprobs ignored", "logprobs refused")):
                deaf.append(one.model)
    if refused:
        listed = "\n".join(f"  {words}" for words in refused)
        raise EndpointsUnusable(f"the first request is refused, which ends a run:\n{listed}")
    return list(dict.fromkeys(deaf))


def _offer(endpoint: ModelEndpoint, probe: Probe) -> str:
    """Return what an endpoint offers, in one line."""
    if not isinstance(endpoint, OpenAIEndpoint):
        return f"{endpoint.url} is there; it was not called"
    parts = [f"{endpoint.url} answers"]
    if probe.context_length is not None:
        parts.append(f"context {probe.context_length:,} tokens")
    if len(probe.models) > 1:
        parts.append(f"{len(probe.models)} models")
    if probe.note:
        parts.append(probe.note)
    return "; ".join(parts)


def _mismatch(endpoint: ModelEndpoint, probe: Probe | EndpointError) -> Iterator[str]:
    """Yield what an endpoint would refuse every time."""
    limits = [endpoint.parameters.get(name) for name in ("max_tokens", "max_completion_tokens")]
    most = next((limit for limit in limits if isinstance(limit, int)), 0)
    context = None
    if isinstance(probe, Probe):
        context = probe.context_length
    if context is not None and most >= context:
        yield (
            f"max_tokens is {most:,} and the context {context:,} tokens, prompt included: "
            "the server may refuse every request"
        )


async def _examined(endpoint: OpenAIEndpoint) -> list[str]:
    """Return the findings about an endpoint: one line for honoured parameters and one for each other."""
    found = await probe_parameters(endpoint)
    honoured = [finding.parameter for finding in found.findings if finding.verdict == "honoured"]
    return [
        f"{_cost(found)}; honoured: {', '.join(honoured) or 'none'}",
        *(
            f"{finding.parameter} {finding.verdict}: {finding.words}"
            for finding in found.findings
            if finding.verdict != "honoured"
        ),
    ]


def _cost(found: ParameterFindings) -> str:
    tokens = "an unknown number of"
    if found.usage.total_tokens:
        tokens = f"{found.usage.total_tokens:,}"
    return f"{found.requests} requests took {tokens} tokens"
