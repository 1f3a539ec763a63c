"""The notebooks of examples/notebooks run from a clean kernel, and are kept without outputs."""

import time
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LIMIT_S = 300  # for one cell on a busy machine; each notebook takes a few seconds of processor time


def run(notebook, folder) -> None:
    NotebookClient(notebook, timeout=LIMIT_S, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()


def test_there_are_five():
    assert len(NOTEBOOKS) == 5


@pytest.mark.filterwarnings("default")  # Jupyter's own
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "kept without outputs"
    begun = time.monotonic()
    run(notebook, tmp_path)
    print(f"{path.stem}: {time.monotonic() - begun:.1f} s")
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not [output for output in shown if output.output_type == "error"]
    assert any("image/png" in output.get("data", {}) for output in shown), "a picture is shown"


@pytest.mark.filterwarnings("default")
def test_a_notebook_that_fails_is_seen(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import ahead_ldp\nahead_ldp.simulate()")])
    with pytest.raises(CellExecutionError, match="expected"):
        run(notebook, tmp_path)
