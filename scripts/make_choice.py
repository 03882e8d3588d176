"""Write ``configs/data/choice.jsonl``: multiple-choice questions of general knowledge and arithmetic.

Run from the root of the repository::

    python scripts/make_choice.py configs/data/choice.jsonl

The options of each question are shuffled with a seed, so that every letter is right equally often.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

SEED = 2024

# Question | right answer | three wrong ones.
QUESTIONS = """
Which planet of the solar system has the largest mass? | Jupiter | Saturn | Neptune | Earth
What is the chemical symbol of iron? | Fe | Ir | In | F
Which of these numbers is prime? | 53 | 51 | 57 | 87
What is 15 percent of 240? | 36 | 24 | 30 | 40
Which gas do green plants take in for photosynthesis? | carbon dioxide | oxygen | nitrogen | helium
How many degrees do the angles of a triangle have together? | 180 | 90 | 270 | 360
Which is the longest river of South America? | the Amazon | the Orinoco | the Paraná | the Magdalena
What is the square root of 169? | 13 | 12 | 14 | 17
Which metal is liquid at room temperature? | mercury | lead | zinc | tin
A train covers 180 kilometers in 90 minutes. What is its average speed in km per hour? | 120 | 90 | 135 | 160
Which organ pumps blood through the human body? | the heart | the liver | the lungs | the kidneys
What is 7 times 8 minus 6 times 9? | 2 | -2 | 4 | 12
On which continent is the Atacama Desert? | South America | Africa | Asia | Australia
How many sides does a heptagon have? | 7 | 6 | 8 | 9
Which of these animals is a mammal? | the dolphin | the shark | the penguin | the frog
What is the least common multiple of 6 and 8? | 24 | 14 | 16 | 48
Which instrument measures air pressure? | the barometer | the hygrometer | the anemometer | the thermometer
What is three quarters of 64? | 48 | 42 | 44 | 52
Which ocean lies between Africa and Australia? | the Indian | the Atlantic | the Arctic | the Southern
If x + 9 = 4x, what is x? | 3 | 2 | 4 | 9
Which particle of an atom carries a negative charge? | the electron | the proton | the neutron | the nucleus
How many minutes are there in two and a quarter hours? | 135 | 125 | 130 | 145
In which country does the city of Kyoto lie? | Japan | China | South Korea | Vietnam
What is 2 to the power of 7? | 128 | 64 | 256 | 14
"""


def make_questions(seed: int = SEED) -> list[dict[str, object]]:
    """Return the questions as rows with id, question, choices and the letter of the right answer."""
    uniform = random.Random(seed).random
    table = [line.split(" | ") for line in QUESTIONS.split("\n") if line]
    letters = [index % 4 for index in range(len(table))]
    letters.sort(key=lambda _: uniform())
    rows: list[dict[str, object]] = []
    for (question, right, *wrong), place in zip(table, letters, strict=True):
        wrong.sort(key=lambda _: uniform())
        choices = [*wrong[:place], right, *wrong[place:]]
        name = f"choice-{len(rows) + 1:02d}"
        rows.append({"id": name, "question": question, "choices": choices, "answer": "ABCD"[place]})
    return rows


def main() -> None:
    """Write the file named on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    path: Path = parser.parse_args().path
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in make_questions()]
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
