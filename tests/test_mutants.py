"""The list of mutants stays one that can be run: `make mutants` runs it."""

import re

import pytest
import run_mutants
import yaml

MUTANTS = run_mutants.read_mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_its_file_and_its_tests_exist(mutant):
    assert mutant.problem() is None
    assert mutant.tests and mutant.why
    for test in mutant.tests:
        file, _, name = test.partition("::")
        text = (run_mutants.ROOT / file).read_text(encoding="utf-8")
        assert not name or re.search(rf"^def {re.escape(name)}\(", text, re.MULTILINE), test


def test_mutants_are_many_different_and_all_over_the_models():
    assert len(MUTANTS) >= 24
    assert len({mutant.name for mutant in MUTANTS}) == len({(m.file, m.old, m.new) for m in MUTANTS}) == len(MUTANTS)
    assert len({mutant.file for mutant in MUTANTS}) >= 15
    assert all(mutant.file.startswith(("modeling/", "hf_spanner/training/")) for mutant in MUTANTS)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("this text is nowhere", "x", "stands 0 times"),
        ("import", "x", "times in modeling/spans.py, not once"),
        ("import math\n", "import math (\n", "it is no Python"),
    ],
)
def test_a_list_that_does_not_fit_fails_before_anything_is_run(old, new, message, tmp_path, capsys):
    entry = {"name": "a", "file": "modeling/spans.py", "old": old, "new": new, "why": "b", "tests": ["tests"]}
    (tmp_path / "list.yaml").write_text(yaml.safe_dump([entry]), encoding="utf-8")
    assert run_mutants.main(["--mutants", str(tmp_path / "list.yaml")]) == 1
    assert message in capsys.readouterr().out


@pytest.mark.parametrize(
    "code, output, dead, words",
    [
        (1, "..F\nFAILED tests/test_a.py::test_b[1] - assert False\n1 failed", True, "killed by test_b[1]"),
        (run_mutants.OUT_OF_TIME, "", True, "killed (out of time)"),
        (0, "3 passed", False, "SURVIVED"),
        (2, "1 error during collection", False, "BROKEN: pytest ended with 2\n1 error during collection"),
        (5, "no tests ran", False, "BROKEN: pytest ended with 5\nno tests ran"),
    ],
)
def test_only_a_test_that_fails_kills(code, output, dead, words):
    assert run_mutants.verdict(code, output) == (dead, words)


def test_a_copy_is_as_it_was_when_a_mutant_has_been_made(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    mutant = run_mutants.Mutant("a", "a.py", old="1", new="2", why="b", tests=["tests"])
    assert mutant.problem(tmp_path) is None
    with mutant.made(tmp_path):
        assert (tmp_path / "a.py").read_text(encoding="utf-8") == "x = 2\n"
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "x = 1\n"
