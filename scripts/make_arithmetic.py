"""Write ``configs/data/arithmetic.jsonl``: word problems with numeric answers, for the quickstart.

Run from the root of the repository::

    python scripts/make_arithmetic.py configs/data/arithmetic.jsonl

The same seed gives the same file on every machine: only ``random()`` of Python's generator is used, whose
sequence the standard library guarantees.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
Problem = tuple[str, Fraction]

SEED = 2024
COUNT = 40

PEOPLE = (
    *("Amara", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hiro", "Ines", "Jonas"),
    *("Kavya", "Liam", "Mei", "Noor", "Oskar", "Priya", "Quentin", "Rosa", "Samir", "Tova"),
    *("Umberto", "Vera", "Wanjiru", "Ximena", "Yusuf", "Zoe"),
)


class Dice:
    """Draws from a seeded generator."""

    def __init__(self, seed: int) -> None:
        self._uniform = random.Random(seed).random

    def number(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both possible."""
        return low + int(self._uniform() * (high - low + 1))

    def one(self, items: Sequence[Item]) -> Item:
        """Return one of `items`."""
        return items[self.number(0, len(items) - 1)]

    def several(self, items: Sequence[Item], count: int) -> list[Item]:
        """Return `count` different ones of `items`."""
        rest = list(items)
        return [rest.pop(self.number(0, len(rest) - 1)) for _ in range(count)]


def bakery(dice: Dice) -> Problem:
    """Trays of bread, some sold, the rest packed."""
    who, item = dice.one(PEOPLE), dice.one(("rolls", "muffins", "pretzels", "scones"))
    trays, each, bag = dice.number(5, 9), 6 * dice.number(3, 6), dice.one((3, 4, 6))
    sold = bag * dice.number(5, 12)
    while (trays * each - sold) % bag:
        sold += 1
    text = (
        f"{who} bakes {trays} trays of {item} with {each} {item} on each tray. By noon {sold} of them are "
        f"sold. The rest are packed into bags of {bag}. How many bags does {who} fill?"
    )
    return text, Fraction(trays * each - sold, bag)


def savings(dice: Dice) -> Problem:
    """Weekly savings towards a price."""
    who, thing = dice.one(PEOPLE), dice.one(("a bicycle", "a telescope", "a guitar", "a tent"))
    week, start, weeks = dice.number(12, 28), dice.number(20, 75), dice.number(6, 14)
    gift = dice.number(10, 30)
    price = start + gift + week * weeks
    text = (
        f"{who} wants to buy {thing} that costs {price} dollars. There are {start} dollars in the savings "
        f"box already, and an aunt adds {gift} dollars. If {who} saves {week} dollars every week, after "
        "how many weeks is there exactly enough money?"
    )
    return text, Fraction(weeks)


def trip(dice: Dice) -> Problem:
    """Two legs at different speeds; total distance."""
    who, other = dice.several(PEOPLE, 2)
    fast, slow, hours = 10 * dice.number(7, 11), 10 * dice.number(4, 6), dice.number(2, 4)
    halves = dice.one((1, 3, 5))
    text = (
        f"{who} and {other} drive on the motorway for {hours} hours at {fast} kilometers per hour and "
        f"then on country roads for {halves * 30} minutes at {slow} kilometers per hour. How many "
        "kilometers do they drive in total?"
    )
    return text, fast * hours + Fraction(slow * halves, 2)


def discount(dice: Dice) -> Problem:
    """Several articles, a percentage off, change from a banknote."""
    who = dice.one(PEOPLE)
    item = dice.one(("notebooks", "paint brushes", "candles", "tea towels"))
    count, price, percent = dice.number(3, 6), dice.number(4, 8), dice.one((10, 20, 25))
    text = (
        f"{item.capitalize()} cost {price} dollars each. {who} takes {count} of them and gets a discount "
        f"of {percent} percent on the whole purchase. How many dollars of change does {who} get from a "
        "50-dollar note?"
    )
    return text, 50 - Fraction(count * price * (100 - percent), 100)


def ages(dice: Dice) -> Problem:
    """Ages now and later."""
    child, parent = dice.several(PEOPLE, 2)
    age, factor, later = dice.number(6, 12), dice.number(3, 4), dice.number(3, 9)
    text = (
        f"{parent} is {factor} times as old as {child}, who is {age} years old. How old will {parent} and "
        f"{child} be together in {later} years?"
    )
    return text, Fraction(age * factor + age + 2 * later)


def garden(dice: Dice) -> Problem:
    """Fence round a rectangle, less a gate."""
    who, width, longer = dice.one(PEOPLE), dice.number(6, 15), dice.number(3, 9)
    gate, price = dice.number(2, 3), dice.number(7, 14)
    text = (
        f"{who} fences a rectangular garden that is {width} meters wide and {longer} meters longer than "
        f"it is wide. A gap of {gate} meters is left for a gate. Fencing costs {price} dollars per meter. "
        "How many dollars does the fence cost?"
    )
    return text, Fraction((2 * (2 * width + longer) - gate) * price)


