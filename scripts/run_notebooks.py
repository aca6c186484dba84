"""Run the notebooks and keep what they show: python scripts/run_notebooks.py"""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

for path in sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb")):
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    nbformat.write(notebook, path)
    print(path.name)
