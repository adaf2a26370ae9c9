"""What is released: the wheel and the sdist, what lies in them, their sizes, and that a bare environment runs them.

It needs the package index, so its name keeps it out of the normal suite. Part of `make nightly`:

    python -m pytest tests/install/distribution.py --allow-hosts=*
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
MOST_BYTES = 8_000_000
IMPORT_SECONDS = 0.3
KINDS = {
    ".py",
    ".jinja",
    ".md",
    ".toml",
    ".json",
    ".jsonl",
    ".npz",
    ".parquet",
    ".typed",
    ".html",
    ".js",
    ".css",
    ".svg",
}
IMPORT = "import time; t = time.perf_counter(); import almanaq; print(time.perf_counter() - t)"


def said(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd="/", timeout=900, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel, made from the sdist, and an environment with what checks them."""
    folder = tmp_path_factory.mktemp("dist")
    said(sys.executable, "-m", "venv", folder / "venv")
    said(folder / "venv" / "bin" / "pip", "install", "--quiet", "build", "twine")
    said(folder / "venv" / "bin" / "python", "-m", "build", "--outdir", folder / "out", ROOT)
    said(folder / "venv" / "bin" / "python", "-m", "build", "--outdir", folder / "bench", ROOT / "bench")
    return folder


@pytest.mark.parametrize("distribution", ["out", "bench"])
def test_both_are_well_formed_and_small(made: Path, distribution: str) -> None:
    files = sorted((made / distribution).iterdir())
    assert [file.suffix for file in files] == [".whl", ".gz"]
    said(made / "venv" / "bin" / "python", "-m", "twine", "check", "--strict", *files)
    sizes = {file.name: file.stat().st_size for file in files}
    print(json.dumps(sizes))
    assert max(sizes.values()) <= MOST_BYTES


@pytest.mark.parametrize(
    ("distribution", "package", "source"),
    [("out", "almanaq", "src/almanaq"), ("bench", "almanaq_bench", "bench/src/almanaq_bench")],
)
def test_the_wheel_holds_the_package_and_nothing_else(made: Path, distribution: str, package: str, source: str) -> None:
    (wheel,) = (made / distribution).glob("*.whl")
    names = [PurePosixPath(name) for name in zipfile.ZipFile(wheel).namelist()]
    assert {name.parts[0].split("-")[0] for name in names} == {package}
    own = [name for name in names if name.parts[0] == package]
    assert {name.suffix for name in own} <= KINDS
    tracked = subprocess.run(
        ["git", "ls-files", source], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert {str(name) for name in own} == {name.removeprefix(source.removesuffix(package)) for name in tracked}
    assert any(name.name == "LICENSE" for name in names)


def test_the_sdist_builds_without_the_checkout(made: Path, tmp_path: Path) -> None:
    (archive,) = (made / "out").glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    assert (folder / "LICENSE").exists()
    assert not [each for each in folder.rglob("*") if each.name in (".venv", ".git", "__pycache__")]


def test_the_benchmark_comes_with_its_own_distribution_alone(made: Path, tmp_path: Path) -> None:
    """`pip install .` has no benchmark and says what brings it; `pip install . ./bench` has its commands and files."""
    (wheel,), (bench,) = (list((made / distribution).glob("*.whl")) for distribution in ("out", "bench"))
    said(sys.executable, "-m", "venv", tmp_path / "venv")
    programs = tmp_path / "venv" / "bin"
    said(programs / "python", "-m", "pip", "install", "--quiet", wheel)
    asked = [programs / "almanaq", "bench", "list", "--json"]
    without = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert (without.returncode, without.stdout) == (1, "")
    assert "pip install ./bench" in without.stderr
    said(programs / "python", "-m", "pip", "install", "--quiet", wheel, bench)
    assert "target-bm25" in {each["name"] for each in json.loads(said(*asked))["retrievers"]}
    prompts = "from almanaq_bench.prompts import SCHEMAS, bench_prompt_version as v; print(*map(v, SCHEMAS))"
    assert len(said(programs / "python", "-c", prompts).split()) == 9
    assert said(programs / "python", "-c", "from almanaq.benchmark import TARGET; print(TARGET)")


def interpreter(version: str) -> str | None:
    """Return a Python of a version: on the path, or of pyenv or uv; None where there is none."""
    homes = (Path.home() / ".pyenv" / "versions", Path.home() / ".local" / "share" / "uv" / "python")
    managed = [str(found) for home in homes for found in sorted(home.glob(f"*{version}*/bin/python{version}"))]
    for found in (sys.executable, shutil.which(f"python{version}"), *managed):
        asked = [found, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        if found and subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() == version:
            return found
    return None


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_it_runs_where_nothing_else_is(made: Path, version: str, tmp_path: Path) -> None:
    """As `uvx almanaq` and `pipx` do: an environment of the wheel alone, on each Python that is here."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"Python {version} is not here")
    (wheel,) = (made / "out").glob("*.whl")
    said(found, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    said(python, "-m", "pip", "install", "--quiet", wheel)
    said(python, "-c", "import almanaq")
    seconds = min(float(said(python, "-c", IMPORT)) for _ in range(5))
    print(json.dumps({"Python": version, "import in s": round(seconds, 3)}))
    (tmp_path / "stays.csv").write_text("id,notes\n1,Silent at night.\n2,A tram passes all night.\n")
    query = "SELECT id FROM stays WHERE answer(notes, 'is it silent at night?') = 'Yes'"
    asked = ["sql", query, "--db", tmp_path / "stays.csv", "--format", "json"]
    assert json.loads(said(tmp_path / "venv" / "bin" / "almanaq", *asked))["rows"] == [[1]]
    assert said(tmp_path / "venv" / "bin" / "almanaq", "--version").startswith("almanaq ")
    found = json.loads(said(tmp_path / "venv" / "bin" / "almanaq", "doctor", "--json"))
    assert not found["extras"]["mcp"]["installed"]
    assert seconds < IMPORT_SECONDS


@pytest.mark.parametrize("tool", ["uvx", "pipx"])
def test_tools_that_run_programs_run_it(made: Path, tool: str, tmp_path: Path) -> None:
    (wheel,) = (made / "out").glob("*.whl")
    said(sys.executable, "-m", "venv", tmp_path / "venv")
    said(tmp_path / "venv" / "bin" / "pip", "install", "--quiet", "uv" if tool == "uvx" else "pipx")
    started = time.perf_counter()
    way = ["--from", wheel, "almanaq"] if tool == "uvx" else ["run", "--spec", wheel, "almanaq"]
    assert said(tmp_path / "venv" / "bin" / tool, *way, "--version").startswith("almanaq ")
    print(json.dumps({tool: round(time.perf_counter() - started, 1)}))
