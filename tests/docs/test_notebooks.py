"""The notebooks run from beginning to end, without a network."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
nbformat = pytest.importorskip("nbformat", reason="needs hf_spanner[docs]")
nbclient = pytest.importorskip("nbclient", reason="needs hf_spanner[docs]")


def test_there_are_notebooks_with_their_outputs():
    assert len(NOTEBOOKS) >= 3
    for path in NOTEBOOKS:
        cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        assert all(cell.execution_count for cell in cells) and any(cell.outputs for cell in cells), path.name
        assert not any(output.output_type == "error" for cell in cells for output in cell.outputs), path.name


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
