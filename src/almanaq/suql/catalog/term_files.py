"""Files of terms: where those of a source lie, and which reader reads one."""

from __future__ import annotations

from pathlib import Path

from almanaq.errors import SourceError
from almanaq.suql.catalog import dbt_manifest, osi
from almanaq.suql.catalog.terms import Terms

ENDINGS = (".terms.yaml", ".terms.yml", ".terms.json")


def find_terms(source: object) -> Path | None:
    """Return the file of terms beside a source: SOURCE.terms.yaml, or the manifest of the dbt project around a file."""
    if not isinstance(source, str | Path) or not (path := Path(source).expanduser()).exists():
        return None
    beside = [path.resolve().parent / f"{path.resolve().name}{ending}" for ending in ENDINGS]
    manifest = [] if path.is_dir() else [path.resolve().parent / "target" / "semantic_manifest.json"]
    return next((each for each in (*beside, *manifest) if each.is_file()), None)


def read_terms(path: str | Path) -> Terms:
    """Return what a file of terms defines: Open Semantic Interchange (YAML) or a dbt semantic manifest (JSON)."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot read the terms {str(path)!r}: {error}") from error
    if path.suffix == ".json" and '"semantic_models"' in text:
        return dbt_manifest.parse_terms(text, path.name)
    return osi.parse_terms(text, path.name)
