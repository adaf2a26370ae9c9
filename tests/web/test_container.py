"""The container's files: no root, nothing writable but what is named, a health check that the server answers."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_the_image_runs_as_a_user_of_its_own_and_is_looked_after(client):
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    user = re.search(r"^USER (\S+)", lines, re.MULTILINE)[1]
    assert user not in ("root", "0")
    path = re.search(r"127\.0\.0\.1:8765(/\w+)", re.search(r"^HEALTHCHECK.*$", lines, re.MULTILINE)[0])[1]
    assert client("GET", path).status == 200
    begun = re.search(r"^ENTRYPOINT (.*)$", lines, re.MULTILINE)[1]
    assert '"0.0.0.0"' in begun  # which needs a token
    assert "TOKEN=" not in lines


def test_the_example_is_closed_to_others():
    services = yaml.safe_load((ROOT / "examples" / "compose.yaml").read_text())["services"]
    served = services["almanaq"]
    assert served["read_only"]
    assert served["cap_drop"] == ["ALL"]
    assert served["environment"]["ALMANAQ_TOKEN"] == "${ALMANAQ_TOKEN:?}"
    assert all(port.startswith("127.0.0.1:") for port in served["ports"])
    assert not any("ports" in services[name] for name in ("postgres", "ollama"))
