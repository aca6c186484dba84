"""The command line: dispatch, help, and errors as sentences."""

import json
import subprocess
import sys
import types

import pytest

import hf_spanner
from hf_spanner import cli


@pytest.fixture
def command(monkeypatch):
    """A sub-command `try` whose body each test supplies."""

    def install(main):
        monkeypatch.setitem(sys.modules, "trial", types.SimpleNamespace(main=main))
        monkeypatch.setattr(cli, "COMMANDS", (*cli.COMMANDS, cli.Command("try", "trial", "a trial")))

    return install


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(argv, capsys):
    assert cli.main(argv) == 0
    out = capsys.readouterr().out
    assert all(f"  {command.name} " in out and command.help in out for command in cli.COMMANDS)


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"hf-spanner {hf_spanner.__version__}\n"


def test_an_unknown_command_is_guessed_at(capsys):
    assert cli.main(["trian"]) == 2
    assert capsys.readouterr().err == "hf-spanner: there is no command 'trian'; did you mean 'train'?\n"
    assert cli.main(["xyzzy"]) == 2
    assert "choose one of train, adapt, evaluate, predict" in capsys.readouterr().err


@pytest.mark.parametrize("name", [command.name for command in cli.COMMANDS])
def test_every_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([name, "--help"])
    assert stop.value.code == 0
    assert "usage:" in capsys.readouterr().out


def test_a_command_gets_its_arguments_and_its_name(command, capsys):
    seen = {}

    def main(argv):
        seen.update(argv=argv, program=list(sys.argv))
        return 3

    command(main)
    before = list(sys.argv)
    assert cli.main(["try", "--a", "1"]) == 3
    assert seen == {"argv": ["--a", "1"], "program": ["hf-spanner try", "--a", "1"]}
    assert sys.argv == before


def test_errors_are_one_line_with_code_2(command, capsys):
    def main(argv):
        raise ValueError("two\nlines")

    command(main)
    assert cli.main(["try"]) == 2
    # Raised outside the project, so the way to the traceback is named.
    assert capsys.readouterr().err == "hf-spanner try: two lines\n(--traceback shows where this was raised)\n"


def test_a_traceback_on_request(command, monkeypatch):
    def main(argv):
        raise ValueError("no")

    command(main)
    with pytest.raises(ValueError):
        cli.main(["try", "--traceback"])
    monkeypatch.setenv("HF_SPANNER_TRACEBACK", "1")
    with pytest.raises(ValueError):
        cli.main(["try"])


def test_a_mistake_in_the_program_is_not_dressed_up(command):
    def main(argv):
        return 1 + "1"

    command(main)
    with pytest.raises(TypeError):
        cli.main(["try"])


def test_after_two_dashes_everything_is_text(command):
    seen = []
    command(lambda argv: seen.extend(argv))
    assert cli.main(["try", "--", "--traceback"]) == 0
    assert seen == ["--", "--traceback"]


def test_an_interrupt_ends_with_130(command):
    def main(argv):
        raise KeyboardInterrupt

    command(main)
    assert cli.main(["try"]) == 130


def test_a_closed_pipe_is_silent():
    code = "import sys\nfrom hf_spanner.cli import main\nsys.stdin.read()\nsys.exit(main([]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.close()
    process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait() == 141


def test_an_unknown_setting_of_train_is_guessed_at(capsys, tmp_path):
    assert cli.main(["train", "--data", "x", "--output_dir", str(tmp_path), "--max_spam_length", "3"]) == 2
    assert capsys.readouterr().err == (
        "hf-spanner train: biaffine_ner knows no setting '--max_spam_length'. Did you mean --max_span_length?\n"
    )


def test_an_unknown_approach_lists_those_there_are(capsys, tmp_path):
    assert cli.main(["train", "--data", "x", "--output_dir", str(tmp_path), "--approach", "spanner"]) == 2
    assert "Unknown approach 'spanner': choose one of" in capsys.readouterr().err


def test_a_broken_line_of_the_data_is_named(capsys, tmp_path):
    data = tmp_path / "data.jsonl"
    row = json.dumps({"tokens": ["a"], "entities": []})
    data.write_text(f"{row}\n{row[:-2]}\n{row}\n")
    assert cli.main(["train", "--data", str(data), "--output_dir", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert f"hf-spanner train: {data}:2: broken JSON" in error and error.count("\n") == 1
