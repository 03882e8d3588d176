"""All that is shown of a run, against a small calculation from its answers.

Crossed: two tasks of unequal size and weight, three kinds of scores, several answers a request, lost and
cut-off answers, prices.
"""

import csv
import io
import json
import math
from collections import Counter

import numpy as np
import pytest
import run_examples as runs

from adaptive_eval.build.assembly import build
from adaptive_eval.build.changed_settings import changes_of
from adaptive_eval.config.load_config import config_from_data, parse_config
from adaptive_eval.interop.found import ReadingOptions
from adaptive_eval.interop.recorded_files import read_recorded
from adaptive_eval.run.claims import AtLeast, NotWorse, check
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import COPY_REASON, Completion, Score, Usage
from adaptive_eval.views.files import write_leaderboard, write_reports
from adaptive_eval.views.metrics import RunMetrics
from adaptive_eval.views.report_json import report_data
from adaptive_eval.views.run_sentences import rankings_note
from adaptive_eval.views.score_tables import ranking_rows
from scorio.eval import bayes

CHANCES = {"fair": 0.5, "good": 0.97, "poor": 0.25}
SIZES, SHARES = {"long": 14, "short": 10}, {"long": 0.75, "short": 0.25}
STARS = {"kind": "python", "function": "stars:stars", "range": [-1, 3]}
KINDS = {
    "rights": [{"scorer": "numeric"}, {"scorer": "numeric", "rubric": {"truncated": "judged"}}],
    "graded": [
        {"scorer": "numeric", "rubric": {"weights": [-1, 3]}},
        {"scorer": "numeric", "rubric": {"schema": "exact-match", "weights": [1, -1, 3]}},
    ],
    "numbers": [{"scorer": STARS}, {"scorer": STARS}],
}
TABLES = ("models", "pairs", "decisions", "questions")
WORTHS = {"rights": [(0, 1), (0, 1)], "graded": [(-1, 3), (1, -1, 3)], "numbers": [(-1, 3), (-1, 3)]}
ENDS = (("tool_calls", "stop"), ("length", "model_length"))
"""Reasons of each task for which answers end, and are cut off."""
JUDGED = {("rights", 1)}
"""Tasks whose cut-off answers are read as if they had ended by themselves."""
EACH_KIND = pytest.mark.parametrize("kind", KINDS)


def config_of(folder, kind, models=CHANCES, confidence=0.95, **changes):
    """Write the datasets, and return the config of three models and two tasks."""
    (folder / "stars.py").write_text("def stars(answer, question):\n    return float(answer)\n", "utf-8")
    tasks = []
    for (name, size), scored in zip(SIZES.items(), KINDS[kind], strict=True):
        rows = [{"id": f"q{n}", "input": f"{n} + {n}?", "target": str(2 * n)} for n in range(size)]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
        tasks.append({"name": name, "dataset": f"{name}.jsonl", "weight": 4 * SHARES[name], **scored})
    asked = {"endpoints": ["http://localhost:9/v1"], "samples_per_request": 3, "concurrency": 8}
    asked |= {"sampling": {"max_tokens": 64}, "price": {"input": 2.0, "output": 8.0}}
    data = {"name": kind, "seed": 5, "models": [{"name": name, **asked} for name in models], "tasks": tasks}
    unit = 1 if kind == "rights" else 4
    data["stopping"] = {"equivalence": 0.2 * unit, "confidence": confidence}
    data["allocation"] = {"questions": "schedule"}
    data["budget"] = {"trials": 450 if kind == "numbers" else 600}
    return config_from_data({**data, "spend": "usd", **changes}, folder)


