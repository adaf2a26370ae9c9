"""Write a software bill of materials (CycloneDX 1.6, JSON) of what almanaq installs, with the licence of each package.

    python scripts/sbom.py [--out FILE] [EXTRA …]

What this environment has installed for almanaq, almanaq-bench and the extras named (by default those for users) is
told. `licences()` is the same as a page of the site.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement

FOR_USERS = (
    "local",
    "web",
    "mcp",
    "postgres",
    "pandas",
    "polars",
    "xlsx",
    "hnsw",
    "ibis",
    "spark",
    "notebook",
)
UNKNOWN = "not told"

_SPELT = {
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "MIT": "MIT",
    "BSD License": "BSD-3-Clause",
    "Python Software Foundation License": "PSF-2.0",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "The Unlicense (Unlicense)": "Unlicense",
}


def packages(extras: tuple[str, ...] = FOR_USERS) -> dict[str, Distribution]:
    """Return what is installed for almanaq and these extras, by name, dependencies of dependencies among them."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [("almanaq-bench", ""), *(("almanaq", extra) for extra in ("", *extras))]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # of an extra that is not installed here, or of another system
        found[_normalize_name(name)] = package
        for asked in _list_requirements(package, extra):
            waiting += [(_normalize_name(asked.name), each) for each in ("", *asked.extras)]
    for own in ("almanaq", "almanaq-bench"):
        found.pop(own, None)
    return dict(sorted(found.items()))


def licence_of(package: Distribution) -> str:
    """Return a package's licence: the expression that it declares, else its classifier, else its first line of text."""
    told = package.metadata
    if expression := told.get("License-Expression"):
        return str(expression)
    classified = [line.split(" :: ")[-1] for line in told.get_all("Classifier") or [] if line.startswith("License ::")]
    named = [each for each in classified if each != "OSI Approved"]
    if named:
        return " AND ".join(_SPELT.get(each, each) for each in named)
    text = str(told.get("License") or "").strip().splitlines()
    return _SPELT.get(text[0], text[0])[:60] if text else UNKNOWN


def bill(extras: tuple[str, ...] = FOR_USERS) -> dict[str, Any]:
    """Return the bill of materials."""
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{package.version}",
            "name": name,
            "version": package.version,
            "purl": f"pkg:pypi/{name}@{package.version}",
            "licenses": [{"license": {"name": licence_of(package)}}],
        }
        for name, package in packages(extras).items()
    ]
    own = distribution("almanaq")
    subject = {
        "type": "application",
        "bom-ref": f"pkg:pypi/almanaq@{own.version}",
        "name": "almanaq",
        "version": own.version,
        "licenses": [{"expression": "Apache-2.0"}],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
    }


def page() -> str:
    """Return the licences as a page."""
    text = (
        "# Licences of dependencies\n\nWhat `almanaq`, its extras and `almanaq-bench` install, with the versions that "
        "this site was built with. `make sbom` writes the same as a bill of materials (CycloneDX).\n\n"
        "| package | version | licence |\n| --- | --- | --- |\n"
    )
    for name, package in packages().items():
        text += f"| {name} | {package.version} | {licence_of(package).replace('|', '/')} |\n"
    return text


def _list_requirements(package: Distribution, extra: str) -> Iterator[Requirement]:
    environment = {**default_environment(), "extra": extra}
    for line in package.requires or []:
        asked = Requirement(line)
        if asked.marker is None or asked.marker.evaluate(environment):
            yield asked


def _normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", default=list(FOR_USERS), metavar="EXTRA")
    parser.add_argument("--out", type=Path, default=Path("build/sbom.json"))
    told = parser.parse_args()
    made = bill(tuple(told.extras))
    told.out.parent.mkdir(parents=True, exist_ok=True)
    told.out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    print(f"{told.out}: {len(made['components'])} packages")


if __name__ == "__main__":
    main()
