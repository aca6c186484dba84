"""Commands that never surprise: no flag is guessed, data has one name, the terminal obeys nobody else."""

import json
import logging
import sys
import types
from importlib.machinery import ModuleSpec

import pytest
from approaches import ROWS
from tests_support import records

from hf_spanner import cli
from hf_spanner.cli.train import load_corpus, parse
from hf_spanner.harmless import harmless

EVIL = "\x1b]0;pwned\x07\x9b31m\u202eREP\u2066\x7f\r"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for split in ("train", "validation", "test"):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records()))
    return folder


@pytest.fixture(scope="module")
def models(tokenizer, tmp_path_factory):
    """Models of two word splitters."""
    folder = tmp_path_factory.mktemp("models")
    (row,) = (row for row in ROWS if row.name == "span_ner")
    for splitter in ("fine", "compound"):
        row.make(tokenizer, word_splitter=splitter).save_pretrained(folder / splitter)
        tokenizer.save_pretrained(folder / splitter)
    return folder


@pytest.fixture(scope="module")
def brat(tmp_path_factory):
    folder = tmp_path_factory.mktemp("brat")
    for name in "ab":
        (folder / f"{name}.txt").write_text("The IL-2 gene of New York\n")
        (folder / f"{name}.ann").write_text("T1\tDNA 4 6\tIL\nT2\tDNA 4 13\tIL-2 gene\n")
    return folder


def run(*argv):
    """The exit code, whoever ends the command."""
    try:
        return cli.main([str(argument) for argument in argv])
    except SystemExit as stop:
        return stop.code


# --------------------------------------------------------------------------------------------------------------- flags


