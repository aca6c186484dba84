"""A `site-packages` with a few distributions and what they require, and nothing else: links into the real one."""

import importlib.metadata
import site
import sys
from pathlib import Path

from packaging.requirements import Requirement


def requirements_of(names: list[str]) -> set[str]:
    """The distributions and, through their requirements (no extras), all that they need."""
    needed, queue = set(), list(names)
    while queue:
        name = importlib.metadata.distribution(queue.pop()).metadata["Name"]
        if name not in needed:
            needed.add(name)
            for text in importlib.metadata.requires(name) or ():
                requirement = Requirement(text)
                if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                    queue.append(requirement.name)
    return needed


def make_site(folder: Path, names: list[str]) -> Path:
    """Fill `folder` with links to those distributions; `python -I -S` with it as `sys.path` sees nothing else."""
    folder.mkdir(parents=True)
    for name in requirements_of(names):
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            top = file.parts[0]
            target = folder / top
            if top != ".." and not target.exists() and not target.is_symlink():
                target.symlink_to(Path(distribution.locate_file(top)).resolve())
    return folder


def start_in(folder: Path) -> list[str]:
    """The beginning of a command line that runs Python with the standard library and `folder` alone; then code."""
    here = site.getsitepackages()
    lines = f"import sys; sys.path = [p for p in sys.path if p not in {here!r}] + [{str(folder)!r}]; "
    return [sys.executable, "-I", "-S", "-c", lines + "exec(compile(sys.argv.pop(1), 'the test', 'exec'))"]
