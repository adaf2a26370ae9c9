"""Build the documentation site into build/site/html: docs/, the reference made from the code, results; warnings fail.

Sphinx reads a copy of the pages, in which links to files of the repository that are no pages lead to copies of them,
and beside them the pages that are made here. Nothing is fetched: the site and its search work from a folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import figures
import leaderboard
import reference
import sbom

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
SOURCE, HTML = SITE / "source", SITE / "html"

PROJECT = {
    "CONTRIBUTING.md": "CONTRIBUTING",
    "CHANGELOG.md": "CHANGELOG",
    "SECURITY.md": "SECURITY",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT",
    "experiments/README.md": "experiments",
    "contrib/README.md": "contrib",
    "benchmarks/peers/README.md": "peers",
}
"""Pages of the repository that are no part of docs/, and what they are called under project/."""

CONFIGURATION = """
project = "almanaq"
author = "the authors of almanaq"
copyright = "the authors of almanaq"
release = "{release}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "almanaq {release}"
html_show_sphinx = False
myst_heading_anchors = 4
myst_enable_extensions = ["fieldlist"]
exclude_patterns = ["files/**"]
napoleon_google_docstring = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
suppress_warnings = ["misc.highlighting_failure"]
"""

_LINK = re.compile(r"\]\(([^)\s#]+)((?:#[^)]*)?)\)")


def write_source() -> None:
    """Make the folder that Sphinx reads."""
    from almanaq import __version__

    shutil.rmtree(SITE, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    (SOURCE / "conf.py").write_text(CONFIGURATION.format(release=__version__))
    pages = {path: SOURCE / path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    pages |= {ROOT / name: SOURCE / "project" / f"{to}.md" for name, to in PROJECT.items()}
    for page, to in pages.items():
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(_relink_page(page, to, pages), encoding="utf-8")
    with (SOURCE / "decisions" / "README.md").open("a", encoding="utf-8") as index:
        index.write("\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n")
    shutil.copytree(ROOT / "docs" / "images", SOURCE / "images")
    made = {
        **reference.pages(),
        "leaderboard.md": leaderboard.page(),
        "figures.md": figures.page(),
        "licences.md": sbom.page(),
    }
    for name, text in made.items():
        to = SOURCE / "reference" / name
        to.parent.mkdir(exist_ok=True)
        to.write_text(text, encoding="utf-8")


def _relink_page(page: Path, to: Path, pages: dict[Path, Path]) -> str:
    """Return a page whose links lead to the copies; files that are no pages are copied, folders are named only."""

    def relink(match: re.Match[str]) -> str:
        target, anchor = match.groups()
        found = (page.parent / target).resolve()
        if re.match(r"[a-z]+:", target) or not found.exists() or found.is_relative_to(ROOT / "docs" / "images"):
            return match[0]
        if found.is_dir():
            return "]"  # its name in brackets stays
        if found == ROOT / "README.md":
            place, anchor = SOURCE / "index.md", ""
        elif found in pages:
            place = pages[found]
        else:
            place, anchor = SOURCE / "files" / found.relative_to(ROOT), ""
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found, place)
        return f"]({os.path.relpath(place, to.parent)}{anchor})"

    return _LINK.sub(relink, page.read_text(encoding="utf-8"))


def build() -> int:
    """Run Sphinx; give its exit code."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(SOURCE), str(HTML)]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    write_source()
    code = build()
    if not code:
        print(f"the site is in {HTML.relative_to(ROOT)}: open index.html there")
    sys.exit(code)
