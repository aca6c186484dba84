"""The folder of a Space: all that it needs is in it, and on the Hub it is a Space."""

import os
import subprocess
import sys

import pytest
import yaml
from hub_server import Hub

from hf_spanner import cli

pytest.importorskip("gradio", reason="gradio is not installed (pip install hf_spanner[demo])")


def test_the_folder_runs_by_itself(tmp_path, capsys):
    """Nothing but the folder is on the path: the package, its modelling files and the default model are there."""
    space = tmp_path / "space"
    assert cli.main(["space", "me/nested", "--dry-run", str(space)]) == 0
    assert "README.md, app.py, hf_spanner, requirements.txt" in capsys.readouterr().out
    head = yaml.safe_load((space / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert (head["sdk"], head["app_file"], head["models"]) == ("gradio", "app.py", [])
    assert "torch>=2.4" in (space / "requirements.txt").read_text()
    code = (
        "import sys; sys.path.insert(0, '.'); import hf_spanner, hf_spanner.modeling.decoding as d\n"
        "from hf_spanner.demo.page import Models\n"
        "found = Models(['default']).read('default', 'Anna lives in Paris.')\n"
        "print(hf_spanner.__file__, d.__file__, len(found.own) > 0)"
    )
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=space, env=env, capture_output=True, text=True)
    package, modeling, works = done.stdout.split()
    assert package == str(space / "hf_spanner" / "__init__.py") and works == "True", done.stderr
    assert modeling == str(space / "hf_spanner" / "modeling" / "decoding.py")
    compile((space / "app.py").read_text(), "app.py", "exec")


def test_what_a_space_cannot_read_is_refused_in_a_sentence(tmp_path, capsys):
    assert cli.main(["space", "me/x", "--dry-run", str(tmp_path / "new"), "--model", str(tmp_path)]) == 2
    assert "where a Space cannot read: push it, and name its id" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert cli.main(["space", "me/x", "--dry-run", str(tmp_path)]) == 2
    assert "is not empty: name a new folder" in capsys.readouterr().err


@pytest.mark.slow
def test_it_is_pushed_as_a_space(tmp_path):
    with Hub() as hub:
        env = {**os.environ, **hub.env(tmp_path / "cache"), "HF_HUB_OFFLINE": "0"}
        command = [sys.executable, "-m", "hf_spanner.cli", "space", "me/nested", "--private"]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0 and "Pushed to me/nested" in done.stdout, done.stderr
        files = hub.repo("me/nested", "space").files()
        assert {"README.md", "app.py", "requirements.txt", "hf_spanner/modeling/decoding.py"} <= set(files)
