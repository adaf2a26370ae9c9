"""Write constraints.txt anew: the newest versions that go together, as pip resolves them for `almanaq[local,llm,test]`
and almanaq-bench.

Nothing is installed. Versions that must stay are in KEPT, with the reason. `--check` resolves nothing: it says which
requirements of the two pyproject.toml the pins that are there do not fulfil (exit 1).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "bench"
FILE = ROOT / "constraints.txt"
OWN = ("almanaq", "almanaq-bench")
KEPT = {
    "torch": "a newer one pulls in CUDA packages",
    "sqlglot": "ibis 12 breaks above 30.17",
}


def pins() -> dict[str, str]:
    """Return the pinned versions by normalised name."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    named = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {normalize_name(name): version for name, version in named}


def normalize_name(name: str) -> str:
    """Return a package's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def find_unfulfilled() -> list[str]:
    """Name the requirements that no pin stands for, or whose pin they exclude."""
    have, off = pins(), []
    for line in (*_requirements(ROOT, "local", "llm", "test"), *_requirements(BENCH, "text-metrics")):
        asked = Requirement(line)
        version = have.get(normalize_name(asked.name))
        if version is None:
            off.append(f"{asked.name} is not pinned")
        elif not asked.specifier.contains(version.split("+")[0], prereleases=True):
            off.append(f"{line} excludes the pin {version}")
    return sorted(set(off))


def resolve() -> dict[str, str]:
    """Have pip resolve what development installs; give the versions by name as the packages spell it."""
    have = pins()
    with tempfile.TemporaryDirectory() as folder:
        report, kept = Path(folder, "report.json"), Path(folder, "kept.txt")
        kept.write_text("".join(f"{name}=={have[name]}\n" for name in KEPT))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--constraint", str(kept), "--report", str(report)]
        command += [f"{ROOT}[local,llm,test]", f"{BENCH}[text-metrics]"]
        subprocess.run(command, check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    named = {each["metadata"]["name"]: each["metadata"]["version"].split("+")[0] for each in found}
    return {name: version for name, version in named.items() if name not in (*OWN, "pip", "setuptools", "wheel")}


def main() -> int:
    """Write the file, and say what changed; or check the one that is there."""
    if "--check" in sys.argv[1:]:
        for line in find_unfulfilled():
            print(line)
        return int(bool(find_unfulfilled()))
    before, made = pins(), resolve()
    head = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    # What is installed beside what pip resolves, as the weights, keeps its pin.
    beside = {name: version for name, version in before.items() if name not in map(normalize_name, made)}
    lines = sorted((f"{name}=={version}" for name, version in (made | beside).items()), key=str.lower)
    FILE.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")
    for name, version in sorted(made.items()):
        if before.get(normalize_name(name)) != version:
            print(f"{name}: {before.get(normalize_name(name), 'new')} -> {version}")
    return 0


def _requirements(folder: Path, *names: str) -> list[str]:
    """Return what a distribution of ours and some of its extras require, other than each other."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [line for line in project["dependencies"] if Requirement(line).name not in OWN]
    return [*needed, *(line for name in names for line in _flat(project["optional-dependencies"], name))]


def _flat(extras: dict[str, list[str]], name: str) -> list[str]:
    """Return an extra's requirements, those of extras that it names among them."""
    found = []
    for line in extras[name]:
        asked = Requirement(line)
        found += (
            [each for extra in asked.extras for each in _flat(extras, extra)] if asked.name == "almanaq" else [line]
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
