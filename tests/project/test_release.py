"""What a release says of its dependencies: every licence is known and allowed, and the pins fulfil what is asked."""

from __future__ import annotations

import re
import sys

import pytest

ALLOWED = re.compile(
    r"MIT|Apache|BSD|PSF|Python|ISC|MPL|HPND|Unlicense|Zlib|LGPL|CC0|CNRI|0BSD|MIT-CMU|The Unlicense|Artistic|CDDL"
)


@pytest.fixture(scope="module")
def scripts(root):
    sys.path.insert(0, str(root / "scripts"))
    try:
        import constraints
        import sbom
    finally:
        sys.path.pop(0)
    return sbom, constraints


def test_every_dependency_has_a_licence_that_is_allowed(scripts) -> None:
    sbom, _ = scripts
    found = {name: sbom.licence_of(package) for name, package in sbom.packages().items()}
    assert len(found) > 60
    assert {"duckdb", "pyarrow", "fastapi", "mcp"} <= found.keys()
    assert {name: licence for name, licence in found.items() if not ALLOWED.search(licence)} == {}
    assert {name for name, licence in found.items() if re.search(r"(?<!L)GPL", licence)} == set()


def test_the_bill_of_materials_is_of_the_format(scripts) -> None:
    sbom, _ = scripts
    bill = sbom.bill(())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    references = [each["bom-ref"] for each in bill["components"]]
    assert len(references) == len(set(references))
    assert all(re.fullmatch(r"pkg:pypi/[a-z0-9-]+@\S+", each) for each in references)
    # A bill without extras is a part of the whole.
    assert set(references) < {each["bom-ref"] for each in sbom.bill()["components"]}


def test_the_pins_fulfil_what_is_asked(scripts) -> None:
    _, constraints = scripts
    assert constraints.find_unfulfilled() == []
    assert constraints.KEPT.keys() <= constraints.pins().keys()