def recipe(dice: Dice) -> Problem:
    """Scaling a recipe."""
    who, dish = dice.one(PEOPLE), dice.one(("lentil soup", "pancake batter", "fruit salad", "risotto"))
    grams, base, guests = 20 * dice.number(6, 18), dice.one((4, 8)), dice.number(9, 19)
    have = 50 * dice.number(2, 5)
    text = (
        f"A recipe for {dish} needs {grams} grams of the main ingredient for {base} people. {who} cooks "
        f"it for {guests} people and has {have} grams at home. How many more grams does {who} need to buy?"
    )
    return text, Fraction(grams * guests, base) - have


def library(dice: Dice) -> Problem:
    """Books over shelves, some lent."""
    who, shelves, each = dice.one(PEOPLE), dice.number(6, 12), dice.number(24, 38)
    lent, back = dice.number(40, 80), dice.number(10, 35)
    text = (
        f"A school library has {shelves} shelves with {each} books on each. On Monday {lent} books are "
        f"lent out, and on Tuesday {back} of those come back. {who} then counts the books on the shelves. "
        "How many are there?"
    )
    return text, Fraction(shelves * each - lent + back)


def tank(dice: Dice) -> Problem:
    """Filling with a leak."""
    place = dice.one(("rain barrel", "fish pond", "water tank", "paddling pool"))
    inflow, leak, minutes = dice.number(14, 25), dice.number(3, 6), dice.number(12, 30)
    start = 10 * dice.number(2, 9)
    text = (
        f"A {place} already holds {start} liters. Water runs in at {inflow} liters per minute, while a "
        f"crack lets {leak} liters per minute out again. How many liters does it hold after {minutes} "
        "minutes?"
    )
    return text, Fraction(start + (inflow - leak) * minutes)


def average(dice: Dice) -> Problem:
    """The score still needed for an average."""
    who, wanted = dice.one(PEOPLE), dice.number(76, 84)
    scores = [dice.number(wanted - 4, wanted + 4) for _ in range(4)]
    listed = f"{scores[0]}, {scores[1]}, {scores[2]} and {scores[3]}"
    text = (
        f"{who} scored {listed} points in the first four tests. How many points does {who} need in the "
        f"fifth test so that the average of all five is exactly {wanted}?"
    )
    return text, Fraction(5 * wanted - sum(scores))


def harvest(dice: Dice) -> Problem:
    """Crates of fruit, spoilage by fraction, sale by kilogram."""
    who, fruit = dice.one(PEOPLE), dice.one(("apples", "plums", "pears", "cherries"))
    crates, weight, part = dice.number(6, 14), 4 * dice.number(2, 5), dice.one((4, 8))
    price = Fraction(dice.one((3, 5, 7)), 2)
    text = (
        f"{who} picks {crates} crates of {fruit} with {weight} kilograms in each crate. One out of every "
        f"{part} kilograms is spoiled and thrown away. The rest is sold at {decimal(price)} dollars per "
        f"kilogram. How many dollars does {who} take in?"
    )
    return text, Fraction(crates * weight * (part - 1), part) * price


def workshop(dice: Dice) -> Problem:
    """Two workers at different rates."""
    one, two = dice.several(PEOPLE, 2)
    item = dice.one(("paper lanterns", "wooden toys", "clay bowls", "greeting cards"))
    first, second, hours, extra = dice.number(7, 13), dice.number(4, 6), dice.number(3, 6), dice.number(2, 3)
    text = (
        f"{one} makes {first} {item} an hour and {two} makes {second} an hour. They work together for "
        f"{hours} hours, and then {two} goes on alone for another {extra} hours. How many {item} do they "
        "make in all?"
    )
    return text, Fraction((first + second) * hours + second * extra)


def theatre(dice: Dice) -> Problem:
    """Tickets of two prices, given the total number of seats."""
    play = dice.one(("puppet play", "concert", "magic show", "film evening"))
    adult, child = dice.number(9, 14), dice.number(4, 7)
    seats = 10 * dice.number(12, 20)
    adults = dice.number(60, 100)
    text = (
        f"All {seats} seats of a {play} are sold. Adults pay {adult} dollars and children pay {child} "
        f"dollars. There are {adults} adults in the audience and everyone else is a child. How many "
        "dollars were taken for tickets?"
    )
    return text, Fraction(adults * adult + (seats - adults) * child)


def sharing(dice: Dice) -> Problem:
    """Division among friends after keeping some."""
    who, thing = dice.one(PEOPLE), dice.one(("marbles", "stickers", "stamps", "shells"))
    friends, share, kept = dice.number(4, 7), dice.number(9, 18), dice.number(11, 29)
    lost = dice.number(3, 9)
    text = (
        f"{who} has {friends * share + kept} {thing}, keeps {kept} of them and divides the rest equally "
        f"among {friends} friends. One of the friends then loses {lost} {thing}. How many {thing} does "
        "that friend have left?"
    )
    return text, Fraction(share - lost)


