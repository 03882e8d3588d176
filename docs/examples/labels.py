"""Two models, a judge that is taken in by a polite tone, and a person who is not."""

import json
import random
import re
import sys
from pathlib import Path


def plain(prompt, seed):
    """Answer right in 70 % of cases."""
    return _answer(prompt, seed, "The answer is")


def polite(prompt, seed):
    """Answer right as often, and politely."""
    return _answer(prompt, seed, "What a wonderful question! I am certain that the answer is")


def _answer(prompt, seed, opening):
    first, second = map(int, re.findall(r"\d+", prompt))
    wrong = random.Random(seed).random() > 0.7
    return f"{opening} {first + second + wrong}."


def judge(answer, question):
    """Judge an answer; this judge believes half of the wrong ones that sound certain."""
    sure = "certain" in answer and hash_of(answer, question["id"]) < 0.5
    return is_right(answer, question["target"]) or sure


def is_right(answer, target):
    """Judge an answer as a person does who looks at it."""
    return re.findall(r"\d+", answer)[-1:] == [str(target)]


def hash_of(*parts):
    """Return a number from 0 to 1 for some texts."""
    return random.Random("/".join(parts)).random()


if __name__ == "__main__":  # the person: python labels.py FILE
    for file in map(Path, sys.argv[1:]):
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        for row in rows:
            row["score"] = "right" if is_right(row["answer"], row["target"]) else "wrong"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
