"""dbt's semantic manifest (`target/semantic_manifest.json`): models, measures and metrics, read as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from almanaq.errors import SourceError
from almanaq.suql.catalog.terms import Join, Term, Terms, find_line

_AGGREGATES = {"sum": "SUM", "min": "MIN", "max": "MAX", "average": "AVG", "count": "COUNT", "median": "MEDIAN"}
_CALL = re.compile(r"\{\{\s*(Dimension|TimeDimension|Entity)\(\s*'([^']*)'(?:\s*,\s*'([^']*)')?\s*\)\s*\}\}")
_JOINED = "__"
Entry = dict[str, Any]


class _NotCarried(Exception):
    pass


def parse_terms(text: str, name: str) -> Terms:
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
