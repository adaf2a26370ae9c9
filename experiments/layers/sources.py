"""Three semantic layers with tables that fit them: `python -m experiments.layers.sources DIR [DBT]`.

No layer of others lies in this repository. `payments` is the tutorial project of dbt's MetricFlow: its package brings
the tables, and `DBT parse` (of `pip install dbt-core dbt-duckdb`) writes the manifest. `retail` is the example of
Open Semantic Interchange; it has no tables, so small ones are made here. `bikes` is ours: a folder as people keep them,
with a clean copy beside it for the right answers.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from datetime import date, timedelta
from pathlib import Path
from random import Random

import duckdb

METRICFLOW = "dbt-metricflow==0.15.0"
OSI = "https://raw.githubusercontent.com/open-semantic-interchange/OSI/2ede8f9/examples/tpcds_semantic_model.yaml"
NAMES = ("retail", "payments", "bikes")


def build(folder: Path, dbt: str = "dbt") -> None:
    """Write what is not there yet: a folder of tables for each layer, and its terms beside it."""
    for name, make in zip(NAMES, (_retail, _payments, _bikes), strict=True):
        if not (folder / name).exists():
            (folder / name).mkdir(parents=True)
            make(folder / name, dbt)


def _retail(target: Path, _: str) -> None:
    terms = target.with_name("terms.retail.yaml")
    if not terms.exists():
        urllib.request.urlretrieve(OSI, terms)
    tables = {
        "date_dim": """SELECT 1000 + i AS d_date_sk, d AS d_date, year(d) AS d_year, year(d) || 'Q' || quarter(d) AS
            d_quarter_name, monthname(d) AS d_month_name
            FROM (SELECT i, DATE '2022-01-01' + i::INT AS d FROM range(730) t(i))""",
        "customer": """SELECT 1 + i AS c_customer_sk, printf('C%04d', 7 * i) AS c_customer_id,
            ['Ada', 'Ben', 'Cleo', 'Dan', 'Eve', 'Finn', 'Gus', 'Hana'][1 + i % 8] AS c_first_name,
            ['Ames', 'Bird', 'Cole', 'Dunn', 'Ellis'][1 + i // 8] AS c_last_name,
            lower(c_first_name) || '@' || lower(c_last_name) || '.example' AS c_email_address FROM range(40) t(i)""",
        "item": """SELECT 1 + i AS i_item_sk, printf('I%03d', i) AS i_item_id, ['Lamp', 'Radio', 'Ball', 'Novel',
            'Shirt'][1 + i % 5] || ' no. ' || i AS i_item_desc, ['Corvo', 'Lumen', 'Alta', 'Brio'][1 + i % 4]
            AS i_brand, ['Home', 'Electronics', 'Sports', 'Books', 'Women'][1 + i % 5] AS i_category,
            4.5 + 3 * (i % 7) AS i_current_price FROM range(30) t(i)""",
        "store": """SELECT 1 + i AS s_store_sk, printf('S%02d', i) AS s_store_id, ['Northgate', 'Riverside', 'Old Mill',
            'Harbor', 'Union', 'Hilltop'][1 + i] AS s_store_name, ['Austin', 'Dallas', 'Fresno', 'Oakland', 'Albany',
            'Buffalo'][1 + i] AS s_city, ['TX', 'TX', 'CA', 'CA', 'NY', 'NY'][1 + i] AS s_state, 12 + 9 * i AS
            s_number_employees FROM range(6) t(i)""",
        "store_sales": """SELECT 1000 + h1 % 730 AS ss_sold_date_sk, 1 + h2 % 30 AS ss_item_sk,
            i // 2 AS ss_ticket_number,
            1 + h3 % 37 AS ss_customer_sk, 1 + h1 % 6 AS ss_store_sk, 1 + h2 % 5 AS ss_quantity, 4.5 + 3 * (h2 % 7) AS
            ss_sales_price, ss_quantity * ss_sales_price AS ss_ext_sales_price, round(ss_ext_sales_price * (h3 % 40 - 8)
            / 100, 2) AS ss_net_profit FROM (SELECT i, (i * 7919 + 13) % 9973 AS h1, (i * 6151 + 71) % 8999 AS h2, (i *
            4211 + 5) % 7919 AS h3 FROM range(3000) t(i))""",
    }
    for name, sql in tables.items():
        duckdb.sql(f"COPY ({sql}) TO '{target / name}.csv'")


def _payments(target: Path, dbt: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, METRICFLOW]
        subprocess.run(pip, check=True)
        with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
            wheel.extractall(scratch)
        cli = Path(scratch) / "dbt_metricflow" / "cli"
        project = cli / "mf_tutorial_project"
        shutil.copytree(cli / "sample_dbt_models" / "seeds", project / "seeds")
        shutil.copytree(cli / "sample_dbt_models" / "sample_models", project / "models" / "sample")
        for file in (project / "profiles.yml", *project.rglob("*.yml")):
            file.write_text(file.read_text("utf-8").replace("$db_file_path", "x.duckdb"), "utf-8")
        subprocess.run([dbt, "--quiet", "parse", "--profiles-dir", "."], cwd=project, check=True)
        shutil.copy(project / "target" / "semantic_manifest.json", target.with_name("terms.payments.json"))
        for file in (project / "seeds").glob("*_seed.csv"):
            shutil.copy(file, target / file.name.replace("_seed", ""))


def _bikes(target: Path, _: str) -> None:
    random, clean = Random(7), target.with_suffix(".clean")
    clean.mkdir()
    plans = ("annual", "monthly", "student", "day")
    members = [(100 + i, f"Member {i}", random.choice(plans)) for i in range(60)]
    stations = [(i + 1, each) for i, each in enumerate(("Müllerplatz", "Café Nord", "Hafen", "Bahnhof", "Zoo"))]
    trips = []
    for i in range(900):
        started = date(2024, 1, 1) + timedelta(days=i * 182 // 900)
        minutes = random.randint(4, 95)
        status = random.choice(("paid", "paid", "paid", "void"))
        trips.append((i, random.choice(members)[0], random.randint(1, 5), started, minutes, minutes * 15 / 100, status))
    repairs = [
        (i, random.randint(1, 5), date(2024, 1, 3) + timedelta(days=4 * i), random.randint(5, 90), random.randint(1, 4))
        for i in range(45)
    ]
    _write(clean / "members.csv", ("id", "name", "plan"), members)
    _write(clean / "stations.csv", ("no", "station"), stations)
    _write(clean / "trips.csv", ("no", "member", "station_no", "started", "minutes", "fare", "status"), trips)
    _write(clean / "repairs.csv", ("no", "station_no", "day", "parts", "hours"), repairs)
    # The same as people keep it.
    lines = [json.dumps({"id": i, "name": name, "plan": plan}) for i, name, plan in members]
    (target / "members.jsonl").write_text("\n".join(lines), "utf-8")
    text = "Our stations;\n\nno;Station\n" + "".join(f"{no};{name}\n" for no, name in stations)
    (target / "stations.csv").write_bytes(text.encode("cp1252"))
    for month in range(1, 7):
        rows = [
            f"{no};{member};{station};{day:%d.%m.%Y};{minutes};{str(fare).replace('.', ',')};{status}\n"
            for no, member, station, day, minutes, fare, status in trips
            if day.month == month
        ]
        header = "Trip No;Member;From Station;Started;Minutes;Fare (EUR);Status\n"
        (target / f"trips-2024-{month:02d}.csv").write_text(header + "".join(rows), "utf-8")
    total = f"Total\t\t\t{sum(row[3] for row in repairs)}\t{sum(row[4] for row in repairs)}\n"
    rows = ["\t".join(map(str, row)) + "\n" for row in repairs]
    (target / "repairs.tsv").write_text("No\tStation\tDay\tParts\tHours\n" + "".join(rows) + total, "utf-8")
    (target / "README.txt").write_text("Exports of the hire desk. Ask Kim about June.\n", "utf-8")
    (target / "old").mkdir()
    _write(target / "old" / "stations.csv", ("no", "Station"), [(1, "Müllerpl."), (2, "Nord")])


def _write(file: Path, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    lines = [",".join(header), *(",".join(map(str, row)) for row in rows)]
    file.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    build(Path(sys.argv[1]), *sys.argv[2:])
