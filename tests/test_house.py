"""The house itself: what may stand where."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [file for folder in ("modeling", "hf_spanner", "scripts") for file in (ROOT / folder).rglob("*.py")]

OTHERS = {"train_no_trainer.py", "peers.py", "flat.py"}  # a plain loop; the neighbours' own models


def test_texts_are_read_in_one_place():
    """Batches are made, models switched to evaluation and windows merged by the one `Reader`."""
    for name in ("pad_batch", "merge_windows", r"model\.eval\(\)"):
        users = {file.name for file in SOURCES if re.search(rf"\b{name}", file.read_text(encoding="utf-8"))}
        assert users - OTHERS == {"reading.py"}, name


OLD_NAMES = (("pipelines",), ("inference",), ("vectors",))  # re-exports for a release


def modules() -> dict[str, ast.Module]:
    """Every module of the package, `modeling/` included, by its name inside the package; "" is the package itself."""
    files = [*(ROOT / "hf_spanner").rglob("*.py"), *(ROOT / "modeling").glob("*.py")]
    trees = {}
    for file in files:
        parts = file.relative_to(ROOT).with_suffix("").parts
        parts = parts[1:] if parts[0] == "hf_spanner" else parts
        if parts in OLD_NAMES:
            continue
        trees[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(file.read_text(encoding="utf-8"))
    return trees


def imported(name: str, tree: ast.Module, known: dict) -> set[str]:
    """The modules of the package that one imports, anywhere in it, functions included; not what only types need."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    is_package = any(other.startswith(f"{name}.") for other in known) or name == ""
    here = name.split(".") if name else []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            up = node.level - (1 if is_package else 0)
            base = here[: len(here) - up] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                whole = ".".join([*base, alias.name])
                found.add(whole if whole in known else ".".join(base))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hf_spanner":
            found.add(node.module.partition(".")[2])
    return found - {""}  # `from . import __version__` is all that anybody takes from the package itself


def test_no_module_imports_itself_by_way_of_others():
    trees = modules()
    graph = {name: imported(name, tree, trees) & set(trees) for name, tree in trees.items() if name}

    def reached(start: str) -> set[str]:
        seen, waiting = set(), [start]
        while waiting:
            for other in graph[waiting.pop()] - seen:
                seen.add(other)
                waiting.append(other)
        return seen

    assert [name for name in graph if name in reached(name)] == []


# Who may import whom: what stands further right is imported by what stands further left, never the other way.
LAYERS = [
    "cli", "reproduce", "exporting", "benchmarks", "training", "demo", "hub building report registration",
    "evaluation bulk serving", "analysis", "spacy_pipe", "loading errors exported onnx foreign",
    "data metrics relabelling", "auto", "rendering", "default harmless lock", "modeling",
]  # fmt: skip


def test_imports_point_one_way():
    level = {name: number for number, names in enumerate(LAYERS) for name in names.split()}
    trees = modules()
    wrong = [
        f"{name} imports {other}"
        for name, tree in trees.items()
        if name
        for other in imported(name, tree, trees)
        if level[other.split(".")[0]] < level[name.split(".")[0]]
    ]
    assert wrong == []
    assert {name.split(".")[0] for name in trees if name} == set(level)


def test_modeling_travels_alone():
    """Flat files that import each other by `from .x import y`, and otherwise what transformers brings along."""
    for file in (ROOT / "modeling").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.level == 1 and node.module and "." not in node.module, file.name
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                outside = {name.split(".")[0] for name in names} - sys.stdlib_module_names
                assert outside <= {"torch", "transformers", "tqdm", "regex", "scipy", "spacy"}, (file.name, outside)


def test_papers_have_names_and_no_numbers():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    files = [ROOT / name for name in names if name.endswith((".py", ".yaml", ".md", ".toml", ".cff"))] or SOURCES
    numbered = re.compile("paper" + r"s?[ _]0\d", re.IGNORECASE)
    found = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in files
        if "fixtures" not in file.parts
        for line in file.read_text(encoding="utf-8").splitlines()
        if numbered.search(line)
    ]
    assert found == []
