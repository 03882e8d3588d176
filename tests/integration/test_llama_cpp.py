"""Real llama.cpp servers with a model made here: llama-cpp-python's, and llama.cpp's own (package xllamacpp).

Neither is a dependency; the model needs the package ``gguf``.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import command, free_port, run_config, server_of, write_config

from adaptive_eval.store.reader import RunReader

pytestmark = pytest.mark.slow

CONTEXT, LONGEST, WIDTH = 256, 12, 32
OWN = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx, params.n_parallel = sys.argv[1], int(sys.argv[2]), 1024, 4
params.hostnames, params.warmup, params.n_gpu_layers = ["127.0.0.1"], False, 0
server = xllamacpp.Server(params)
sys.stdin.read()
"""
COMMANDS = {
    "xllamacpp": ["-c", OWN],
    "llama_cpp": ["-m", "llama_cpp.server", "--n_ctx", str(CONTEXT), "--model"],
}

N_IGNORED = {
    "xllamacpp": "n ignored: the usage counts the tokens of one answer only",
    "llama_cpp": "n ignored: one answer came where two were asked for",
}


def tiny_model(path: Path) -> None:
    """Write a Llama of one layer with random weights, whose tokens are bytes and characters."""
    import gguf

    rng = np.random.default_rng(0)
    kinds = gguf.TokenType
    tokens = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)]
    tokens += [(f"<0x{byte:02X}>", kinds.BYTE) for byte in range(256)]
    tokens += [(character, kinds.NORMAL) for character in ("▁", *map(chr, range(33, 127)))]
    out = gguf.GGUFWriter(path, "llama")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(WIDTH)
    out.add_feed_forward_length(WIDTH)
    out.add_block_count(1)
    out.add_head_count(2)
    out.add_rope_dimension_count(WIDTH // 2)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_tokenizer_model("llama")
    out.add_token_list([token for token, _ in tokens])
    out.add_token_types([kind for _, kind in tokens])
    out.add_token_scores([0.0] * len(tokens))
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_chat_template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:")
    for name in ("token_embd", "output"):
        out.add_tensor(f"{name}.weight", rng.normal(0, 0.3, (len(tokens), WIDTH)).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        out.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        out.add_tensor(f"blk.0.{name}.weight", rng.normal(0, 0.3, (WIDTH, WIDTH)).astype(np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


@pytest.mark.parametrize("package", COMMANDS)
def test_a_run_against_the_real_server(tmp_path, package):
    for needed in ("gguf", package):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    tiny_model(tmp_path / "tiny.gguf")
    port = str(free_port())
    arguments = [*COMMANDS[package], tmp_path / "tiny.gguf"]
    arguments += [port] if package == "xllamacpp" else ["--port", port]
    questions = [{"id": f"q{n}", "input": f"Question {n}?", "target": "a"} for n in range(6)]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, questions)), "utf-8")
    url = f"http://127.0.0.1:{port}/v1"
    with server_of([sys.executable, *arguments], f"{url}/models", tmp_path) as listed:
        (model,) = (one["id"] for one in listed.json()["data"])
        asked = {"model": model, "provider": "llama.cpp", "endpoints": [url]}
        sampling = {"max_tokens": LONGEST, "temperature": 1.0}
        config = {
            "name": "llama",
            "models": [
                {**asked, "name": "one", "sampling": {"max_tokens": LONGEST, "logprobs": True}},
                {**asked, "name": "two", "sampling": sampling, "samples_per_request": 2},
            ],
            "tasks": [{"name": "t", "dataset": "q.jsonl", "scorer": "contains"}],
            "goal": "budget",
            "budget": {"trials": 36},
        }
        probed = command("validate", write_config(tmp_path, config), "--probe")
        run, done = run_config(tmp_path, config)
    assert (probed.code, done.code) == (0, 3), probed.err + done.err
    own = package == "xllamacpp"
    for name in ("one", "two"):
        expected = [f"honoured: max_tokens, {'logprobs, ' if own else ''}seed", N_IGNORED[package]]
        if own:
            expected += [f"context {CONTEXT} tokens", "/health"]
        lines = "".join(line for line in probed.out.splitlines() if f" {name}: " in line)
        assert all(words in lines for words in expected), probed.out
    with RunReader(run) as reader:
        records, errors = list(reader.trials()), reader.error_counts()
    assert errors == ({} if own else {"two": {"fewer_choices": 6}})
    assert len(records) == 36
    for record in records:
        assert record.completion is not None
        assert bool(record.completion.logprobs) is (own and record.request.key.model == "one")
        # llama-cpp-python counts the tokens of the text, which may be other ones than it has drawn
        assert 1 <= record.usage.completion_tokens <= (LONGEST if own else 2 * LONGEST)
