"""Open Semantic Interchange: semantic models in YAML, read as they are and written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from almanaq.errors import MissingExtraError, SourceError
from almanaq.suql.catalog.definitions import write_definition
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.terms import Join, Term, Terms

_LINE = "__line__"
_NOT_SQL = ("MDX", "TABLEAU")
_ANSI = "ANSI_SQL"


def parse_terms(text: str, name: str) -> Terms:
    """Return what a file of semantic models defines; raises SourceError with the line at fault."""
    yaml = _yaml()

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            return {**super().construct_mapping(node, deep=deep), _LINE: node.start_mark.line + 1}

    try:
        document = yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        raise SourceError(f"{name} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict) or "semantic_model" not in document:
        raise SourceError(f"{name} is no semantic model: it has no `semantic_model`")
    models = document["semantic_model"]
    try:
        return _read_models(models if isinstance(models, list) else [models], name)
    except (KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"{name} is no semantic model as OSI has it: {error!r}") from error


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError("PyYAML", "terms", "a file of terms in YAML") from error
    return yaml


def _read_models(models: list[dict[str, Any]], name: str) -> Terms:
    tables: dict[str, str] = {}
    terms: list[Term] = []
    joins: list[Join] = []
    left_out: list[str] = []
    for model in models:
        for dataset in model["datasets"]:
            tables[dataset["name"]] = dataset["source"]
            for field in dataset.get("fields") or ():
                terms += _read_term("dimension", field, dataset["name"], name, left_out)
        for metric in model.get("metrics") or ():
            known = list(tables)
            terms += _read_term("metric", metric, known[0], name, left_out, known)
        for each in model.get("relationships") or ():
            joins.append((each["from"], tuple(each["from_columns"]), each["to"], tuple(each["to_columns"])))
    return Terms(tuple(terms), tuple(joins), tables, tuple(left_out))


def _read_term(
    kind: Any, entry: dict[str, Any], relation: str, name: str, left_out: list[str], known: list[str] | None = None
) -> Iterator[Term]:
    place = f"{name}, line {entry[_LINE]}"
    given = entry["expression"]
    written = {e["dialect"]: e["expression"] for e in (given["dialects"] if isinstance(given, dict) else given)}
    sql = written.get(_ANSI) or next((sql for dialect, sql in written.items() if dialect not in _NOT_SQL), None)
    if sql is None:
        left_out.append(
            f"{place}: the {kind} {entry['name']!r} is left out: it is written in {', '.join(written)} only"
        )
        return
    named = [(sql.find(f"{each}."), each) for each in known or () if f"{each}." in sql]
    context = entry.get("ai_context")
    synonyms = context.get("synonyms") or () if isinstance(context, dict) else ()
    relation = min(named)[1] if named else relation
    description = entry.get("description") or ""
    yield Term(kind, entry["name"], relation, sql, description, tuple(map(str, synonyms)), place=place)


def write_osi(catalog: Catalog, name: str) -> str:
    """Return a catalog with its terms as a semantic model; filters, which the format lacks, are named in a comment.

    Units and default filters are written into descriptions and expressions.
    """

    def entry(term: Term) -> dict[str, Any]:
        sql = write_definition(term, catalog).sql(catalog.dialect, normalize_functions=False)
        description = f"{term.description} ({term.unit})".strip() if term.unit else term.description
        return _field(term.name, sql, description, term.synonyms)

    datasets = []
    for relation in catalog.relations:
        plain = {
            term.name: term for term in catalog.terms if (term.kind, term.relation) == ("dimension", relation.name)
        }
        fields = [_field(c.name, c.name, c.description) for c in relation.columns if c.name not in plain]
        datasets.append(
            {
                "name": relation.name,
                "source": ".".join(relation.location),
                **({"primary_key": list(relation.key)} if relation.key else {}),
                **({"description": relation.description} if relation.description else {}),
                "fields": [*fields, *(entry(term) for term in plain.values())],
            }
        )
    joins = [
        {"name": f"{r.name}_to_{to}", "from": r.name, "to": to, "from_columns": list(own), "to_columns": list(theirs)}
        for r in catalog.relations
        for own, to, theirs in r.foreign_keys
    ]
    metrics = [entry(term) for term in catalog.terms if term.kind == "metric"]
    model = {"name": name, "datasets": datasets, "relationships": joins, "metrics": metrics}
    filters = [term.name for term in catalog.terms if term.kind == "filter"]
    head = f"# Not in the format, and left out: the filters {', '.join(filters)}\n" if filters else ""
    written: str = _yaml().safe_dump({"semantic_model": [model]}, sort_keys=False, allow_unicode=True)
    return head + written


def _field(name: str, sql: str, description: str, synonyms: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "name": name,
        "expression": {"dialects": [{"dialect": _ANSI, "expression": sql}]},
        **({"description": description} if description else {}),
        **({"ai_context": {"synonyms": list(synonyms)}} if synonyms else {}),
    }
