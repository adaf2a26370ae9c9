"""The gallery of notebooks, run from the wheel in an environment of its own, offline; marimo beside it.

It needs the package index, so its name keeps it out of the normal suite. Part of `make nightly`:

    python -m pytest tests/install/notebooks_from_wheel.py --allow-hosts=*
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
OFFLINE = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
"""Whatever asks another host for something fails: nothing listens there. The kernel's own sockets need no proxy."""
RUN = """
import json, sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.validate(notebook)
outputs = [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]
html = [o["data"]["text/html"] for o in outputs if "text/html" in o.get("data", {})]
errors = [o["evalue"] for o in outputs if o.output_type == "error"]
plain = sum("text/plain" in o.get("data", {}) for o in outputs)
print(json.dumps({"html": html, "errors": errors, "plain": plain}))
"""
MARIMO = """
import marimo
app = marimo.App()

@app.cell
def _():
    import almanaq
    con = almanaq.connect("sample:restaurants")
    found = con.sql("SELECT name, '<script>alert(1)</script>' AS hostile FROM restaurants ORDER BY id LIMIT 3")
    found
    return con, found

@app.cell
def _(con):
    con.ask("Which Italian restaurants in Palo Alto are romantic?")
    return

if __name__ == "__main__":
    app.run()
"""


class Page(HTMLParser):
    """Reads HTML, and notes what would run, or be fetched from anywhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.odd: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        odd = [name for name, _ in attrs if name in ("src", "href", "srcset") or name.startswith("on")]
        if odd or tag in ("script", "iframe", "img", "link", "object", "embed", "svg", "base", "meta"):
            self.odd.append(f"<{tag} {odd}>")
        self.odd += [value for _, value in attrs if value and _fetches(value)]

    def handle_data(self, data: str) -> None:
        # The style of a DataFrame is pandas' own.
        if self.lasttag == "style" and _fetches(data):
            self.odd.append(data)


def _fetches(style: str) -> bool:
    return "url(" in style or "@import" in style or "javascript:" in style


def said(*command: str | Path, cwd: Path | str = "/", **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ALMANAQ_", "PIP_CONSTRAINT"))}
    done = subprocess.run(
        [*map(str, command)],
        env={**kept, **variables},
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what runs notebooks, and nothing of this checkout."""
    folder = tmp_path_factory.mktemp("notebooks")
    said(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, ROOT / "bench")
    bench, wheel = sorted(folder.glob("*.whl"), key=lambda file: "bench" not in file.name)
    started = time.perf_counter()
    said(sys.executable, "-m", "venv", folder / "venv")
    wanted = [f"{wheel}[notebook,pandas]", str(bench), "nbclient", "ipykernel", "marimo"]
    said(folder / "venv" / "bin" / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", *wanted)
    print(json.dumps({"installed in s": round(time.perf_counter() - started, 1)}))
    return folder / "venv" / "bin" / "python"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_the_wheel_and_shows_itself_offline(python: Path, notebook: Path, tmp_path: Path) -> None:
    started = time.perf_counter()
    # In an empty folder, and with the environment's programs: its kernel is the one that is started.
    place = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "ALMANAQ_CACHE_DIR": str(tmp_path / "cache")}
    found = json.loads(said(python, "-c", RUN, notebook, cwd=tmp_path, **OFFLINE, **place).splitlines()[-1])
    print(json.dumps({"notebook": notebook.stem, "s": round(time.perf_counter() - started, 1)}))
    assert found["errors"] == []
    assert found["plain"]
    for html in found["html"]:
        assert Page(html).odd == []


def test_the_package_is_the_wheel_s(python: Path) -> None:
    place = said(python, "-c", "import almanaq; print(almanaq.__file__)")
    assert str(python.parents[1]) in place


def test_marimo_shows_results_as_jupyter_does(python: Path, tmp_path: Path) -> None:
    """Run without a window, and exported as a page, in which what is hostile is text."""
    file, page = tmp_path / "gallery.py", tmp_path / "page.html"
    file.write_text(MARIMO)
    place = {**OFFLINE, "ALMANAQ_CACHE_DIR": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    said(python, file, cwd=tmp_path, **place)
    said(python, "-m", "marimo", "-q", "export", "html", file, "-o", page, "--no-include-code", cwd=tmp_path, **place)
    written = page.read_text("utf-8")
    assert "almanaq" in written
    assert "details" in written
    assert "<script>alert(1)" not in written
