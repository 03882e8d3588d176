# Everything here also works without make: see scripts/.
.PHONY: quickstart test chaos test-slow test-browser test-vllm test-interop test-ray check format

quickstart:   ## set up and run the quickstart
	./scripts/quickstart

test:         ## set up and run the tests
	./scripts/test

chaos:        ## every test of docs/reliability.md, storms of faults, and the figures
	./scripts/chaos

test-slow:    ## the slow statistical and stress tests
	./scripts/test -m "slow and not vllm and not interop and not ray"

test-browser: ## the tests in a real Chromium
	./scripts/test -m browser

test-vllm:    ## the tests that install and start a real vLLM on the CPU
	./scripts/test -m vllm -n 0

test-interop: ## the tests with a real Inspect and lm-evaluation-harness
	./scripts/interop

test-ray:     ## the tests with a real cluster of Ray on this machine
	./scripts/ray

check:        ## ruff, mypy, import contracts, doctests
	./scripts/check

format:       ## format the code
	.venv/bin/ruff format .