def phone(dice: Dice) -> Problem:
    """A bill with a free allowance, in decimals."""
    who, fee, free = dice.one(PEOPLE), dice.number(8, 15), 10 * dice.number(5, 12)
    cents, used = dice.one((5, 15, 25)), dice.number(30, 90)
    text = (
        f"{who} pays a monthly fee of {fee} dollars for the telephone, which includes {free} minutes. "
        f"Every further minute costs {cents} cents. This month {who} was on the phone for {free + used} "
        "minutes. How many dollars is the bill?"
    )
    return text, fee + Fraction(used * cents, 100)


def train(dice: Dice) -> Problem:
    """Passengers getting on and off."""
    cities = dice.several(("Lisbon", "Turin", "Graz", "Malmo", "Ghent", "Porto", "Krakow", "Leipzig"), 3)
    start, off, on = dice.number(120, 240), dice.number(25, 60), 2 * dice.number(10, 35)
    text = (
        f"A train leaves {cities[0]} with {start} passengers. In {cities[1]} {off} passengers get off and "
        f"{on} get on. In {cities[2]} half as many passengers get on as in {cities[1]}, and nobody gets "
        "off. How many passengers are on the train now?"
    )
    return text, start - off + on + Fraction(on, 2)


def reading(dice: Dice) -> Problem:
    """Pages a day, faster from some day on."""
    who, days, slow = dice.one(PEOPLE), dice.number(5, 8), dice.number(14, 22)
    faster, more = dice.number(5, 11), dice.number(4, 7)
    total = days * slow + more * (slow + faster)
    text = (
        f"{who} reads {slow} pages of a novel every day for {days} days and from then on {faster} pages "
        f"more per day than before. The novel has {total} pages. How many days does {who} read in total "
        "until it is finished?"
    )
    return text, Fraction(days + more)


def taxi(dice: Dice) -> Problem:
    """A fare split equally."""
    who, friends = dice.one(PEOPLE), dice.one((3, 4))
    base, rate = Fraction(dice.one((6, 7, 9)), 2), Fraction(dice.one((3, 5)), 2)
    distance, tip = dice.number(8, 21), dice.number(2, 5)
    text = (
        f"A taxi charges {decimal(base)} dollars for getting in and {decimal(rate)} dollars per "
        f"kilometer. {who} and some friends, {friends} people altogether, ride {distance} kilometers, add "
        f"a tip of {tip} dollars and share the cost equally. How many dollars does each of them pay?"
    )
    return text, (base + rate * distance + tip) / friends


def eggs(dice: Dice) -> Problem:
    """A farm's week, sold by the dozen."""
    who, hens, each = dice.one(PEOPLE), 6 * dice.number(3, 8), dice.number(4, 6)
    home, price = 6 * dice.number(2, 5), dice.number(3, 5)
    text = (
        f"Each of the {hens} hens of a farm lays {each} eggs a week. {who} keeps {home} of the eggs and "
        f"sells the others by the dozen for {price} dollars a dozen. How many dollars does a week bring "
        "in?"
    )
    return text, Fraction(hens * each - home, 12) * price


def tiles(dice: Dice) -> Problem:
    """Tiles for a floor with a part left out, and spares."""
    who, room = dice.one(PEOPLE), dice.one(("kitchen", "bathroom", "hallway"))
    length, width, side = dice.number(4, 7), dice.number(3, 5), dice.one((20, 25, 50))
    spare, per_square_meter = dice.number(10, 25), (100 // side) ** 2
    text = (
        f"{who} covers the floor of a {room}, {length} meters by {width} meters, with square tiles whose "
        f"sides are {side} centimeters long. A built-in cupboard takes up 2 square meters that need no "
        f"tiles, and {spare} spare tiles are bought as well. How many tiles does {who} buy?"
    )
    return text, Fraction((length * width - 2) * per_square_meter + spare)


def decimal(value: Fraction) -> str:
    """Return `value` in decimals, without trailing zeros."""
    return str(int(value)) if value.denominator == 1 else f"{float(value):g}"


TEMPLATES = (
    *(bakery, savings, trip, discount, ages, garden, recipe, library),
    *(tank, average, harvest, workshop, theatre, sharing, phone, train),
    *(reading, taxi, eggs, tiles),
)


def is_plain(value: Fraction) -> bool:
    """Say whether `value` is positive and has at most two decimals."""
    return value > 0 and (value * 100).denominator == 1


def make_problems(seed: int = SEED, count: int = COUNT) -> list[dict[str, object]]:
    """Return `count` different problems as rows with id, question and answer."""
    dice = Dice(seed)
    rows: list[dict[str, object]] = []
    seen: set[str] = set()
    while len(rows) < count:
        text, answer = TEMPLATES[len(rows) % len(TEMPLATES)](dice)
        if text in seen or not is_plain(answer):
            continue
        seen.add(text)
        number = int(answer) if answer.denominator == 1 else float(answer)
        rows.append({"id": f"arithmetic-{len(rows) + 1:02d}", "question": text, "answer": number})
    return rows


def main() -> None:
    """Write the file named on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    path: Path = parser.parse_args().path
    path.write_text("".join(json.dumps(row) + "\n" for row in make_problems()), encoding="utf-8")


if __name__ == "__main__":
    main()
