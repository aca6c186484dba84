"""Tables of each kind made end to end at toy size; what is done stays done; our column is what the records say."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests_support import records

from hf_spanner import cli
from hf_spanner.cli.reproduce import COMMANDS
from hf_spanner.evaluation import list_mentions
from hf_spanner.reproduce.ledger import ledger_text, read_ledger, state
from hf_spanner.reproduce.measures import bracketed, describe_corpus, look_up, of_length
from hf_spanner.reproduce.printing import draw, markdown, write_outcome
from hf_spanner.reproduce.runner import Figure, Reproduction
from hf_spanner.reproduce.runs import Place, plan_run, read_budgets
from hf_spanner.reproduce.tables import make_table, read_table

SMALL = dataclasses.replace(read_budgets()["small"], sentences=(8, 6, 6))
CONTENT = {
    "title": "Two networks",
    "recipe": "{corpus}/sng_typing.yaml",
    "times": 100,
    "measure": "scores.typing_accuracy",
    "columns": {"GENIA": {"corpus": "genia"}},
    "rows": {
        "attention": {"printed": ["91.76"]},
        "bag": {"settings": {"span_network": "bag"}, "printed": ["12.34"]},
    },
}


def place(folder, **fields) -> Place:
    return Place(output=folder, budget=SMALL, commands=COMMANDS, say=lambda text: None, **fields)


def made(table, folder, seeds=None, **fields):
    work = Reproduction(table, place(folder, **fields), seeds)
    work.train()
    figures = work.figures()
    return work, figures, work.outcome(figures)


def test_a_table_is_made_with_several_seeds_and_our_column_is_what_their_records_say(tmp_path):
    table = make_table("sng", "two", CONTENT)
    work, figures, outcome = made(table, tmp_path, seeds=[1, 2])
    assert not any(figure.failed for figure in figures)
    for figure in figures:
        own = []
        for seed in (1, 2):
            run = plan_run(work.place, figure.cell, seed)
            record = json.loads((run.folder / "training.json").read_text())
            assert record["seed"] == seed
            own.append(record["results"]["test"]["typing_accuracy"])
        assert [figure.values[1], figure.values[2]] == own
        assert figure.mean == pytest.approx(100 * sum(own) / 2)
    text = markdown(table, outcome)
    assert "| attention | 91.76 | " in text and "| bag | 12.34 | " in text and " ± " in text
    # Another figure in the record is another figure in our column, and the paper's stays.
    run = plan_run(work.place, figures[0].cell, 1)
    (file,) = run.folder.glob("reproduced/*/scores.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "typing_accuracy": 0.999}))
    (run.folder.with_name("seed-2") / "reproduced/test/scores.json").write_text(file.read_text())
    _, again, outcome = made(table, tmp_path, seeds=[1, 2])
    assert again[0].mean == pytest.approx(99.9) and again[0].cell.printed == "91.76"
    assert outcome["cells"][0]["from"] == [
        f"{run.folder.with_name(f'seed-{seed}').relative_to(tmp_path)}/reproduced/test/scores.json#scores.typing_accuracy"
        for seed in (1, 2)
    ]


def test_no_figure_of_ours_is_made_without_a_run(tmp_path):
    figures = Reproduction(make_table("sng", "two", CONTENT), place(tmp_path)).figures()
    assert [figure.text() for figure in figures] == ["failed", "failed"]
    assert all("is not trained" in figure.failed and figure.mean is None for figure in figures)


def test_what_was_killed_goes_on_and_what_is_done_is_not_done_again(tmp_path):
    table, trained = make_table("sng", "two", CONTENT), []

    def dies_in_the_second(argv):
        trained.append(argv)
        if len(trained) == 2:
            raise KeyboardInterrupt
        COMMANDS.train(argv)

    work = Reproduction(
        table, Place(tmp_path, SMALL, dataclasses.replace(COMMANDS, train=dies_in_the_second), say=len)
    )
    with pytest.raises(KeyboardInterrupt):
        work.train()
    first, second = work.runs()
    assert first.done and not second.done
    before = (first.folder / "training.json").stat().st_mtime_ns
    assert [line.split(":")[0].strip() for line in work.plan() if "hf-spanner train" in line] == ["done", "to train"]
    _, figures, _ = made(table, tmp_path)
    assert not any(figure.failed for figure in figures) and second.done
    assert (first.folder / "training.json").stat().st_mtime_ns == before


def test_a_run_is_the_same_wherever_its_folders_are_named_from(tmp_path, monkeypatch, encoder_folder):
    cell = read_table("dspert", "table3").cell("DSpERT, L̃ = 4", "GENIA")
    monkeypatch.chdir(tmp_path)
    here = plan_run(place(Path("out")), cell, 1)
    there = plan_run(place(tmp_path / "out"), cell, 1)
    assert here.folder.resolve() == there.folder and here.recipe["span_depth"] == 4
    named = plan_run(place(tmp_path / "out", encoder=encoder_folder), cell, 1)
    assert named.folder != there.folder
    assert named.recipe["span_depth"] == 1, "four of twelve layers are one of an encoder's two"
    assert plan_run(place(tmp_path / "out", encoder="default"), cell, 1).recipe["span_depth"] == 2


def test_a_setting_may_be_of_one_corpus(tmp_path):
    table = read_table("locate_and_label", "table1")
    here = place(tmp_path, settings={"genia/vectors": "pubmed.txt", "vectors": "glove.txt"})
    recipes = {row: plan_run(here, table.cell(row, "F1"), 1).recipe for row in ("ACE04", "GENIA")}
    assert {row: recipe["vectors"] for row, recipe in recipes.items()} == {"ACE04": "glove.txt", "GENIA": "pubmed.txt"}
    here = place(tmp_path, settings={"gena/vectors": "pubmed.txt"})
    with pytest.raises(ValueError, match="--set gena/vectors: there is no corpus 'gena': choose from ace04, "):
        plan_run(here, table.cell("ACE04", "F1"), 1)


def test_what_is_said_and_what_is_so_anyway_are_one_training(tmp_path):
    said = read_table("dspert", "table3").cell("shallow, max-pooling", "GENIA")
    unsaid = read_table("dspert", "figure2").cell("GENIA, shallow", "1")
    other = read_table("dspert", "table3").cell("shallow, mean-pooling", "GENIA")
    assert said.settings != unsaid.settings
    folders = [plan_run(place(tmp_path), cell, 1).folder for cell in (said, unsaid, other)]
    assert folders[0] == folders[1] != folders[2]


def test_a_run_that_fails_is_said_in_its_cell_and_the_others_are_made(tmp_path):
    content = {**CONTENT, "rows": {"right": {}, "wrong": {"settings": {"no_such_setting": 1}}}}
    _, (right, wrong), outcome = made(make_table("sng", "two", content), tmp_path)
    assert right.mean is not None and wrong.text() == "failed" and "no_such_setting" in wrong.failed
    assert "Failed: sng knows no setting" in markdown(make_table("sng", "two", content), outcome)


def test_a_curve_and_a_histogram_are_drawn_and_a_picture_is_a_file(tmp_path):
    pytest.importorskip("matplotlib", reason="the plots need matplotlib: pip install hf_spanner[plots]")
    parts = {key: CONTENT[key] for key in ("title", "recipe", "times", "measure")}
    parts["rows"] = {"attention": {}, "bag": {"settings": {"span_network": "bag"}}}
    columns = {"a": {"corpus": "genia"}, "b": {"corpus": "litbank"}}
    for kind in ("curve", "histogram"):
        table = make_table("sng", kind, {**parts, "kind": kind, "axis": "corpus", "columns": columns})
        _, figures, outcome = made(table, tmp_path)
        files = write_outcome(table, outcome, figures, tmp_path / "tables" / "sng")
        assert [file.name for file in files] == [f"{kind}.{ending}" for ending in ("md", "json", "svg", "png")]
        assert "attention" in files[2].read_text()
    columns = {"picture": {"measure": "violin.picture"}, "right": {"measure": "probabilities.right", "times": 1}}
    rows = {"GENIA": {"corpus": "genia"}}
    table = make_table("sng", "pictures", {**parts, "kind": "analysis", "columns": columns, "rows": rows})
    _, (picture, right), outcome = made(table, tmp_path)
    assert (tmp_path / picture.text()).read_bytes().startswith(b"\x89PNG") and 0 <= right.mean <= 1
    file = write_outcome(table, outcome, [picture, right], tmp_path / "tables" / "sng")[0]
    (link,) = re.findall(r"\[violin.png\]\((.*?)\)", file.read_text())
    assert (file.parent / link).samefile(tmp_path / picture.text()), "a link that works where the table lies"


def test_figures_without_a_scale_in_common_are_drawn_apart_and_hide_nothing():
    pytest.importorskip("matplotlib", reason="the plots need matplotlib: pip install hf_spanner[plots]")
    table = read_table("diffusion_ner", "figure3")
    figures = [Figure(cell, {1: 0.9 if cell.section == "scores" else 2.0}) for cell in table.cells]
    above, below = draw(table, figures).axes
    assert (above.get_ylabel(), below.get_ylabel()) == ("F1", "relative speed")
    assert {y for line in above.lines for y in line.get_ydata()} == {90.0}
    assert {x for line in above.lines for x in line.get_xdata()} == {1.0, 5.0, 10.0}, "steps at their own places"
    assert {y for line in below.lines for y in line.get_ydata()} == {2.0}
    bundled = read_table("bundling", "figure5")
    (axes,) = draw(bundled, [Figure(cell, {1: 0.5}) for cell in bundled.cells]).axes
    axes.figure.draw_without_rendering()
    legend, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
    assert len(axes.get_legend().get_texts()) == 12 and legend.y0 >= inside.y1


def test_heads_bins_differences_and_speed_are_measured_of_one_training(tmp_path):
    content = {
        "title": "Bundled",
        "recipe": "wnut17/bl_ner.yaml",
        "corpus": "wnut17",
        "columns": {"F1": {"measure": "scores.f1"}, "short": {"measure": "length.1-4.recall"},
                    "speed": {"measure": "speed.relative"}},
        "rows": {"span": {}, "seq": {"evaluate": {"head": "seq"}}, "gap": {"minus": "span", "columns": ["F1"]}},
    }  # fmt: skip
    work, figures, _ = made(make_table("bundling", "t", content), tmp_path)
    assert len(work.runs()) == 1 and not any(figure.failed for figure in figures)
    by_cell = {(figure.cell.row, figure.cell.column): figure for figure in figures}
    assert by_cell["gap", "F1"].mean == 0.0 and by_cell["span", "speed"].mean == 1.0
    assert {"test", "test,head=seq"} == {file.name for file in work.runs()[0].folder.glob("reproduced/*")}


def test_statistics_need_no_training_and_count_as_a_hand_does(tmp_path):
    corpus = tmp_path / "corpora" / "genia"
    corpus.mkdir(parents=True)
    for split in ("train", "test"):
        (corpus / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records()))
    counts = describe_corpus(str(corpus))["test"]
    assert (counts["sentences"], counts["entities"], counts["nested"]) == (5, 14, 6)
    # of the first sentence 5 of 6 nest on either side, of the last 4 of 5; two labels on one span do not nest
    assert (counts["nested or covering"], counts["sentences with nesting"], counts["unseen words"]) == (9, 2, 0.0)
    table = read_table("dspert", "table6")
    work = Reproduction(
        table, Place(tmp_path / "out", read_budgets()["full"], COMMANDS, data_root=tmp_path / "corpora")
    )
    assert work.runs() == []
    figures = work.figures()
    shown = {(f.cell.row, f.cell.column): f.text() for f in figures}
    assert shown["#Entity", "GENIA"] == "28" and shown["#Entity", "ACE04"] == "not at hand"
    assert "needs the LDC's ACE 2004" in markdown(table, work.outcome(figures))
    # Figures are of the data as it is now, and of a split that is not there nothing is said.
    (corpus / "test.jsonl").unlink()
    work = Reproduction(table, work.place)
    figures = work.figures()
    shown = {(f.cell.row, f.cell.column): f.text() for f in figures}
    assert shown["#Entity", "GENIA"] == "14" and shown["#Sent., test", "GENIA"] == "not at hand"
    assert not any(figure.failed for figure in figures)
    assert f"genia, as it lies in {corpus}, has no test split" in markdown(table, work.outcome(figures))


def test_a_span_with_two_labels_counts_once_where_the_papers_files_have_one(tmp_path):
    sentence = {"id": "1", "doc_id": None, "tokens": ["a", "b", "c"], "entities": []}
    spans = [(0, 3, "DNA"), (0, 3, "protein"), (1, 2, "DNA")]
    sentence["entities"] = [{"start": a, "end": b, "label": label} for a, b, label in spans]
    for split in ("train", "validation", "test"):
        (tmp_path / f"{split}.jsonl").write_text(json.dumps(sentence) + "\n")
    counts = describe_corpus(str(tmp_path))
    assert counts["train and validation"]["entities"] == 6 and counts["train"]["nested or covering"] == 3
    assert counts["one label"]["train and validation"]["entities"] == 4
    assert counts["one label"]["test"]["nested or covering"] == 2


def test_the_sample_stands_in_for_all_splits_and_only_where_sentences_are_needed(tmp_path):
    counted = Reproduction(read_table("dspert", "table6"), place(tmp_path))
    shown = {(f.cell.row, f.cell.column): f.text() for f in counted.figures()}
    assert shown["#Sent., test", "GENIA"] == "6" and "not at hand" not in shown.values()
    set_up = Reproduction(read_table("dspert", "table7"), place(tmp_path))
    assert "stands in" not in markdown(set_up.table, set_up.outcome(set_up.figures()))


def test_scores_on_validation_data_in_place_of_test_data_are_said_to_be(tmp_path):
    corpus = tmp_path / "corpora" / "genia"
    corpus.mkdir(parents=True)
    for split in ("train", "validation"):
        (corpus / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records()))
    full = dataclasses.replace(SMALL, name="full", sentences=None)
    table = make_table("sng", "two", CONTENT)
    work = Reproduction(table, Place(tmp_path, full, COMMANDS, data_root=corpus.parent, say=len), [1])
    work.train()
    text = markdown(table, work.outcome(work.figures()))
    assert "has no test split: read is its validation split." in text and "failed" not in text


def test_the_score_of_nothing_is_none_and_so_is_a_difference_from_it(tmp_path):
    """Figure 2 of DSpERT by length, Table 6 of Ji et al. by bucket: where no entity is, 0 would be a false figure."""
    pytest.importorskip("matplotlib", reason="the plots need matplotlib: pip install hf_spanner[plots]")
    columns = {"F1": {"measure": "scores.f1"}, "25 words": {"measure": "length.25.f1"}}
    content = {
        "title": "By length",
        "recipe": "wnut17/span_ner.yaml",
        "corpus": "wnut17",
        "kind": "curve",
        "columns": columns,
        "rows": {"all": {}, "less": {"minus": "all"}},
    }
    table = make_table("bundling", "t", content)
    _, figures, outcome = made(table, tmp_path)
    assert [figure.text() for figure in figures][1::2] == ["none", "none"] and figures[0].mean is not None
    assert "“none”: there is nothing that this would be a figure of" in markdown(table, outcome)
    assert sum(len(line.get_xdata()) for axes in draw(table, figures).axes for line in axes.lines) == 2


def test_a_curve_is_told_by_its_ends():
    (cell, _) = make_table("sng", "two", CONTENT).cells
    assert Figure(cell, {1: [[1, 24.964], [2, 3.5], [3, 0.25]]}).text() == "24.96 to 0.25"


def test_what_a_measure_is_looked_up_by():
    content = {"a b": {"1-4": {"f1": 0.5}}, "v": {"x.y": 2}}
    assert look_up(content, "s.a b.1-4.f1") == 0.5 and look_up(content, "s.v.x.y") == 2
    with pytest.raises(LookupError, match="'s.a b.5.f1' is not there: '5.f1' is none of 1-4"):
        look_up(content, "s.a b.5.f1")
    empty, wrong = ({"f1": 0.0, "support": 0, "predicted": number} for number in (0, 1))
    assert look_up({"L": empty}, "s.L.f1") is None and look_up({"L": empty}, "s.L.support") == 0
    assert look_up({"L": wrong}, "s.L.f1") == 0.0
    mentions = list_mentions([[(0, 2, "X")], []], [[(0, 2, "X"), (1, 2, "Y")], [(0, 12, "X")]])
    chosen = {bounds: list(map(of_length(bounds), mentions)) for bounds in ("2", "1-4", "10-")}
    assert chosen == {"2": [True, False, False], "1-4": [True, True, False], "10-": [False, False, True]}
    assert bracketed("a b c".split(), mentions[:2]) == "{[a {b]X}X}Y c".replace("{b]X}X}Y", "{b}Y]X}X")


def test_the_command_lists_plans_and_says_what_lacks(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["reproduce", "--list"]) == 0
    out = capsys.readouterr().out
    assert "96 rows, 4 of them drawings" in out and "`hf-spanner reproduce dspert table3`" in out
    assert "needs the LDC's OntoNotes Release 5.0 (LDC2013T19)" in out
    assert cli.main(["reproduce", "dspert"]) == 0
    assert "table3           Table 3: The effect of depth (F1)" in capsys.readouterr().out
    assert cli.main(["reproduce", "dspert", "table3", "--dry-run", "--budget", "small"]) == 0
    out = capsys.readouterr().out
    assert out.count("to train: hf-spanner train") == 30 and "the sample corpus stands in" in out
    assert not list(tmp_path.iterdir()), "a dry run writes nothing"
    for argv, message in (
        (["dspert", "table3"], "English) is not at hand, no --data-root is given. It needs the LDC's"),
        (["dspert", "table99"], "dspert has no table 'table99'; did you mean"),
        (["dspert", "table3", "--data-root", "nowhere"], "--data-root nowhere is no folder"),
        (["--claims"], "None of the claims' corpora"),
    ):
        assert cli.main(["reproduce", *argv]) == 2
        assert message in capsys.readouterr().err
    (tmp_path / "corpora" / "genia").mkdir(parents=True)
    assert (
        cli.main(["reproduce", "dspert", "table3", "--budget", "claims", "--data-root", "corpora", "--dry-run"]) == 2
    )
    assert "trains on a small encoder that you name: --encoder" in capsys.readouterr().err


def test_the_ledger_says_when_a_table_was_made(tmp_path):
    assert "not made here" in ledger_text(tmp_path, paper="sng")
    table = read_table("sng", "table1")
    work = Reproduction(table, place(tmp_path))
    write_outcome(table, work.outcome(figures := work.figures()), figures, tmp_path / "tables" / "sng")
    (line,) = [line for line in ledger_text(tmp_path, paper="sng").splitlines() if line.startswith("| Table 1 ")]
    assert "(small)" in line
    outcome = work.outcome(figures) | {"missing": {"genia": "GENIA is not at hand."}}
    write_outcome(table, outcome, figures, tmp_path / "tables" / "sng")
    assert "(small, without genia)" in ledger_text(tmp_path, paper="sng")
    (batches,) = [row for row in read_ledger() if "batching" in row.tables]
    assert state(batches, tmp_path) == "table3: not made here; batching: not made here"


@pytest.mark.slow
def test_a_call_that_was_killed_by_the_system_goes_on(tmp_path):
    argv = [sys.executable, "-m", "hf_spanner.cli", "reproduce", "dspert", "table4", "--budget", "small"]
    argv += ["--output_dir", str(tmp_path)]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 600
    while not list(tmp_path.glob("runs/*/seed-1/training.json")) and time.monotonic() < deadline:
        time.sleep(0.2)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = {file: file.read_bytes() for file in tmp_path.glob("runs/*/seed-1/training.json")}
    assert done
    assert subprocess.run(argv, stdout=subprocess.DEVNULL).returncode == 0
    assert all(file.read_bytes() == content for file, content in done.items())
    assert (tmp_path / "tables" / "dspert" / "table4.md").is_file()
