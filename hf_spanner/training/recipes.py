"""Recipes: the settings of a training in a YAML file, by path or by name among those of the package."""

import difflib
from pathlib import Path
from typing import Any

import yaml


def read_recipe(path: str) -> dict[str, Any]:
    """A recipe by its path, or by its name among those that come with the package.

    `extends: other.yaml` (beside the recipe) takes over the other's entries; the recipe's own come on top.
    """
    file = Path(path)
    if not file.is_file():
        folder = Path(__file__).resolve().parents[1] / "recipes"
        file = folder / path
        if not file.is_file():
            known = sorted(p.relative_to(folder).as_posix() for p in folder.glob("*/*.yaml"))
            near = difflib.get_close_matches(path, known, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"Those are in {', '.join(_folders(known))}."
            raise FileNotFoundError(f"There is no recipe {path!r}, here or among the package's own. {hint}")
    return _read_extended(file.resolve())


def _folders(names: list[str]) -> list[str]:
    return sorted({name.split("/")[0] + "/" for name in names})


def _read_extended(file: Path, below: tuple[Path, ...] = ()) -> dict[str, Any]:
    if file in below:
        raise ValueError(f"{below[0]} extends itself, by way of {below[-1]}.")
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is not YAML in UTF-8: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file} is not a recipe: expected lines of the form `name: value`.")
    if (name := content.pop("extends", None)) is not None:
        base = (file.parent / name).resolve()
        if not base.is_file():
            raise FileNotFoundError(f"{file} extends {name!r}, but there is no {base}.")
        content = {**_read_extended(base, (*below, file)), **content}
    return content
