"""The documentation: its Python runs, its commands have the flags they are shown with, its pages exist."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
import yaml

from hf_spanner.cli import COMMANDS
from hf_spanner.cli import main as run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\S+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [code for of, info, code in found if of == language and "notest" not in info]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.stem)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    """All blocks of a page in order, as somebody would who types along, without a network."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, code in enumerate(blocks(page, "python")):
        exec(compile(code, f"{page.name}, block {number}", "exec"), names)


def commands_of(page: Path) -> list[list[str]]:
    """What follows `hf-spanner` on the lines of its shell blocks, without comments and pipes."""
    text = "\n".join(blocks(page, "bash")).replace("\\\n", " ")
    lines = [line.split("hf-spanner ", 1)[1] for line in text.splitlines() if re.match(r"\s*hf-spanner ", line)]
    return [shlex.split(re.split(r" [|>&] ", line)[0], comments=True) for line in lines]


def help_of(*argv: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        run([*argv])
    return said.getvalue()


@pytest.fixture(scope="module")
def flags() -> dict[str, set[str]]:
    """Every flag of every command; of `train` also those of all approaches' configurations."""
    from hf_spanner import APPROACHES

    found = {}
    for command in COMMANDS:
        text = help_of(command.name, "--help")
        if command.name in ("train", "tune"):
            text += "".join(help_of("train", "--help-all", "--approach", name) for name in APPROACHES)
        found[command.name] = set(re.findall(r"--[A-Za-z][\w-]*", text))
    return found


@pytest.mark.parametrize("page", [p for p in PAGES if commands_of(p)], ids=lambda p: p.stem)
def test_the_commands_of_a_page_exist_with_their_flags(page, flags):
    for name, *arguments in commands_of(page):
        assert name in flags, name
        used = {a.split("=")[0] for a in arguments if a.startswith("--")}
        assert used <= flags[name], (name, used - flags[name])


def test_recipes_that_are_named_exist():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for recipe in re.findall(r"hf-spanner train (\S+\.yaml)", text):
            if recipe.count("/") == 1 and not recipe.startswith("runs/"):
                assert (ROOT / "hf_spanner" / "recipes" / recipe).is_file(), recipe


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page():
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    def entries(part):
        return (
            [part]
            if isinstance(part, str)
            else [e for p in (part.values() if isinstance(part, dict) else part) for e in entries(p)]
        )

    listed = set(entries(config["nav"]))
    written = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    made = {entry for entry in listed if entry.startswith("measured") or entry == "reference/commands.md"}
    assert written == listed - made


def test_every_public_name_has_its_reference():
    import hf_spanner

    pages = "".join((ROOT / "docs" / "reference" / name).read_text() for name in ("api.md", "configuration.md"))
    missing = [name for name in hf_spanner.__all__ if not re.search(rf"(\.|`){name}\b", pages)]
    assert missing == []


def test_the_front_page_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1100  # of these 900 are words, not markup
