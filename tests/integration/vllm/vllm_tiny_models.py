"""Make tiny, randomly initialised Llama models with a tokenizer and a chat template, without any download.

Run by the Python of the vLLM installation, which has torch, transformers and tokenizers::

    python vllm_tiny_models.py models/seed-1 models/seed-2

Each path gets one model; its weights are drawn with the number at the end of the path as seed. The models
share their tokenizer; that of one named ``thinker-SEED`` also has the tokens around reasoning. They answer
gibberish, but asked for one of a few given texts (structured output ``choice``) they choose with fixed
probabilities that depend on the question: a real stochastic benchmark.
"""

import argparse
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PAD, START, END = "<|pad|>", "<|im_start|>", "<|im_end|>"
THINKER = "thinker"
THINKING = ["<think>", "</think>"]

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

VOCABULARY = 512
LONGEST = 16_384
"""Tokens of prompt and answer together: an answer this long takes about 20 s, time to give it up."""

SPREAD = 0.2
"""Standard deviation of the weights: ten times the usual, so that the answers depend on the question."""

CORPUS = [
    "Which of these planets is the largest? What is the answer? The answer is B.",
    "A train leaves at nine and covers 120 kilometers in 90 minutes. How fast is it?",
    "Answer with the letter of the right option: A, B, C or D.",
    "The quick brown fox jumps over the lazy dog. 0 1 2 3 4 5 6 7 8 9",
]


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer: it can write every text, most of it byte by byte."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=VOCABULARY,
        min_frequency=1,
        special_tokens=[PAD, START, END],
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=START,
        eos_token=END,
        model_max_length=LONGEST,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def make_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """Draw the weights of a two-layer Llama; heads of 32, the narrowest that vLLM's CPU attention takes."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=LONGEST,
        initializer_range=SPREAD,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return LlamaForCausalLM(config).to(torch.bfloat16)


def main() -> None:
    """Make every model asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="+", type=Path, help="a folder to make, named …-SEED")
    for folder in parser.parse_args().out:
        tokenizer = make_tokenizer()
        if folder.name.startswith(THINKER):
            tokenizer.add_tokens(THINKING)
        tokenizer.save_pretrained(folder)
        make_model(tokenizer, seed=int(folder.name.rpartition("-")[2])).save_pretrained(folder)


if __name__ == "__main__":
    main()