@pytest.mark.parametrize(
    "argv",
    [
        ["evaluate", "DATA", "--model", "m", "--data-lab"],
        ["evaluate", "DATA", "--mod", "m"],
        ["predict", "--mod", "m", "text"],
        ["convert", "DATA", "out", "--split-sent", "newline"],
        ["push", "m", "me/m", "--priv"],
        ["train", "--dat", "DATA", "--output_dir", "x"],
    ],
)
def test_a_flag_is_never_abbreviated(argv, data, capsys):
    assert run(*[str(data) if word == "DATA" else word for word in argv]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith(f"hf-spanner {argv[0]}: ")


def test_data_is_named_by_a_flag_or_by_its_place_in_every_command(data, models, tmp_path, capsys):
    model, out = models / "fine", tmp_path / "out.jsonl"
    for argv in (
        ["evaluate", "--model", model],
        ["tune-threshold", "--model", model],
        ["report", "--resamples", "10", model],
        ["compare", "--resamples", "10", model, models / "compound"],
        ["convert", out],
    ):
        command, *rest = argv
        source = data / "test.jsonl" if command == "convert" else data
        answers = []
        for named in (
            [command, "--data", source, *rest],
            [command, source, *rest],
            [command, *rest, "--data", source],
        ):
            assert run(*named) == 0, capsys.readouterr().err
            answers.append(capsys.readouterr().out)
        assert answers[0] == answers[1] == answers[2] != ""


@pytest.mark.parametrize("argv", [["evaluate", "--model", "m"], ["report", "m"], ["convert", "out.jsonl"]])
def test_data_named_twice_is_refused_in_a_sentence(argv, data, capsys):
    command, *rest = argv
    assert run(command, data, *rest, "--data", "other") == 2
    error = capsys.readouterr().err
    assert "the data is named twice" in error and str(data) in error and "other" in error and error.count("\n") == 1


def test_what_is_missing_is_named(data, capsys):
    for argv, missing in (
        (["evaluate", "--model", "m"], "--data DATA"),
        (["report", data], "SYSTEM is missing"),
        (["convert", data], "OUTPUT is missing"),
        (["evaluate", data], "--model"),
    ):
        assert run(*argv) == 2
        error = capsys.readouterr().err
        assert missing in error and error.count("\n") == 1


@pytest.mark.parametrize(
    "argv",
    [
        ["evaluate", "DATA", "--model", "MODEL", "--set", "seed=[1"],
        ["train", "--data", "DATA", "--output_dir", "x", "--threshold", "[[[1"],
        ["train", "--data", "DATA", "--output_dir", "x", "--learning_rate", "much"],
    ],
)
def test_a_value_that_cannot_be_read_is_named_in_a_sentence(argv, data, models, capsys):
    assert run(*[{"DATA": data, "MODEL": models / "fine"}.get(word, word) for word in argv]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and ("Cannot read" in error or "'much'" in error)


# -------------------------------------------------------------------------------------------------------------- errors


def test_a_mistake_of_ours_keeps_its_traceback_though_it_is_a_value_error(monkeypatch, data):
    from hf_spanner.cli import convert

    monkeypatch.setattr(convert, "statistics", lambda sentences: 1 + sentences)
    with pytest.raises(TypeError):
        cli.main(["convert", str(data / "test.jsonl"), str(data / "out.jsonl")])
    code = compile("def main(argv):\n    return int('x')", cli.__file__, "exec")  # as if it stood in the package
    scope = {}
    exec(code, scope)
    monkeypatch.setitem(sys.modules, "trial", types.SimpleNamespace(main=scope["main"]))
    monkeypatch.setattr(cli, "COMMANDS", (cli.Command("try", "trial", "a trial"),))
    with pytest.raises(ValueError, match="invalid literal"):
        cli.main(["try"])


@pytest.mark.parametrize(("package", "install"), [("matplotlib", "hf_spanner[plots]"), ("peft", "hf_spanner[peft]")])
def test_a_missing_package_is_named_with_what_installs_it(package, install, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)

    def main(argv):
        __import__(package)

    monkeypatch.setitem(sys.modules, "trial", types.SimpleNamespace(main=main))
    monkeypatch.setattr(cli, "COMMANDS", (cli.Command("try", "trial", "a trial"),))
    assert cli.main(["try"]) == 2
    assert capsys.readouterr().err == f"hf-spanner try: This needs {package}, which is not installed: " + (
        f"`pip install {install}`.\n"
    )


def test_pictures_without_matplotlib_and_reports_without_wandb_end_in_a_sentence(monkeypatch, data, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("pictures", "--data", data, "--model", "m", "--output", tmp_path) == 2
    assert "pip install 'hf_spanner[plots]'" in capsys.readouterr().err
    monkeypatch.setattr("hf_spanner.cli.options.find_spec", lambda name: None)
    assert run("train", "--data", data, "--output_dir", tmp_path / "run", "--report_to", "wandb") == 2
    assert "`pip install wandb`" in capsys.readouterr().err
    monkeypatch.setattr("hf_spanner.cli.options.find_spec", lambda name: ModuleSpec(name, None))


def test_a_package_of_ours_that_is_missing_is_our_mistake(monkeypatch):
    monkeypatch.setattr(cli, "COMMANDS", (cli.Command("try", "hf_spanner.nowhere", "a trial"),))
    with pytest.raises(ModuleNotFoundError):
        cli.main(["try"])


# ------------------------------------------------------------------------------------------------------------ terminal


def test_escapes_are_shown_and_other_text_is_left_alone():
    assert harmless("Größe 東京 👩\u200d👩 e\u0301 \\") == "Größe 東京 👩\u200d👩 e\u0301 \\"
    assert harmless("\x1b[31m\x9b\u202e\ud800\n\t") == r"\x1b[31m\x9b\u202e\ud800\n\t"
    assert harmless("a\n\tb\r", keep="\n\t") == "a\n\tb\\r"
    assert harmless(harmless(EVIL)) == harmless(EVIL)


def is_harmless(text):
    return harmless(text, keep="\n\t") == text


def test_labels_words_files_and_errors_reach_the_terminal_as_escapes(models, tokenizer, tmp_path, capsys, caplog):
    (row,) = (row for row in ROWS if row.name == "span_ner")
    model = row.make(tokenizer, threshold=0.0)
    model.config.id2label[0] = EVIL
    model.config.label2id = {label: index for index, label in model.config.id2label.items()}
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    rows = [{"tokens": ["New", f"York{EVIL}"], "entities": [{"start": 0, "end": 2, "label": EVIL}]}]
    rows += [{"tokens": ["a"], "entities": [{"start": 0, "end": 1, "label": f"{EVIL}2"}]}]
    file = tmp_path / f"{EVIL.replace('/', '')}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    caplog.set_level(logging.INFO)
    for argv in (
        ["evaluate", "--data", file, "--model", tmp_path / "model", "--groups"],
        ["report", "--data", file, tmp_path / "model", "--resamples", "10", "--output", tmp_path / "page"],
        ["compare", "--data", file, f"{EVIL}={tmp_path / 'model'}", models / "fine", "--resamples", "10"],
        ["convert", "--data", file, tmp_path / "out.jsonl"],
        ["predict", "--model", tmp_path / "model", "--format", "view", "--color", "never", f"New York {EVIL}"],
        ["predict", "--model", tmp_path / "model", "--format", "jsonl", f"New York {EVIL}"],
    ):
        assert run(*argv) == 0, capsys.readouterr().err
        assert is_harmless(capsys.readouterr().out), argv
        assert all(is_harmless(message) for message in caplog.messages), argv
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert is_harmless(page) and r"\x1b]0;pwned" in page
    for argv in (
        ["evaluate", "--data", f"{file}x", "--model", models / "fine"],
        ["predict", f"--{EVIL}", "x"],
        [EVIL],
    ):
        assert run(*argv) == 2
        error = capsys.readouterr().err
        assert is_harmless(error) and error.count("\n") == 1


# --------------------------------------------------------------------------------------------------------------- words


def test_text_is_cut_into_words_as_the_model_cuts_it(models, brat, tmp_path, capsys):
    for splitter in ("fine", "compound"):
        out = tmp_path / f"{splitter}.jsonl"
        flags = ["--model", models / splitter, "--predictions", out]
        assert run("evaluate", "--data", brat, *flags, "--output", tmp_path / "s.json") == 0
        words = json.loads(out.read_text().splitlines()[0])["tokens"]
        assert ("IL-2" in words) == (splitter == "compound")
        task = parse(["--data", str(brat), "--output_dir", str(tmp_path / "run")], "hf-spanner train")
        data = load_corpus(str(brat), task, splitter)
        assert {tuple(row["tokens"]) for split in data.values() for row in split} >= {tuple(words)}
    assert run("report", "--data", brat, models / "fine", "--resamples", "10") == 0


def test_systems_that_cut_a_text_into_other_words_are_not_compared(models, brat, data, capsys):
    both = [models / "fine", models / "compound", "--resamples", "10"]
    assert run("compare", "--data", brat, *both) == 2
    error = capsys.readouterr().err
    assert "cut it into different words" in error and "--resplit" in error and error.count("\n") == 1
    assert run("compare", "--data", brat, *both, "--resplit", "fine") == 0
    assert run("compare", "--data", data, *both) == 0  # these data come in words


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_stream_that_is_closed_is_no_mistake_of_ours(stream, models, monkeypatch):
    """`hf-spanner predict <&-`: Python has None in place of the stream."""
    monkeypatch.setattr(sys, stream, None)
    text = [] if stream == "stdin" else ["New York"]
    assert cli.main(["predict", "--model", str(models / "fine"), *text]) == 0


@pytest.mark.parametrize("flag", ["--dtype", "--return_dict", "--architectures", "--is_encoder_decoder"])
def test_what_is_no_setting_of_an_approach_is_no_flag_of_train(flag, data, tmp_path, capsys):
    argv = ["train", "--data", str(data), "--approach", "span_ner", "--output_dir", str(tmp_path / "m"), flag, "int8"]
    assert cli.main(argv) == 2
    assert f"span_ner knows no setting {flag!r}" in capsys.readouterr().err and not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--encoder", "no-such"], "There is no folder no-such, "),
        (["--encoder", "file.txt"], "file.txt cannot be loaded"),
        (["utf16.yaml"], "utf16.yaml is not YAML in UTF-8"),
    ],
)
def test_what_a_training_starts_from_is_named_if_it_is_none(flags, said, data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("words")
    (tmp_path / "utf16.yaml").write_bytes("learning_rate: 1".encode("utf-16"))
    recipe = flags[:1] if len(flags) == 1 else []
    assert cli.main(["train", *recipe, "--data", str(data), "--output_dir", "m", *flags[len(recipe) :]]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error and "\n" not in error and "--traceback" not in error


@pytest.mark.parametrize(
    "argv, told",
    [
        (["inspect", ""], "the data is not named: --data DATA"),
        (["evaluate", "--data", "", "--model", "x"], "the data is not named: --data DATA"),
        (["predict", "--set", "=1", "x"], "Cannot read the inference parameter '=1'"),
    ],
)
def test_an_empty_name_is_none(argv, told, capsys):
    assert run(*argv) == 2 and told in capsys.readouterr().err


def test_nothing_is_trained_into_the_folder_of_the_data(data, capsys):
    before = sorted(data.iterdir())
    assert run("train", "--data", str(data), "--approach", "span_ner", "--output_dir", f"{data}/../{data.name}") == 2
    assert "is the folder of the data: name another output_dir" in capsys.readouterr().err
    assert sorted(data.iterdir()) == before
