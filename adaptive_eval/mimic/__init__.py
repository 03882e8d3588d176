r"""A mimic server: a real local HTTP server of biased coins with OpenAI's API.

It has the answer key. It recognises a known question in a prompt, tosses a coin with
that model's probability for that question, and writes a worked answer that is right or plausibly wrong,
with lognormal latency and honest usage. Every toss is a hash of (server's seed, model, prompt, request's
seed), so answers depend neither on the order of arrival nor on the process. It can inject faults.

Examples
--------
>>> from urllib.request import urlopen
>>> from adaptive_eval.mimic.mimic_spec import MimicSpec, MimicModelSpec
>>> from adaptive_eval.mimic.process import MimicProcess
>>> spec = MimicSpec(models=(MimicModelSpec(name="expert", mean=0.9),), seed=7)
>>> with MimicProcess(spec) as server:
...     urlopen(f"{server.url}/health").status
200
"""
