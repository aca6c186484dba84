"""What `make quality` checks with mypy is about every public name, and strict where it says so."""

import ast
import fnmatch
import re
from pathlib import Path

import pytest

import hf_spanner

ROOT = Path(__file__).resolve().parents[2]
USER = ast.parse((ROOT / "tests" / "typing" / "user.py").read_text(encoding="utf-8"))
STRICT = ("", ".auto", ".data.*", ".default", ".errors", ".evaluation.*", ".loading", ".metrics.*", ".report.*")


@pytest.fixture(scope="module")
def settings() -> dict:
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]


@pytest.mark.parametrize("name", hf_spanner.__all__)
def test_the_users_script_uses_every_public_name(name):
    used = {node.id for node in ast.walk(USER) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    assert name in used, f"say in tests/typing/user.py what type {name} has"


def test_the_users_script_imports_nothing_but_what_there_is():
    names = [
        alias.name
        for node in ast.walk(USER)
        if isinstance(node, ast.ImportFrom) and node.module == "hf_spanner"
        for alias in node.names
    ]
    assert sorted(names) == sorted(hf_spanner.__all__)


def test_mypy_looks_with_the_oldest_python(settings):
    assert f'python_requires=">={settings["python_version"]}"' in (ROOT / "setup.py").read_text(encoding="utf-8")
    assert settings["check_untyped_defs"] and settings["warn_unused_ignores"]


def test_mypy_is_strict_where_a_user_looks_first(settings):
    strict = next(part for part in settings["overrides"] if part.get("disallow_untyped_defs"))
    assert {f"hf_spanner{name}" for name in STRICT} <= set(strict["module"])
    assert strict["disallow_any_generics"] and strict["warn_return_any"] and strict["disallow_incomplete_defs"]


def test_no_part_of_the_package_is_left_out_of_the_check(settings):
    assert not settings.get("exclude") and not settings.get("ignore_errors")
    for part in settings["overrides"]:
        names = [part["module"]] if isinstance(part["module"], str) else part["module"]
        if any(fnmatch.fnmatch(name, "hf_spanner*") for name in names):
            assert not part.get("ignore_errors") and part.get("follow_imports") is None, names


def test_what_travels_to_the_hub_says_its_types_with_what_is_there():
    """Only torch may be for the type checker alone: exported models are read without it."""
    for path in sorted((ROOT / "modeling").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert "typing_extensions" not in text, path
        for block in re.findall(r"^if TYPE_CHECKING:.*\n((?: .*\n)+)", text, flags=re.MULTILINE):
            assert all(re.match(r"(import|from) torch\b", line.strip()) for line in block.splitlines()), path
