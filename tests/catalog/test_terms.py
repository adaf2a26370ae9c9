"""Terms: read from three formats, checked, written out in queries, and named in replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import almanaq
from almanaq.agent.terms import write_terms
from almanaq.cli.app import app
from almanaq.errors import SourceError
from almanaq.suql.catalog.term_files import read_terms

ORDERS = """id,customer,price,quantity,status,day
1,1,10,2,paid,2024-01-05
2,1,20,1,lost,2024-01-20
3,2,5,10,paid,2024-02-11
"""
CUSTOMERS = "id,name,country,visits\n1,Ann,Norway,9\n2,Bo,Chile,1\n"
SCHEMA = """
[orders]
foreign_keys = [{columns = ["customer"], table = "customers", references = ["id"]}]
[orders.metrics]
revenue = {expression = "sum(price * quantity)", unit = "EUR", synonyms = ["turnover"], filter = "status <> 'lost'"}
basket = "revenue / count(*)"
"were lost" = {expression = "100.0 * count(*) FILTER (WHERE status = 'lost') / count(*)", unit = "%"}
[orders.dimensions]
"order month" = {expression = "day", grain = "month"}
[customers.filters]
"active customers" = "visits > 3"
"""
OSI = """
semantic_model:
  - name: shop
    datasets:
      - name: sales
        source: prod.public.orders
        fields:
          - {name: net, expression: {dialects: [{dialect: ANSI_SQL, expression: price * quantity}]}}
          - name: status
            expression: {dialects: [{dialect: ANSI_SQL, expression: status}]}
            ai_context: {synonyms: [state]}
      - {name: people, source: prod.public.customers}
      - {name: lost, source: prod.public.parcels}
    relationships:
      - {name: of, from: sales, to: people, from_columns: [customer], to_columns: [id]}
    metrics:
      - name: revenue
        expression: {dialects: [{dialect: ANSI_SQL, expression: SUM(sales.net)}]}
        ai_context: {synonyms: [turnover]}
      - name: per_head
        expression: [{dialect: ANSI_SQL, expression: SUM(sales.net) / COUNT(DISTINCT people.id)}]
      - {name: cube, expression: {dialects: [{dialect: MDX, expression: "[Measures]"}]}}
