"""The notebooks under docs/notebooks: they run from top to bottom, hold no outputs, and show what they promise."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
WORDS = {
    "restaurants": ["Salvia e Burro", "<details><summary>SUQL</summary>", "answer(reviews, 'is it quiet?') = 'Yes'"],
    "own_csv": ["repairs: 4 rows, 4 columns", "free_text", "Oslo", "The seal was leaking"],
    "benchmark": ["'bm25': 1.0", "peaks"],
}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert [cell.outputs for cell in notebook.cells if cell.cell_type == "code" and cell.outputs] == []
    assert path.stat().st_size < 20_000


@pytest.mark.nightly
@pytest.mark.slow
def test_they_run_one_after_another_in_a_kernel(tmp_path, monkeypatch):
    """In one kernel, which takes seconds to start; each begins without the names of the one before."""
    from nbclient import NotebookClient

    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "cache"))
    whole = nbformat.v4.new_notebook()
    places = {}
    for path in NOTEBOOKS:
        places[path.stem] = len(whole.cells)
        whole.cells += nbformat.read(path, as_version=4).cells
        whole.cells.append(nbformat.v4.new_code_cell("%reset -f"))
    NotebookClient(whole, timeout=120, kernel_name="python3").execute(cwd=str(tmp_path))
    starts = [*places.values(), len(whole.cells)]
    for name, start, end in zip(places, starts, starts[1:], strict=False):
        outputs = "\n".join(str(cell.get("outputs", "")) for cell in whole.cells[start:end])
        for word in WORDS[name]:
            assert word in outputs.replace("\\'", "'").replace("&#x27;", "'"), name
        assert "<script" not in outputs
        shown = [o.data for cell in whole.cells[start:end] for o in cell.get("outputs", []) if "data" in o]
        rich = [data for data in shown if data.get("text/html")]  # progress has ended empty
        assert rich or name == "benchmark"
        for data in rich:  # VS Code, a terminal and a diff show the plain twin where they do not show HTML
            assert data.get("text/plain", "").strip()
            assert " object at 0x" not in data["text/plain"]
