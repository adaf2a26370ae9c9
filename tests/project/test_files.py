"""The files around the code: README, licence, packaging, generated parts, what must not be there."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib

import pytest

# Built from parts, so that this file does not find itself.
MACHINE = re.compile("|".join(["/" + "work/", "/" + "root/", "/" + "home/[a-z]", "/opt/" + "pypi", "/opt/" + "wheels"]))


def tracked(root) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


def test_no_file_names_a_machine(root):
    found = {}
    for name in tracked(root):
        try:
            text = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if match := MACHINE.search(text):
            found[name] = match.group()
    assert found == {}


def test_the_licence_is_whole(root):
    text = (root / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_readme_is_short(root):
    assert len((root / "README.md").read_text().splitlines()) <= 120


def test_every_link_between_documents_leads_somewhere(root):
    broken = []
    for page in [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md", *(root / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(root)}: {target}")
    assert broken == []


def test_extras_and_command(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"almanaq": "almanaq.cli:main"}
    # Those of the contract whose code is there; an extra that brings libraries which nothing uses is none.
    built = {
        "documents",
        "fast",
        "ibis",
        "llm",
        "local",
        "torch",
        "postgres",
        "docs",
        "hnsw",
        "notebook",
        "pandas",
        "polars",
        "sqlalchemy",
        "terms",
        "xlsx",
        "test",
    }
    for extra, module in (("spark", "engines/spark/engine.py"), ("web", "web/__init__.py"), ("mcp", "mcp/__init__.py")):
        built |= {extra} if (root / "src" / "almanaq" / module).exists() else set()
    assert set(project["optional-dependencies"]) == built
    core = {re.split(r"[<>=\[ ]", line)[0] for line in project["dependencies"]}
    assert core.isdisjoint({"torch", "sentence-transformers", "ibis-framework", "pyspark", "fastapi", "mcp"})


def test_constraints_pin_what_must_be_pinned(root):
    pins = dict(
        line.split("==") for line in (root / "constraints.txt").read_text().splitlines() if line and line[0] != "#"
    )
    assert pins["torch"] == "2.13.0"
    assert pins["sqlglot"] == "30.17.0"
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["local"]
    named = {re.split(r"[<>=\[ ]", line)[0].lower() for line in wanted}
    assert named - {name.lower() for name in pins} == set()


def test_versions_agree(root):
    import almanaq

    assert tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"] == almanaq.__version__
    assert re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text(), re.MULTILINE).group(1) in (
        "Unreleased",
        almanaq.__version__,
    )


def test_measured_tables_are_those_of_the_results(script):
    assert script("tables").find_drift() == []


def test_help_is_what_the_golden_files_say(script):
    assert script("help").find_drift() == []


def test_lower_layers_import_no_higher_ones(root):
    # In a process of its own: it sets logging up anew, and silences the loggers that are there.
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    checked = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_every_fault_can_be_planted(root):
    faults = runpy.run_path(str(root / "scripts/plant_faults.py"))["FAULTS"]
    files = [file for folder in ("src", "bench/src") for file in (root / folder).rglob("*.py")]
    code = "\0".join(file.read_text("utf-8") for file in files)
    assert [fault.what for fault in faults if code.count(fault.right) != 1] == []
