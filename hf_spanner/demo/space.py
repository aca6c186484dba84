"""The demo page as a Space of the Hub: a folder that runs by itself, with the package in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from importlib.metadata import requires, version
from pathlib import Path

import yaml
from huggingface_hub import CommitInfo, HfApi

from ..default import FOLDER, NAME
from ..errors import in_one_sentence
from ..loading import load_config

PACKAGE = Path(__file__).resolve().parents[1]
APP = '''"""Nested entities in a text, on a page. Made by `hf-spanner space`."""

from hf_spanner.demo.page import serve

serve({models!r}, port=7860, host="0.0.0.0")
'''
README = """\
---
{head}---

# {title}

Nested entities: names inside names, found by {models} with hf_spanner.
"""


def save_space(folder: str | os.PathLike, models: Sequence[str], title: str = "Nested entities") -> list[Path]:
    """Write the Space: its card, `app.py`, what it needs, and the package as it is here. Returns the files.

    Args:
        models: Hub ids, or `"default"`, whose weights are part of the package.
    """
    folder = Path(folder)
    for model in models:
        if Path(model).exists():
            raise ValueError(f"{model} is a folder here, where a Space cannot read: push it, and name its id.")
        load_config(model)
    if folder.is_dir() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    leave = shutil.ignore_patterns("__pycache__", *([] if NAME in models else [FOLDER.name]))
    shutil.copytree(PACKAGE, folder / "hf_spanner", ignore=leave)
    inside = folder / "hf_spanner" / "modeling"
    if not inside.is_dir():  # in the source tree it stands beside the package
        shutil.copytree(PACKAGE.parent / "modeling", inside, ignore=leave)
    needed = [line for line in requires("hf_spanner") or [] if "extra ==" not in line]
    (folder / "requirements.txt").write_text("\n".join(needed) + "\n", encoding="utf-8")
    (folder / "app.py").write_text(APP.format(models=list(models)), encoding="utf-8")
    head = {
        "title": title,
        "sdk": "gradio",
        "sdk_version": version("gradio"),
        "app_file": "app.py",
        "models": [model for model in models if model != NAME],
        "tags": ["nested-ner", "named-entity-recognition", "hf_spanner"],
    }
    card = README.format(head=yaml.safe_dump(head, sort_keys=False), title=title, models=", ".join(models))
    (folder / "README.md").write_text(card, encoding="utf-8")
    return sorted(file for file in folder.rglob("*") if file.is_file())


def push_space(
    folder: str | os.PathLike, repo_id: str, private: bool | None = None, message: str | None = None
) -> CommitInfo:
    """Upload the folder that [`save_space`] wrote."""
    api = HfApi()
    with in_one_sentence(repo_id, None, "pushing"):
        repo_id = api.create_repo(
            repo_id, repo_type="space", space_sdk="gradio", private=private, exist_ok=True
        ).repo_id
        return api.upload_folder(
            repo_id=repo_id,
            folder_path=Path(folder),
            repo_type="space",
            commit_message=message or "Upload the demo page",
        )
