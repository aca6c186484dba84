"""Processes beside the tests: with the package, or in an environment of transformers and torch alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from approaches import ROWS
from bare_site import make_site, start_in
from hub_server import TOKEN, Hub
from tests_support import SENTENCES

import hf_spanner

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def hub():
    with Hub() as hub:
        yield hub


@pytest.fixture(scope="session")
def bare_site(tmp_path_factory) -> Path:
    """An environment of transformers and torch alone."""
    return make_site(tmp_path_factory.mktemp("bare") / "site-packages", ["torch", "transformers"])


@pytest.fixture(scope="session")
def run(hub, bare_site):
    """Run code in a process that sees this Hub, and return what its `answer` holds.

    `package=False` runs it where hf_spanner cannot be imported.
    """

    def run(
        code: str, cache, token: str | None = TOKEN, package: bool = True, offline: bool = False, before=(), **env
    ):
        quiet = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error"}
        keep = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING", "PYTHON"))}
        env = {
            **keep,
            **quiet,
            **hub.env(cache, token),
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": str(int(offline)),
            **env,
        }
        late = "import faulthandler, json, sys\nfaulthandler.dump_traceback_later(600, exit=True)"
        code = f"{late}\n{code}\nprint('ANSWER' + json.dumps(answer))"
        if package:
            command, env["PYTHONPATH"] = [sys.executable, "-c"], os.pathsep.join((str(ROOT), str(ROOT / "tests")))
        else:
            command = start_in(bare_site)
        done = subprocess.run(
            [*before, *command, code],
            env=env,
            cwd=cache.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        before, found, answer = done.stdout.rpartition("ANSWER")
        assert found, f"the process ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return json.loads(answer)

    return run


@pytest.fixture(scope="session")
def models(tokenizer, tmp_path_factory) -> Path:
    """A folder with one saved model of each approach, the first of ten at random that finds something in the texts."""
    texts = [" ".join(words) for words, _ in SENTENCES]
    folder = tmp_path_factory.mktemp("models")
    for row in {row.approach: row for row in reversed(ROWS)}.values():
        for seed in range(10):
            torch.manual_seed(seed)
            model = row.make(tokenizer, threshold=0.0, overlap="any")
            if any(hf_spanner.pipeline(model, tokenizer)(texts)):
                break
        model.save_pretrained(folder / row.approach)
        tokenizer.save_pretrained(folder / row.approach)
    return folder