def answering(built, kind, seed):
    """Return what answers a request: lost, cut off, right, wrong or a number, as its own die falls."""

    def answer(request, at, *, after_stop=False):
        name, place = request.key.model, [*SIZES].index(request.task)
        chance = CHANCES.get({"good": "poor", "poor": "good"}.get(name, name) if seed else name, 0.8)
        rng = np.random.default_rng([seed, *name.encode(), place, int(request.question[1:]), request.repeat])
        lost, cut, right = rng.random(3)
        question = built.tasks[place].by_id[request.question]
        sent = {"messages": [{"role": "user", "content": question.fields["input"]}]}
        if lost < 0.08:
            why = ("timeout", "refused", "refused", COPY_REASON)[int(50 * lost)]
            return TrialRecord(request, at, None, None, why, after_stop, sent)
        text = f"\\boxed{{{2 * int(request.question[1:]) + int(right > chance)}}}"
        if kind == "numbers":
            text = f"{-1 + 4 * (right < chance) * (0.5 + right / 2):.3f}"
        usage = Usage(int(rng.integers(20, 30)), int(rng.integers(5, 60)))
        completion = Completion(text, ENDS[int(cut < 0.1)][place], usage, latency=float(cut))
        scoring = built.scoring[request.task]
        if kind == "numbers":  # as the function has it, which is a process away
            score = scoring.categorised(Score(1, text, {"score": float(text)}, ""), completion)
        else:
            score = scoring.score(completion, question)
        return TrialRecord(request, at, completion, score, after_stop=after_stop, sent=sent)

    return answer


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return what makes a run of a kind, once."""
    known = {}

    def make(kind, name="first", seed=0, **changes):
        if (kind, name) not in known:
            folder = tmp_path_factory.mktemp(kind)
            built = build(config_of(folder, kind, name=name, **changes))
            known[kind, name] = folder / name
            answer = answering(built, kind, seed)
            runs.store_run(folder / name, built.meta(), built.session(), answer, slots=90)
        return known[kind, name]

    return make


def report_of(run):
    return report_data(runs.read_summary(run))


def parts(mapping, names):
    return {name: mapping[name] for name in names}


def rows_of(text):
    """Return the rows of a CSV text, numbers as numbers."""
    return [{name: _value(cell) for name, cell in row.items()} for row in csv.DictReader(io.StringIO(text))]


def _value(cell):
    if cell in ("true", "false"):
        return cell == "true"
    try:
        return json.loads(cell) if math.isfinite(float(cell)) else cell
    except ValueError:
        return cell


def named(record):
    """Return what tables and samples call a trial by."""
    request, key = record.request, record.request.key
    found = {name: getattr(request, name) for name in ("task", "question", "repeat", "seed")}
    return {"model": key.model, "step": key.index, **found}


def trials_of(run):
    with RunReader(run) as reader:
        return list(reader.trials())


def worth(kind, record):
    """Return what an answer is worth, from its text alone; nothing of one that is lost."""
    if record.missing is not None:
        return None
    place, answer = [*SIZES].index(record.request.task), record.completion
    cut = answer.finish_reason in ENDS[1]
    right = answer.text == f"\\boxed{{{2 * int(record.request.question[1:])}}}"
    if kind == "numbers":
        return WORTHS[kind][place][0] if cut else float(answer.text)
    weights = WORTHS[kind][place]
    if len(weights) == 3:
        return weights[1 + right if answer.finish_reason == "stop" else 0]
    return weights[right and not (cut and (kind, place) not in JUDGED)]


def cells(kind, trials, task, fill=None):
    """Return the worths of each question of a task; lost ones as `fill`, copies left out."""
    found = {}
    for record in trials:
        if record.request.task == task:
            value = worth(kind, record) if record.missing in (None, COPY_REASON) else fill
            found.setdefault(record.request.question, []).append(value)
    return {name: [value for value in cell if value is not None] for name, cell in found.items()}


def score(kind, trials, fill=None, shares=SHARES):
    """Return the mean of answers, then of questions, then of tasks by weight."""
    of_tasks = {}
    for task in SIZES:
        of_tasks[task] = np.mean([np.mean(cell) for cell in cells(kind, trials, task, fill).values() if cell])
    return sum(shares[task] * mean for task, mean in of_tasks.items()), of_tasks


def figures(kind, trials):
    """Return what a report has to say of a model with these trials."""
    answered = [one for one in trials if one.missing is None]
    low, high = min(WORTHS[kind][0]), max(WORTHS[kind][0])
    read = sum(one.usage.prompt_tokens for one in answered)
    wrote = sum(one.usage.completion_tokens for one in answered)
    p50, p95 = np.quantile([one.completion.latency for one in answered], (0.5, 0.95))
    return {
        "trials": len(answered),
        "issued": len(trials),
        "missing": len(trials) - len(answered),
        "questions": len({(one.request.task, one.request.question) for one in answered}),
        "truncated": sum(one.completion.finish_reason in ENDS[1] for one in answered),
        "prompt_tokens": read,
        "completion_tokens": wrote,
        "usd": (2 * read + 8 * wrote) / 1e6,
        "latency_p50_seconds": p50,
        "latency_p95_seconds": p95,
        "after_stop": sum(one.after_stop for one in answered),
        "score": score(kind, trials)[0],
        "score_if_missing_wrong": score(kind, trials, low)[0],
        "score_if_missing_right": score(kind, trials, high)[0],
    }


def near(expected):
    """Return what figures are compared with; numbers are kept as steps of 1/24,576 of their range."""
    return pytest.approx(expected, rel=1e-9, abs=1e-4)


def of_model(trials, name, until=math.inf):
    """Return a model's trials, those of the first steps of its sequence."""
    return [one for one in trials if one.request.key.model == name and one.request.key.index < until]


