"""Files of terms: Open Semantic Interchange in YAML, and dbt's semantic manifest (`target/semantic_manifest.json`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from almanaq.errors import MissingExtraError, SourceError
from almanaq.suql.catalog.definitions import write_definition
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.terms import Join, Term, Terms, find_line

_LINE = "__line__"
_NOT_SQL = ("MDX", "TABLEAU")
_ANSI = "ANSI_SQL"


def parse_osi(text: str, name: str) -> Terms:
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


_AGGREGATES = {"sum": "SUM", "min": "MIN", "max": "MAX", "average": "AVG", "count": "COUNT", "median": "MEDIAN"}
_CALL = re.compile(r"\{\{\s*(Dimension|TimeDimension|Entity)\(\s*'([^']*)'(?:\s*,\s*'([^']*)')?\s*\)\s*\}\}")
_JOINED = "__"
Entry = dict[str, Any]


class _NotCarried(Exception):
    pass


def parse_dbt(text: str, name: str) -> Terms:
    """Return what a manifest defines; metrics that accumulate, convert or compare periods are named as left out."""
    try:
        manifest = json.loads(text)
        return _Manifest(manifest, text, name).read()
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"{name} is no semantic manifest of dbt: {error!r}") from error


class _Manifest:
    def __init__(self, manifest: Entry, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._models: list[Entry] = manifest["semantic_models"]
        self._metrics: dict[str, Entry] = {metric["name"]: metric for metric in manifest["metrics"]}
        self._measures = {m["name"]: (m, model) for model in self._models for m in model.get("measures") or ()}

    def read(self) -> Terms:
        terms, left_out = [], []
        for model in self._models:
            for dimension in model.get("dimensions") or ():
                grain = (dimension.get("type_params") or {}).get("time_granularity") or ""
                sql = dimension.get("expr") or dimension["name"]
                terms.append(self._term("dimension", dimension, model["name"], sql, grain))
        for metric in self._metrics.values():
            try:
                sql, relation = self._metric(metric)
                terms.append(self._term("metric", metric, relation, sql))
            except _NotCarried as why:
                left_out.append(f"{self._place(metric)}: the metric {metric['name']!r} is left out: {why}")
        tables = {model["name"]: model["node_relation"]["relation_name"] or model["node_relation"]["alias"]
                  for model in self._models}  # fmt: skip
        return Terms(tuple(terms), tuple(self._joins()), tables, tuple(left_out))

    def _place(self, entry: Entry) -> str:
        return find_line(self._text, rf'"name":\s*{re.escape(json.dumps(entry["name"]))}', self._name)

    def _term(self, kind: Any, entry: Entry, relation: str, sql: str, grain: str = "") -> Term:
        label = entry.get("label")
        synonyms = (label,) if label and label != entry["name"] else ()
        description = (entry.get("description") or "").strip()
        return Term(kind, entry["name"], relation, sql, description, synonyms, grain=grain, place=self._place(entry))

    def _joins(self) -> Iterable[Join]:
        """Yield what foreign entities refer to: the model whose primary or unique entity has the same name."""
        keys = {
            entity["name"]: (model["name"], entity.get("expr") or entity["name"])
            for model in self._models
            for entity in model.get("entities") or ()
            if entity["type"] in ("primary", "unique")
        }
        for model in self._models:
            for entity in model.get("entities") or ():
                if entity["type"] == "foreign" and entity["name"] in keys:
                    to, column = keys[entity["name"]]
                    yield model["name"], (entity.get("expr") or entity["name"],), to, (column,)

    def _metric(self, metric: Entry) -> tuple[str, str]:
        given = metric["type_params"]
        if metric["type"] == "simple" and given.get("metric_aggregation_params"):
            own = given["metric_aggregation_params"]
            model = next(m for m in self._models if m["name"] == own["semantic_model"])
            made = self._aggregate({**own, "name": metric["name"], "expr": given.get("expr")}), model["name"]
        elif metric["type"] == "simple":
            measure, model = self._measures[given["measure"]["name"]]
            made = self._narrow(self._aggregate(measure), given["measure"], model), model["name"]
        elif metric["type"] == "ratio":
            (over, relation), (under, other) = (self._input(given[each]) for each in ("numerator", "denominator"))
            made = f"CAST({over} AS DOUBLE PRECISION) / NULLIF({under}, 0)", _one(relation, other)
        elif metric["type"] == "derived":
            inputs = {i.get("alias") or i["name"]: self._input(i) for i in given["metrics"]}
            names = "|".join(sorted(map(re.escape, inputs), key=len, reverse=True))
            sql = re.sub(rf"\b({names})\b", lambda found: f"({inputs[found[1]][0]})", given["expr"])
            made = sql, _one(*(relation for _, relation in inputs.values()))
        else:
            raise _NotCarried(f"metrics of the type {metric['type']} have no single expression")
        model = next(m for m in self._models if m["name"] == made[1])
        return self._narrow(made[0], metric, model), made[1]

    def _input(self, given: Entry) -> tuple[str, str]:
        if given.get("offset_window") or given.get("offset_to_grain"):
            raise _NotCarried("it compares with another period")
        sql, relation = self._metric(self._metrics[given["name"]])
        return self._narrow(sql, given, next(m for m in self._models if m["name"] == relation)), relation

    def _aggregate(self, measure: Entry) -> str:
        sql, agg = measure.get("expr") or measure["name"], measure["agg"]
        if measure.get("non_additive_dimension"):
            raise _NotCarried("its measure is not additive over a dimension")
        if agg == "count_distinct":
            return f"COUNT(DISTINCT {sql})"
        if agg == "sum_boolean":
            return f"SUM(CASE WHEN {sql} THEN 1 ELSE 0 END)"
        if agg not in _AGGREGATES:
            raise _NotCarried(f"the aggregation {agg} is not known")
        return f"{_AGGREGATES[agg]}({sql})"

    def _narrow(self, sql: str, given: Mapping[str, Any], model: Entry) -> str:
        filters = (given.get("filter") or {}).get("where_filters") or ()
        parts = [f"({self._condition(each['where_sql_template'], model)})" for each in filters]
        if not parts:
            return sql
        if not re.fullmatch(r"[A-Z]+\([^()]*\)", sql):
            raise _NotCarried("a filter on a metric of several aggregates")
        return f"{sql} FILTER (WHERE {' AND '.join(parts)})"

    def _condition(self, template: str, model: Entry) -> str:
        sql = _CALL.sub(lambda found: self._referred(found, model), template)
        if "{{" in sql:
            raise _NotCarried(f"its filter has {sql[sql.index('{{') :][:60]!r}")
        return sql

    def _referred(self, found: re.Match[str], model: Entry) -> str:
        """Return the SQL that a reference in a filter stands for: `customer__region` is of the model of customers."""
        *path, name = found[2].split(_JOINED)
        keyed = [m for m in self._models for e in m.get("entities") or ()
                 if path and e["name"] == path[-1] and e["type"] in ("primary", "unique")]  # fmt: skip
        own = keyed[0] if keyed else model
        kind = "entities" if found[1] == "Entity" else "dimensions"
        entry = next((e for e in own.get(kind) or () if e["name"] == name), None)
        if entry is None:
            raise _NotCarried(f"its filter names {found[2]!r}, which no model has")
        sql = entry.get("expr") or name
        if own is not model and not re.fullmatch(r"\w+", sql):
            raise _NotCarried(f"its filter names {found[2]!r}, which another model computes")
        sql = f"{own['name']}.{sql}" if re.fullmatch(r"\w+", sql) else f"({sql})"
        return f"date_trunc('{found[3].lower()}', {sql})" if found[3] else sql


def _one(*relations: str) -> str:
    if len(set(relations)) > 1:
        raise _NotCarried(f"it puts together metrics of {' and '.join(sorted(set(relations)))}")
    return relations[0]


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
        why = error.strerror if isinstance(error, OSError) else error
        raise SourceError(f"cannot read the terms {str(path)!r}: {why}") from error
    if path.suffix == ".json" and '"semantic_models"' in text:
        return parse_dbt(text, path.name)
    return parse_osi(text, path.name)