"""
ENTITY = {"type": "primary", "expr": "id"}
DBT: dict[str, Any] = {
    "semantic_models": [
        {
            "name": "sales",
            "node_relation": {"alias": "orders", "relation_name": '"prod"."public"."orders"'},
            "entities": [{"name": "order", **ENTITY}, {"name": "person", "type": "foreign", "expr": "customer"}],
            "dimensions": [{"name": "state", "type": "categorical", "expr": "status"}],
            "measures": [
                {"name": "amount", "agg": "sum", "expr": "price * quantity"},
                {"name": "order_count", "agg": "count", "expr": "id"},
            ],
        },
        {
            "name": "people",
            "node_relation": {"alias": "customers", "relation_name": "prod.public.customers"},
            "entities": [{"name": "person", **ENTITY}],
            "dimensions": [],
            "measures": [],
        },
    ],
    "metrics": [
        {
            "name": "revenue",
            "label": "Turnover (EUR)",
            "type": "simple",
            "type_params": {"measure": {"name": "amount"}},
            "filter": {"where_filters": [{"where_sql_template": "{{ Dimension('order__state') }} <> 'lost'"}]},
        },
        {"name": "number", "type": "simple", "type_params": {"measure": {"name": "order_count"}}},
        {
            "name": "basket",
            "type": "ratio",
            "type_params": {"numerator": {"name": "revenue"}, "denominator": {"name": "number"}},
        },
        {"name": "so_far", "type": "cumulative", "type_params": {"measure": {"name": "amount"}}},
    ],
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "orders.csv").write_text(ORDERS)
    (folder / "customers.csv").write_text(CUSTOMERS)
    return folder


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("What is the total revenue?", {(70,)}),
        ("turnover by country", {("Norway", 20), ("Chile", 50)}),
        ("Which country has the highest revenue?", {("Chile", 50)}),
        ("What is the revenue of active customers?", {(20,)}),
        ("How many active customers are there?", {(1,)}),
        ("How much revenue in February 2024?", {(50,)}),
        ("What is the revenue in EUR?", {(70,)}),
        ("turnover in euros by country", {("Norway", 20), ("Chile", 50)}),
        ("What percentage of the orders of Ann were lost?", {(50,)}),
    ],
)
def test_terms_are_linked_and_written_out(shop: Path, question: str, rows: set[tuple[Any, ...]]) -> None:
    Path(f"{shop}.almanaq.toml").write_text(SCHEMA)
    with almanaq.connect(shop) as con:
        reply = con.ask(question)
    assert set(reply.rows) == rows
    assert "shop.almanaq.toml, line" in reply.answer
    assert any(part in reply.answer.lower() for part in ("sum(price", "visits > 3", "'lost'"))


def test_a_join_leads_to_the_table_of_its_own_folder(shop: Path) -> None:
    (shop / "old").mkdir()
    (shop / "old" / "customers.csv").write_text("id,name\n1,Ann\n")
    Path(f"{shop}.almanaq.toml").write_text(SCHEMA.partition("[customers.filters]")[0])
    with almanaq.connect(shop) as con:
        assert set(con.ask("turnover by country").rows) == {("Norway", 20), ("Chile", 50)}


def test_a_metric_in_another_unit_is_offered_and_not_answered(shop: Path) -> None:
    Path(f"{shop}.almanaq.toml").write_text(SCHEMA)
    with almanaq.connect(shop) as con:
        assert con.ask("What is the revenue in USD?").status == "clarify"


@pytest.mark.parametrize("file", ["osi", "dbt"])
def test_semantic_layers_are_found_beside_the_source_and_read(shop: Path, file: str) -> None:
    text, ending = (OSI, "yaml") if file == "osi" else (json.dumps(DBT), "json")
    Path(f"{shop}.terms.{ending}").write_text(text)
    with almanaq.connect(shop) as con:
        revenue = 90 if file == "osi" else 70
        assert con.ask("What is the turnover?").rows == ((revenue,),)
        assert con.catalog.relation("orders").foreign_keys == ((("customer",), "customers", ("id",)),)
        ratio = con.ask("What is the per head?" if file == "osi" else "What is the basket?")
        assert ratio.rows[0][0] == pytest.approx(45 if file == "osi" else 70 / 3)
        left_out = " ".join(con.warnings)
        assert ("'cube'" in left_out) if file == "osi" else ("'so_far'" in left_out)


PAID = "{{ Dimension('order__state') }} = 'paid'"


def metric(kind: str, where: str = "", **given: Any) -> dict[str, Any]:
    filters = {"where_filters": [{"where_sql_template": where}]} if where else None
    return {"type": kind, "type_params": given, "filter": filters}


def aggregate(agg: str, expr: str, where: str = "", model: str = "sales", **more: Any) -> dict[str, Any]:
    of = {"agg": agg, "semantic_model": model, **more}
    return metric("simple", where, expr=expr, metric_aggregation_params=of)


def test_metrics_of_dbt_have_the_figures_of_their_definitions_or_are_left_out_with_a_reason(tmp_path: Path) -> None:
    number = {"name": "number", "alias": "n"}
    carried = {
        "people": (aggregate("count_distinct", "customer"), 2),
        "lost": (aggregate("sum_boolean", "status = 'lost'"), 1),
        "dear": (aggregate("max", "price", PAID), 10),
        "gap": (metric("derived", expr="n - dear * 2", metrics=[number, {"name": "dear"}]), -17),
    }
    left_out = {
        "last": (metric("derived", expr="n", metrics=[number | {"offset_window": "7 days"}]), "another period"),
        "stock": (aggregate("sum", "quantity", non_additive_dimension={"name": "day"}), "not additive"),
        "middle": (aggregate("percentile", "price"), "the aggregation percentile is not known"),
        "some": (metric("derived", PAID, expr="n * 2", metrics=[number]), "several aggregates"),
        "loop": (aggregate("sum", "price", "{{ TimeSpine('day') }} > 1"), "{{ TimeSpine('day') }} > 1"),
        "none": (aggregate("sum", "price", "{{ Dimension('order__colour') }} = 1"), "which no model has"),
        "both": (metric("ratio", numerator=number, denominator={"name": "visits"}), "metrics of people and sales"),
    }
    defined = {"visits": (aggregate("sum", "visits", model="people"), ""), **carried, **left_out}
    made = [{"name": name, **definition} for name, (definition, _) in defined.items()]
    file = tmp_path / "semantic_manifest.json"
    file.write_text(json.dumps(DBT | {"metrics": [*DBT["metrics"], *made]}))
    terms = read_terms(file)
    (tmp_path / "orders.csv").write_text(ORDERS)
    with almanaq.connect(tmp_path / "orders.csv") as con:
        written = {term.name: term.expression for term in terms.terms}
        found = {name: con.sql(f"SELECT {written[name]} FROM orders AS sales").rows[0][0] for name in carried}
    assert found == {name: value for name, (_, value) in carried.items()}
    for name, (_, why) in left_out.items():
        assert name not in written
        assert why in next(said for said in terms.left_out if f"the metric {name!r} is left out" in said)


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ('revenue = "sum(prise)"', "line 3: the metric 'revenue': no column 'prise'; did you mean 'price'"),
        ('revenue = "price"', "aggregates nothing"),
        ('revenue = "sum(price"', "cannot be parsed"),
        ('revenue = "sum(status)"', "line 3: the metric 'revenue' is refused"),
        ('revenue = {expression = "sum(price)", filtr = "x"}', "did you mean 'filter'"),
        ('a = "b"\nb = "a"', "is defined by itself"),
    ],
)
def test_a_faulty_definition_is_an_error_with_its_line(shop: Path, definition: str, message: str) -> None:
    Path(f"{shop}.almanaq.toml").write_text(f"[orders]\n[orders.metrics]\n{definition}\n")
    with pytest.raises(SourceError) as caught:
        almanaq.connect(shop)
    assert message in str(caught.value)


def test_what_is_written_is_read_again(shop: Path) -> None:
    toml = Path(f"{shop}.almanaq.toml")
    toml.write_text(SCHEMA)
    run = CliRunner().invoke
    assert run(app, ["schema", str(shop), "--write", "osi"]).exit_code == 0
    read = read_terms(f"{shop}.terms.yaml")
    assert {(term.name, term.kind, term.synonyms) for term in read.terms if term.kind == "metric"} == {
        ("revenue", "metric", ("turnover",)),
        ("basket", "metric", ()),
        ("were lost", "metric", ()),
    }
    toml.unlink()
    with almanaq.connect(shop) as con:
        assert con.ask("What is the turnover?").rows == ((70,),)


def test_terms_of_private_columns_are_unknown_to_a_public_connection(shop: Path) -> None:
    Path(f"{shop}.almanaq.toml").write_text(SCHEMA + "[orders.columns.price]\nprivate = true\n")
    with almanaq.connect(shop) as con:
        assert any("revenue" in line for line in write_terms("revenue", con.catalog))
        assert {term.name for term in con.public().catalog.terms} == {"were lost", "order month", "active customers"}