def posterior(kind, trials, shares=SHARES, earlier=None):
    """Return Bayes@N over both tasks, with two earlier answers of each question as its prior."""
    found = []
    for (task, share), weights in zip(shares.items(), WORTHS[kind], strict=True):
        own = cells(kind, trials, task)
        prior = {} if earlier is None else cells(kind, earlier, task)
        counts = [[own[one].count(value) for value in weights] for one in own]
        before = [[prior[one][:2].count(value) for value in weights] for one in own] if prior else None
        found.append(share * np.array(bayes(None, weights, counts=counts, prior_counts=before)))
    mu, sigma = np.transpose(found)
    return {"bayes_mu": mu.sum(), "bayes_sigma": np.linalg.norm(sigma)}


@EACH_KIND
def test_a_report_and_its_tables_say_what_the_answers_do(made, kind):
    run, trials = made(kind), trials_of(made(kind))
    write_reports(run, with_examples=False)
    data = json.loads((run / "report.json").read_text("utf-8"))
    tables = {name: rows_of((run / "report" / f"{name}.csv").read_text("utf-8")) for name in TABLES}
    for name in TABLES[:3]:
        for line, row in zip(data[name], tables[name], strict=True):
            said = {key: "" if line[key] is None else line[key] for key in row.keys() & line.keys()}
            assert parts(row, said) == said
    for line, row in zip(data["models"], tables["models"], strict=True):
        own = of_model(trials, line["model"])
        expected = figures(kind, own) | ({} if kind == "numbers" else posterior(kind, own))
        assert parts(line, expected) == parts(row, expected) == near(expected)
        assert kind != "numbers" or line["bayes_mu"] is line["bayes_sigma"] is None
        assert line["errors"] == {"timeout": line["missing"]}
        assert line["missing_reasons"] == Counter(one.missing for one in own if one.missing is not None)
        assert line["copies"] == line["missing_reasons"].get(COPY_REASON, 0)
        found = Counter(one.score.category for one in own if one.missing is None)
        assert line["categories"] == ([] if kind == "numbers" else [found[n] for n in range(max(found) + 1)])
        for task in data["tasks"]:
            (said,) = [one["score"] for one in task["scores"] if one["model"] == line["model"]]
            assert said == near(score(kind, own)[1][task["task"]])
    assert {task["task"]: task["questions"] for task in data["tasks"]} == SIZES
    assert {task["task"]: task["weight"] for task in data["tasks"]} == SHARES
    verdicts = Counter(pair["verdict"] for pair in data["pairs"])
    for pair in data["pairs"]:
        until = pair["decided_at"] or pair["trials_each"]
        both = [score(kind, of_model(trials, pair[side], until))[0] for side in ("first", "second")]
        assert pair["difference"] == near(both[0] - both[1])
        assert pair["difference_low"] < pair["difference"] < pair["difference_high"]
    page = (run / "report.md").read_text("utf-8").replace("\\", "")
    for task, size in SIZES.items():
        assert f"| {task} ({size} questions, weight {100 * SHARES[task]:g} %) |" in page
    for one, row in zip(data["decisions"], tables["decisions"], strict=True):
        assert [row["first"], row["second"]] == [*one["models"], "", ""][:2]
    expected = {"tied": 0, "measured": 0, "held": 0, "failed": 0, "uncounted": 0}
    expected |= {"questions": 24, "models": 3, "pairs": 3}
    expected |= {"separated": verdicts["better"], "open": verdicts["open"]}
    expected |= {"trials": len(trials), "stored": len(trials)}
    assert data["counts"] == expected
    usd = sum(line["usd"] for line in data["models"])
    spent = {line["name"]: line["spent"] for line in data["budgets"]}
    tokens = sum(line["prompt_tokens"] + line["completion_tokens"] for line in data["models"])
    assert spent == near({"trials": len(trials), "tokens": tokens, "usd": usd})
    assert verdicts == ({"better": 2, "open": 1} if kind == "numbers" else {"better": 3})
    if kind != "numbers":
        saving, most = data["saving"], max(line["issued"] for line in data["models"])
        found = saving["issued"], saving["uniform"], saving["cost"]["spent"]
        assert found == near((len(trials), 3 * most, usd))
        each = sum(line["usd"] / line["trials"] for line in data["models"])
        assert saving["cost"]["uniform"] == pytest.approx(each * most, rel=0.1)
        assert saving["cost"]["fixed"] / saving["fixed"] == pytest.approx(each / 3, rel=0.1)
    paper = [row.split(" | ") for row in (run / "report" / "bayes.md").read_text("utf-8").splitlines()[2:5]]
    percent = 100 if kind == "rights" else 1
    for line, (_, name, mean, span, *_) in zip(data["models"], paper, strict=True):
        ends = [float(end) / percent for end in span.strip("[]").split(", ")]
        assert name == line["model"]
        said = line["score"], line["score_low"], line["score_high"]
        assert (float(mean) / percent, *ends) == pytest.approx(said, abs=0.051)
    assert len(tables["questions"]) == (72 if kind == "rights" else 0)
    for row in tables["questions"]:
        asked = cells(kind, of_model(trials, row["model"]), row["task"])[row["question"]]
        assert (row["model_trials"], row["model_correct"]) == (len(asked), sum(asked))


