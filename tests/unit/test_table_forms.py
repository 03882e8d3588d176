"""Tables in the forms that people have them: each reads as the same answers, or says which option maps it."""

import gzip
import json

import pytest

from adaptive_eval.errors import OutcomesError, UsageError
from adaptive_eval.interop.found import ReadingOptions
from adaptive_eval.interop.gather import Gatherer
from adaptive_eval.interop.import_run import import_logs
from adaptive_eval.interop.recorded_files import open_logs, read_recorded
from adaptive_eval.trial import ScoreRange

NEW, OLD = (1, 1, 1, 0), (1, 0, 0, 0)
PAIRS = list(zip(NEW, OLD, strict=True))


def lines(*texts):
    return "\n".join(texts) + "\n"


def wide(yes, no, delimiter=","):
    rows = [delimiter.join((f"q{n}", yes if a else no, yes if b else no)) for n, (a, b) in enumerate(PAIRS)]
    return lines(delimiter.join(("question", "new", "old")), *rows)


BY_MODEL = {
    "new": {f"q{n}": bool(a) for n, a in enumerate(NEW)},
    "old": {f"q{n}": b for n, b in enumerate(OLD)},
}
LISTS = {"new": NEW, "old": OLD}
KEYED = {"results": {name: [{"id": n, "correct": v} for n, v in enumerate(of)] for name, of in LISTS.items()}}
LONG = [(name, n, value) for name, of in LISTS.items() for n, value in enumerate(of)]
FORMS = {
    "semicolons.csv": wide("1", "0", ";"),
    "decimal_commas.csv": wide("1,0", "0,0", ";"),
    "percentages.csv": wide("100 %", "0%"),
    "letters.csv": wide("C", "I"),
    "signs.csv": wide("✓", "✗"),
    "spreadsheet.csv": "sep=;\r\n" + wide("1", "0", ";").replace("\n", "\r\n"),
    "average_of_models.csv": wide("1", "0").replace("\n", ",0.5\n").replace("old,0.5", "old,Average"),
    "average_of_questions.csv": lines("model,a,b,c,d,Mean", "new,1,1,1,0,.75", "old,1,0,0,0,.25"),
    "mark.csv": "\ufeff" + wide("TRUE", "no"),
    "by_model.json": json.dumps(BY_MODEL),
    "lists.json": json.dumps(LISTS),
    "keyed.json": json.dumps(KEYED),
    "table.jsonl.gz": lines(*(json.dumps({"model": m, "id": n, "correct": v}) for m, n, v in LONG)),
    "named_attempts.csv": lines("Model,Item,Attempt,Passed", *(f"{m},{n},run_3,{v}" for m, n, v in LONG)),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_table_is_read(form, tmp_path):
    path = tmp_path / form
    data = FORMS[form].encode()
    path.write_bytes(gzip.compress(data) if form.endswith(".gz") else data)
    recorded = read_recorded([path])
    assert recorded.models == ("new", "old")
    assert recorded.categories[:, :, 0].tolist() == [[*NEW], [*OLD]]
    assert recorded.categories.shape[2] == 1


def test_a_folder_of_tables_has_a_model_a_file(tmp_path):
    for name, of in LISTS.items():
        (tmp_path / f"{name}.csv").write_text(lines("id,correct", *(f"{n},{v}" for n, v in enumerate(of))))
    assert read_recorded([tmp_path]).categories[:, :, 0].tolist() == [[*NEW], [*OLD]]


@pytest.mark.parametrize("names", [1_001, 100_000])
def test_columns_that_would_be_too_many_models_are_refused_with_the_option(names, tmp_path):
    """Two thousand models took more than 150 s, and 200,000 columns did not end."""
    path = tmp_path / "wide.csv"
    path.write_text(lines(",".join(f"c{n}" for n in range(names)), *[",".join("1" * names)] * 2))
    with pytest.raises(OutcomesError, match=f"{names:,} columns.*--map score="):
        read_recorded([path])


def test_a_cell_without_answer_does_not_drop_its_model(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(lines("q,new,old,level", "a,1,0,low", "b,NA,1,low", "c,1,n/a,high"))
    (log,) = open_logs([path], ReadingOptions())
    recorded = read_recorded([path])
    assert recorded.models == ("new", "old")
    assert (recorded.categories >= 0).sum() == 4
    assert "not read: level" in log.notes[0]


@pytest.mark.parametrize("heads", ["question,new,old", "model,question,score"])
def test_scores_of_another_range_are_refused_with_the_option(heads, tmp_path):
    path = tmp_path / "table.csv"
    is_wide = heads.endswith("old")
    rows = [f"q{n},{7 + a},{6 + b}" for n, (a, b) in enumerate(PAIRS)]
    path.write_text(lines(heads, *(rows if is_wide else [f"{m},{n},{6 + v}" for m, n, v in LONG])))
    with pytest.raises(OutcomesError, match="--range"):
        read_recorded([path])
    assert read_recorded([path], ReadingOptions(range=ScoreRange((1.0, 10.0)))).models == ("new", "old")


def test_more_scores_than_categories_are_written_as_numbers(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(lines("question,new,old", *(f"q{n},{n / 40 + 0.013},{n / 50}" for n in range(30))))
    imported = import_logs(open_logs([path], ReadingOptions()), tmp_path / "run")
    scores = {line.model: line.score for line in imported.results.models}
    assert scores["new"] == pytest.approx(29 / 80 + 0.013, abs=1e-3)
    assert scores["old"] == pytest.approx(0.29, abs=1e-3)


def output_item(model, number, right):
    return {
        "object": "eval.run.output_item",
        "datasource_item_id": number,
        "datasource_item": {"key": f"k{number}", "ground_truth": "x"},
        "eval_id": "eval_1",
        "results": [{"name": "check", "sample": None, "passed": bool(right), "score": float(right)}],
        "sample": {
            "model": model,
            "input": [{"role": "user", "content": "?"}],
            "output": [{"role": "assistant", "content": "x"}],
            "finish_reason": "stop",
            "usage": {"prompt_tokens": 3, "completion_tokens": 2},
            "error": None,
        },
    }


def test_output_items_of_openais_evals_as_pages_and_as_lines(tmp_path):
    items = [output_item(*one) for one in LONG]
    for number, page in enumerate((items[:5], items[5:])):
        text = json.dumps({"object": "list", "data": page, "has_more": number == 0})
        (tmp_path / f"page{number}.json").write_text(text)
    (tmp_path / "items.jsonl").write_text(lines(*map(json.dumps, items)))
    pages = sorted(tmp_path.glob("*.json"))
    with pytest.raises(OutcomesError, match="pages of the run follow"):
        read_recorded(pages)
    for recorded in (
        read_recorded(pages, ReadingOptions(incomplete=True, question_id="key")),
        read_recorded([tmp_path / "items.jsonl"], ReadingOptions(question_id="key")),
    ):
        assert recorded.questions[0] == ("eval_1", "k0")
        assert recorded.categories[:, :, 0].tolist() == [[*NEW], [*OLD]]


def three_subjects(number):
    return ("algebra", "law", "gsm8k")[number % 3]


@pytest.mark.parametrize("form", ["long", "wide", "Category"])
def test_a_category_that_is_a_subject_is_no_verdict(form, tmp_path):
    """Tables of MMLU and its kind have a column category with the subject of each question."""
    path = tmp_path / "table.csv"
    if form == "wide":
        rows = [f"q{n},{three_subjects(n)},{a},{b}" for n, (a, b) in enumerate(PAIRS)]
        path.write_text(lines("question,category,new,old", *rows))
    else:
        head = f"model,question,{'category' if form == 'long' else form},correct"
        path.write_text(lines(head, *(f"{m},q{n},{three_subjects(n)},{v}" for m, n, v in LONG)))
    recorded = read_recorded([path])
    assert recorded.categories[:, :, 0].tolist() == [[*NEW], [*OLD]]
    assert "category is a subject" in recorded.warnings[0]


def test_a_category_alone_that_is_a_subject_lacks_a_score(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(lines("model,question,category", *(f"{m},q{n},{three_subjects(n)}" for m, n, _ in LONG)))
    with pytest.raises(OutcomesError, match="--map score="):
        read_recorded([path])


def test_categories_that_say_something_else_than_the_verdict_are_refused(tmp_path):
    """The number of a subject was read as what an answer is worth, and named another winner."""
    path = tmp_path / "table.csv"
    rows = [f"{m},q{n},{n % 2},{v}" for m, n, v in LONG]
    path.write_text(lines("model,question,category,correct", *rows))
    with pytest.raises(OutcomesError, match="--map category=category or --map correct=correct"):
        read_recorded([path])
    for name, expected in (("correct", [[*NEW], [*OLD]]), ("category", [[0, 1, 0, 1]] * 2)):
        recorded = read_recorded([path], ReadingOptions(columns={name: name}))
        assert recorded.categories[:, :, 0].tolist() == expected
    path.write_text(lines("model,question,category,correct", *(f"{m},q{n},{v},{v}" for m, n, v in LONG)))
    assert read_recorded([path]).categories[:, :, 0].tolist() == [[*NEW], [*OLD]]
    path.write_text(
        lines("question,category,new,old", *(f"{n},{n % 2},{a},{b}" for n, (a, b) in enumerate(PAIRS)))
    )
    with pytest.raises(OutcomesError, match="new, old are models"):
        read_recorded([path])


def test_a_row_a_metric_needs_the_metric(tmp_path):
    """Two metrics of each answer were read as two answers, and their mean as the score."""
    path = tmp_path / "table.csv"
    rows = [
        f"{m},q{n},{metric},{value}" for m, n, v in LONG for metric, value in (("em", v), ("toxicity", 0))
    ]
    path.write_text(lines("model,question,metric,value", *rows))
    with pytest.raises(OutcomesError, match="em, toxicity; choose one with --metric"):
        read_recorded([path])
    assert read_recorded([path], ReadingOptions(metric="em")).categories[:, :, 0].tolist() == [[*NEW], [*OLD]]
    path.write_text(lines("model,question,metric,value", *(f"{m},q{n},m{n % 2},{v}" for m, n, v in LONG)))
    assert read_recorded([path]).categories[:, :, 0].tolist() == [[*NEW], [*OLD]]


def test_a_comma_that_may_part_thousands_is_refused(tmp_path):
    """1,600 was read as 1.6 and lost to 700."""
    path = tmp_path / "table.csv"
    path.write_text(lines("model;question;score", *(f"{m};q{n};{'1,600' if v else 700}" for m, n, v in LONG)))
    with pytest.raises(OutcomesError, match="'1,600' is not a score"):
        read_recorded([path], ReadingOptions(range=ScoreRange((0.0, 2000.0))))


def test_a_row_that_sums_up_the_others_is_refused_with_its_line(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(wide("1", "0") + "Average,.75,.25\n", "utf-8")
    with pytest.raises(OutcomesError, match="line 6: 'Average'"):
        read_recorded([path])


def of_one_model(folder, name, verdicts, trials=()):
    """Write the answers of model `a` to some questions, with a column of trials if they are given."""
    numbers = trials or [""] * len(verdicts)
    rows = (f"a,q{n},{v},{t}" for n, (v, t) in enumerate(zip(verdicts, numbers, strict=True)))
    (folder / name).write_text(lines("model,question,correct,trial", *rows), "utf-8")
    return folder / name


def gathered(paths, folder, **choices):
    gatherer = Gatherer(folder, None, independent=True)
    try:
        for log in open_logs(paths, ReadingOptions(**choices)):
            gatherer.add(log)
        return gatherer.gathered()
    finally:
        gatherer.close()


def together(notes):
    return [note for note in notes if getattr(note, "code", "") == "outcomes/together"]


def test_a_model_in_two_files_is_one_model_with_a_note_or_two_that_are_named(tmp_path):
    before, after = of_one_model(tmp_path, "1.csv", OLD), of_one_model(tmp_path, "2.csv", NEW)
    (tmp_path / "one").mkdir()
    found = gathered([before, after], tmp_path / "one")
    assert found.models == ("a",)
    assert len(together(found.notes)) == 1
    (tmp_path / "two").mkdir()
    found = gathered([before, after], tmp_path / "two", models={before: "old", after: "new"})
    assert found.models == ("old", "new")
    assert not together(found.notes)


def test_parts_of_one_benchmark_in_several_files_need_no_note(tmp_path):
    parts = [of_one_model(tmp_path, "1.csv", OLD, [1] * 4), of_one_model(tmp_path, "2.csv", NEW, [2] * 4)]
    (tmp_path / "trials").mkdir()
    assert not together(gathered(parts, tmp_path / "trials").notes)
    other = tmp_path / "3.csv"
    other.write_text(parts[0].read_text("utf-8").replace("q", "p").replace("p", "q", 1), "utf-8")
    (tmp_path / "questions").mkdir()
    assert not together(gathered([parts[0], other], tmp_path / "questions").notes)


def test_the_same_trial_of_a_model_in_two_files_is_refused_with_both_and_the_option(tmp_path):
    paths = [of_one_model(tmp_path, name, OLD if name < "2" else NEW, [1] * 4) for name in ("1.csv", "2.csv")]
    with pytest.raises(OutcomesError) as raised:
        read_recorded(paths)
    assert all(part in str(raised.value) for part in (str(paths[0]), str(paths[1]), "--model NAME=FILE"))


def test_a_name_for_a_file_is_that_of_its_only_model(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(lines("model,question,correct", *(f"{m},{n},{v}" for m, n, v in LONG)), "utf-8")
    with pytest.raises(UsageError, match="'new' and 'old'"):
        read_recorded([path], ReadingOptions(models={path: "a"}))