@pytest.mark.parametrize("kind", ["graded", "numbers"])
def test_several_goals_are_held_against_the_same_answers(made, kind):
    goal = "ranking and threshold=0.6 and threshold=1.8 and width=1.3 and width=2.4"
    run = made(kind, "goals", goal=goal)
    data, trials, called, held, kinds = report_of(run), trials_of(run), {}, {}, Counter()
    for one in data["decisions"]:
        called[frozenset(one["models"]), one["step"]] = one["evidence"].get("threshold")
    for pair in data["pairs"]:
        until, first, second = pair["decided_at"] or pair["trials_each"], pair["first"], pair["second"]
        expected = score(kind, of_model(trials, first, until))[0]
        if pair["kind"] == "pair":
            expected -= score(kind, of_model(trials, second, until))[0]
        else:
            held.setdefault((second, pair["verdict"]), []).append(first)
            expected -= float(second) if pair["kind"] == "threshold" else 0
        assert pair["difference"] == near(expected)
        kinds["measured" if (pair["kind"], pair["verdict"]) == ("width", "tie") else pair["verdict"]] += 1
        if pair["verdict"] != "open":
            names = {first, second} & CHANCES.keys()
            assert pair["threshold"] == near(called[frozenset(names), pair["decided_at"]])
    counts = [data["counts"][name] for name in ("separated", "tied", "measured", "open")]
    assert counts == [kinds["better"] + kinds["worse"], kinds["tie"], kinds["measured"], kinds["open"]]
    said, words = data["verdict"].split("; "), {"better": "above", "worse": "below"}
    for (against, verdict), names in held.items():
        if verdict in words:
            are = "is" if len(names) == 1 else "are"
            assert f"{' and '.join(names)} {are} {words[verdict]} {against}" in said
    assert f"{len(held['width 1.3', 'tie'])} of 3 scores are measured to a width of 1.3" in said
    assert len(held["width 2.4", "tie"]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rights", "graded"])
def test_two_runs_are_compared_by_the_figures_of_both(made, kind, tmp_path):
    # The second is of the same tasks, by other models of the same names, in the other order.
    places = made(kind), made(kind, "second", 1, models=[*CHANCES][::-1], confidence=0.9)
    before, after = map(report_of, places)
    written = [tmp_path / f"comparison.{ending}" for ending in ("html", "md", "json")]
    assert runs.printed("report", *places, "--output", tmp_path).splitlines() == [*map(str, written)]
    assert runs.printed("report", *places) == written[1].read_text("utf-8")
    data = json.loads(written[2].read_text("utf-8"))
    assert data["confidence"] == near(0.85)
    assert data["comparable"]
    lines, verdicts, rows = [], [], []
    for report in (before, after):
        lines.append({line["model"]: line for line in report["models"]})
        verdicts.append({(pair["first"], pair["second"]): pair["verdict"] for pair in report["pairs"]})
        rows += [{"run": report["run"]["name"], **line} for line in report["models"]]
    for one in data["models"]:
        old, new = (of_run[one["model"]] for of_run in lines)
        assert one["difference"] == near(new["score"] - old["score"])
        assert one["difference_low"] == near(new["score_low"] - old["score_high"])
        assert one["difference_high"] == near(new["score_high"] - old["score_low"])
        for side, line in (("before", old), ("after", new)):
            assert one[side] == parts(line, one[side])
    turned = {"better": "worse", "worse": "better"}
    for one in data["pairs"]:
        pair = (one["first"], one["second"])
        old = verdicts[0].get(pair) or turned.get(said := verdicts[0][pair[::-1]], said)
        assert (one["before"], one["after"]) == (old, verdicts[1][pair])
        same = "same" if one["before"] == one["after"] else "reversed"
        assert one["change"] == {one["before"]: "settled", one["after"]: "reopened"}.get("open", same)
    site = write_leaderboard(places, tmp_path / "site").with_name("index.json")
    (board,) = json.loads(site.read_text("utf-8"))["boards"]
    rows.sort(key=lambda row: -row["score"])
    same = ("run", "model", "score", "rank_low", "rank_high", "trials")
    assert [parts(row, same) for row in board["models"]] == [parts(row, same) for row in rows]
    assert {(row["run"], row["confidence"]) for row in board["models"]} == {("first", 0.95), ("second", 0.9)}


@pytest.mark.slow
@EACH_KIND
def test_a_check_holds_only_below_the_score_and_fails_only_above_it(made, kind):
    run, data, (lowest, highest) = made(kind), report_of(made(kind)), sorted(WORTHS[kind][0])
    order, seen = [True, None, False], set()
    for line in data["models"]:
        values = np.linspace(lowest, highest, 6)[1:-1].tolist()
        said = [one.holds for one in check(run, [AtLeast(line["model"], value) for value in values])]
        assert said == sorted(said, key=order.index)
        for value, holds in zip(values, said, strict=True):
            assert holds in (None, value <= line["score"])
        seen |= set(said)
    for pair in data["pairs"]:
        margins = (np.array([0.02, 0.2, 0.5, 0.9]) * (highest - lowest)).tolist()
        for one, other, ahead in (("first", "second", 1), ("second", "first", -1)):
            claims = [NotWorse(pair[one], pair[other], margin) for margin in margins]
            said = [one.holds for one in check(run, claims)]
            assert said == sorted(said, key=order.index, reverse=True)
            for margin, holds in zip(margins, said, strict=True):
                assert holds in (None, ahead * pair["difference"] >= -margin)
            seen |= set(said)
    assert seen == set(order)


def samples(run, *options):
    return list(map(json.loads, runs.printed("samples", run, "--json", *options).splitlines()))


@EACH_KIND
def test_samples_are_those_that_are_asked_for(made, kind):
    run, trials = made(kind), trials_of(made(kind))
    for one, record in zip(samples(run), trials, strict=True):
        assert one | named(record) | {"missing": one.get("missing")} == {"missing": None, **one}
        assert (one.get("missing"), one["target"]) == (record.missing, str(2 * int(one["question"][1:])))
        if kind == "numbers" and record.missing is None:
            assert (one["category"], one["signals"]["score"]) == (None, float(one["answer"]))
        elif record.missing is None:
            assert WORTHS[kind][[*SIZES].index(one["task"])][one["category"]] == worth(kind, record)
    fair = of_model(trials, "fair")
    short = [one.request.key.index for one in fair if one.missing and one.request.task == "short"]
    newest = [one.request.key.index for one in fair[:-4:-1]]
    for options, steps in ((("--missing", "--task", "short"), short), (("--newest", "--limit", 3), newest)):
        assert [one["step"] for one in samples(run, "--model", "fair", *options)] == steps
    worths = {(one.request.key.model, one.request.key.index): worth(kind, one) for one in trials}
    alike, both = [], Counter()
    for one in trials:
        place = (one.request.task, one.request.question, one.request.repeat)
        both[place] += one.missing is None and one.request.key.model != "fair"
    for one, other in samples(run, "--compare", "good", "poor", "--task", "long"):
        assert parts(one, ("question", "repeat")) == parts(other, ("question", "repeat"))
        alike.append(worths[one["model"], one["step"]] == worths[other["model"], other["step"]])
    assert alike == sorted(alike)
    assert len(set(alike)) == 2
    assert len(alike) == sum(number == 2 and place[0] == "long" for place, number in both.items())


@EACH_KIND
def test_samples_of_the_harness_have_the_answers_of_the_run(made, kind, tmp_path):
    trials, out, expected, equal = trials_of(made(kind)), tmp_path / "out", {}, dict.fromkeys(SIZES, 0.5)
    runs.printed("export", made(kind), "--format", "lm-eval", "--out", out)
    for name in CHANCES:
        own = of_model(trials, name)
        expected[name], of_tasks = score(kind, own, shares=equal)
        (file,) = (out / name).glob("results_*.json")
        for task, found in json.loads(file.read_text("utf-8"))["results"].items():
            lost = [one.request.task for one in own if one.missing is not None].count(task)
            assert (found["score,none"], found["missing"]) == near((of_tasks[task], lost))
    span = ("--range", "0,1" if kind == "rights" else "-1,3")
    runs.printed("analyze", out, *span, "--id", "id", "--write", tmp_path / "again")
    data = report_of(tmp_path / "again")
    assert {line["model"]: line["score"] for line in data["models"]} == near(expected)
    assert data["counts"]["trials"] == sum(one.missing is None for one in trials)


def analysed(place, kind, *options):
    span = ["--range", "-1,3"] if kind == "numbers" else []
    return json.loads(runs.printed("analyze", place, *span, "--json", *options))


@EACH_KIND
def test_what_is_analysed_counts_as_in_the_run(made, kind, tmp_path):
    run, trials, table = made(kind), trials_of(made(kind)), tmp_path / "x.csv"
    runs.printed("export", run, "--out", table)
    with table.open(encoding="utf-8", newline="") as file:
        for row, record in zip(rows_of(file.read()), trials, strict=True):
            value = worth(kind, record)
            assert row["score"] == ("" if value is None else near(value))
            assert row | named(record) | {"trial": record.request.repeat} == {**row, "repeat": row["trial"]}
            cut = value is not None and record.completion.finish_reason in ENDS[1]
            assert row["truncated"] is cut
            weights = "" if kind == "numbers" else WORTHS[kind][[*SIZES].index(row["task"])]
            assert row["weights"] == (weights and json.dumps([float(one) for one in weights]))
            graded = value is not None and kind != "numbers"
            assert row["category"] == (record.score.category if graded else "")
    for place, shares in ((run, SHARES), (table, dict.fromkeys(SIZES, 0.5))):
        expected = {name: score(kind, of_model(trials, name), shares=shares)[0] for name in CHANCES}
        again = tmp_path / f"again-{place.name}"
        written = analysed(place, kind, "--write", again)
        lost = sum(one.missing is not None for one in trials)
        copies = sum(one.missing == COPY_REASON for one in trials)
        assert (written["trials"], written["missing"], written["copies"]) == (
            len(trials) - lost,
            lost,
            copies,
        )
        assert written["models"] == near(expected)
        data = report_of(again)
        assert data["counts"]["trials"] == len(trials)
        for line in data["models"]:
            own = figures(kind, of_model(trials, line["model"]))
            kept = ("trials", "prompt_tokens", "completion_tokens", "truncated", "latency_p50_seconds")
            assert parts(line, kept) == near(parts(own, kept))
        if kind == "numbers":
            numbers = [one.score.signals["score"] for one in trials_of(again) if one.score is not None]
            assert sorted(numbers) == near(sorted(worth(kind, one) for one in trials if one.missing is None))
        if kind == "graded":  # two rubrics, which analyze does not compare
            continue
        told = analysed(place, kind, "--fixed", "--replicates", 1, "--workers", 1)
        assert told["recorded_trials"] == len(trials) - lost
        for line in told["models"]:
            own = of_model(trials, line["model"])
            assert line["score"] == near(expected[line["model"]])
            assert line["trials"] == figures(kind, own)["trials"]
            bayes_at_n = {"bayes_mu": line["mu"], "bayes_sigma": line["sigma"]}
            assert kind == "numbers" or bayes_at_n == near(posterior(kind, own, shares))
        for pair in told["fixed"]:
            assert pair["difference"] == near(expected[pair["first"]] - expected[pair["second"]])
            assert expected[pair["winner"]] == max(expected[pair["first"]], expected[pair["second"]])


def test_options_reach_a_run_that_is_read_again(made):
    run, trials = made("rights"), trials_of(made("rights"))
    data = analysed(run, "rights", "--weights", "0,2", "--replicates", 1, "--workers", 1)
    for line in data["models"]:
        assert line["score"] == near(2 * score("rights", of_model(trials, line["model"]))[0])
    recorded = read_recorded([run], ReadingOptions(rename={"good": "best"}))
    assert set(recorded.models) == {"best", "fair", "poor"}
    assert recorded.lost == sum(one.missing not in (None, COPY_REASON) for one in trials)


@pytest.mark.parametrize(
    ("setting", "before", "now"),
    [
        ("overall", "macro", "pooled"),
        ("tasks[long].weight", 3, 2),
        ("tasks[short].rubric.weights", [1, -1, 3], [1, 0, 3]),
        ("models[good].deterministic", False, True),
    ],
)
def test_a_changed_setting_of_one_task_or_model_is_told(made, setting, before, now):
    with RunReader(made("graded")) as reader:
        meta = reader.meta()
    config = parse_config(meta["config"], meta["source"], meta["base_dir"], [f"{setting}={json.dumps(now)}"])
    (change,) = changes_of(config, meta, 9, 0.0)
    assert (change.setting, change.before, change.now) == (setting, before, now)
    assert not changes_of(config, meta, 0, 0.0), "before the first answer it may be chosen"


def whole(kind, record):
    """Return 1 for an answer that has ended by itself."""
    return None if record.missing is not None else int(record.completion.finish_reason in ENDS[0])


AGAIN = {
    "rights": (["--rubric", "{schema: binary, weights: [-3, 1], truncated: judged}"], [(-3, 1)] * 2),
    "graded": (["--rubric", "{schema: exact-match, weights: [0, 500, 200]}"], [(0, 500, 200)] * 2),
    "graded by own": (["--scorer", "numeric"], WORTHS["graded"]),
    "numbers to rights": (["--scorer", "{kind: numeric, tolerance: 1000}"], [(0, 1)] * 2),
    "numbers": (["--scorer", "{kind: python, function: 'stars:stars', range: [-2, 4]}"], [(-2, 4)] * 2),
}
"""Options by the kind of the run, and what they make the categories of each task worth."""


@pytest.mark.parametrize("name", AGAIN)
def test_stored_answers_are_ranked_anew_by_each_task(made, name, monkeypatch):
    (kind, *others), (options, weights) = name.split(), AGAIN[name]
    run, trials = made(kind), trials_of(made(kind))
    if others == ["to", "rights"]:  # every answer is near enough
        monkeypatch.setitem(globals(), "worth", whole)
    monkeypatch.setitem(WORTHS, kind, weights)
    monkeypatch.setitem(globals(), "JUDGED", {("rights", 0), ("rights", 1)})
    (first, again) = json.loads(runs.printed("rescore", run, *options, "--json", "--name", f"{name} both"))
    for line in again["models"]:
        own = of_model(trials, line["model"])
        assert (line["score"], line["missing"]) == near((score(kind, own)[0], figures(kind, own)["missing"]))
    told = runs.printed("rescore", run, *options, "--name", f"{name} one", "--task", "short")
    assert "as missing" not in told
    with RunReader(run) as reader:
        scorings = {one.name: (one.body, list(reader.rescored(n))) for n, one in enumerate(reader.scorings())}
    assert trials_of(run) == trials
    for part, tasks in (("both", [*SIZES]), ("one", ["short"])):
        there = {}
        for place, one in enumerate(trials):
            if one.missing is None and one.request.task in tasks:
                there[place] = worth(kind, one)
        body, found = scorings[f"{name} {part}"]
        of_task = dict(zip(SIZES, weights, strict=True))
        assert {task: tuple(one["weights"]) for task, one in body["tasks"].items()} == parts(of_task, tasks)
        assert [row.outcome for row in found] == [*there]
        if name != "numbers":
            rows = [of_task[trials[row.outcome].request.task][row.category] for row in found]
            assert rows == [*there.values()]
    rankings = runs.read_summary(run).whole_details.rankings
    assert "without a score" not in rankings_note(rankings, rankings[0][1])
    (place,) = [at for at, (known, _) in enumerate(rankings) if known == f"{name} both"]
    lines = {line["model"]: line for line in again["models"]}
    for before, (model, *shown) in zip(first["models"], ranking_rows(rankings)[1:], strict=False):
        line, figures_after = lines[model], shown[place].split()
        assert figures_after[1] == f"{line['score']:.{2 if max(weights[0]) > 9 else 3}f}"
        moved = before["rank"] - line["rank"]
        assert figures_after[2:] == ([f"{'▲' if moved > 0 else '▼'}{abs(moved)}"] if moved else [])


def test_answers_of_rounds_stay_with_the_questions_that_were_asked(made):
    """By this scorer each question has one score, however often it was asked."""
    run = made("rights", "rounds", allocation={"questions": "rounds"})
    judge = "def thirds(answer, question):\n    return int(question['target']) % 3 == 0\n"
    (run.parent / "thirds.py").write_text(judge, "utf-8")
    scored = ["--scorer", "{kind: python, function: 'thirds:thirds'}"]
    scored += ["--rubric", "{schema: binary, truncated: judged}"]
    (_, again) = json.loads(runs.printed("rescore", run, *scored, "--json"))
    expected = sum(SHARES[task] * -(-size // 3) / size for task, size in SIZES.items())
    assert [line["score"] for line in again["models"]] == near([expected] * 3)


@pytest.mark.parametrize("kind", ["rights", "graded"])
def test_stored_answers_are_references_and_priors_of_a_later_run(made, kind, tmp_path):
    run, trials, table = made(kind), trials_of(made(kind)), tmp_path / "old.csv"
    runs.printed("export", run, "--out", table)
    place = {"run": str(run)} if kind == "rights" else {"file": str(table)}
    goal = {"kind": "baseline", "model": "fair"}
    stored = {"references": [{**place, "models": ["fair"]}], "goal": goal, "budget": {"trials": 300}}
    new = made(kind, "referring", 2, models=["new", "good"], **stored)
    data, own, old = report_of(new), trials_of(new), figures(kind, of_model(trials, "fair"))
    lines = {line["model"]: line for line in data["models"]}
    expected = {name: old[name] for name in old if name.startswith(("score", "trials", "questions"))}
    assert {name: lines["fair"][name] for name in expected} == near(expected)
    assert (lines["fair"]["state"], lines["fair"]["issued"], lines["fair"]["usd"]) == ("reference", 0, None)
    assert data["counts"]["stored"] == data["counts"]["trials"] == len(own)
    for pair in data["pairs"]:
        sides = {"fair": old["score"]}
        for name in {pair["first"], pair["second"]} - {"fair"}:
            sides[name] = score(kind, of_model(own, name, pair["decided_at"] or math.inf))[0]
        assert pair["difference"] == near(sides[pair["first"]] - sides[pair["second"]])
    site = write_leaderboard([new], tmp_path).with_name("index.json")
    (board,) = json.loads(site.read_text("utf-8"))["boards"]
    assert {row["model"] for row in board["models"]} == {"new", "good"}
    assert "the reference 'fair' has" in runs.command("rescore", new, "--scorer", "numeric").stderr
    assert [one["name"] for one in report_of(new)["rankings"]] == ["as run", "numeric"]
    metrics = RunMetrics("run")
    metrics.update(0.0, 0.0, runs.read_summary(new).results, ())
    told = {one.name.removeprefix("adaptive_eval_"): one.samples for one in metrics.collect()}
    asked = ("usd", "missing", "prompt_tokens")
    for name in (*asked, "score_low", "score", "rank_high"):
        said = {sample.labels["model"]: sample.value for sample in told[name]}
        models = ("new", "good") if name in asked else lines
        assert said == {model: lines[model][name] for model in models}
    prior = {"prior": {"from": str(run), "depth": 2}, "budget": {"trials": 150}}
    new = made(kind, "prior", 3, **prior)
    for line in report_of(new)["models"]:
        own, old = (of_model(of, line["model"]) for of in (trials_of(new), trials))
        expected = posterior(kind, own, earlier=old)
        assert {name: line[name] for name in expected} == near(expected)
    assert "lead to its results" in runs.printed("validate", new)


@pytest.mark.parametrize("questions", ["shared", "rounds"])
@pytest.mark.parametrize("kind", ["rights", "graded", "numbers"])
def test_the_score_follows_from_the_trials_of_an_export(made, kind, questions):
    """Also in rounds, which weigh the trials of a question, with lost answers and weights of tasks."""
    changes = {"allocation": {"questions": "rounds"}} if questions == "rounds" else {}
    run = made(kind, questions, **changes)
    totals = {}
    for row in rows_of(runs.printed("export", run, "--format", "csv", "--no-texts")):
        if row["score"] not in (None, ""):
            totals[row["model"]] = totals.get(row["model"], 0.0) + row["weight"] * row["score"]
    assert totals == near({line["model"]: line["score"] for line in report_of(run)["models"]})


def test_the_score_follows_from_an_export_of_tasks_with_different_ranges(made):
    """Scores from -1 to 3 and right or wrong: each above its lowest, as a share of its range."""
    tasks = [{"name": name, "dataset": f"{name}.jsonl", "scorer": "numeric"} for name in SIZES]
    tasks[0]["rubric"] = {"weights": [-1, 3]}
    run = made("graded", "ranges", tasks=tasks, stopping={"equivalence": 0.2})
    totals = {}
    for row in rows_of(runs.printed("export", run, "--format", "csv", "--no-texts")):
        if row["score"] not in (None, ""):
            lowest = -1 if row["task"] == "long" else 0
            part = row["weight"] * (row["score"] - lowest)
            totals[row["model"]] = totals.get(row["model"], 0.0) + part
    assert totals == near({line["model"]: line["score"] for line in report_of(run)["models"]})


@pytest.mark.slow
def test_the_score_follows_from_an_export_of_tasks_of_which_one_is_asked_in_rounds(made):
    """Few questions are asked in one order, where the trials of a question weigh the same."""
    tasks = [
        {"name": name, "dataset": f"{name}.jsonl", "scorer": "numeric", "weight": 1 + place}
        for place, name in enumerate(SIZES)
    ]
    for few in (0, 1):
        chosen = [{**one, "limit": 2} if place == few else one for place, one in enumerate(tasks)]
        run = made("rights", f"one-in-rounds-{few}", tasks=chosen, allocation={"questions": "auto"})
        data = report_of(run)
        assert data["in_rounds"] == [[*SIZES][1 - few]]
        totals, weights = {}, {}
        for row in rows_of(runs.printed("export", run, "--format", "csv", "--no-texts")):
            if row["score"] not in (None, ""):
                totals[row["model"]] = totals.get(row["model"], 0.0) + row["weight"] * row["score"]
                if row["task"] == [*SIZES][few]:
                    weights.setdefault((row["model"], row["question"]), set()).add(row["weight"])
        assert totals == near({line["model"]: line["score"] for line in data["models"]})
        assert all(len(alike) == 1 for alike in weights.values())
