"""The wrappers under contrib/, each installed beside its program in an environment of its own. Part of `make nightly`.

python -m pytest tests/install/contrib_plugins.py --allow-hosts=*
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LLM = """
import json, llm
from llm_almanaq import Almanaq
box = Almanaq("sample:restaurants")
tables = json.loads(box.schema())["tables"]
rows = json.loads(box.query("SELECT name FROM restaurants ORDER BY id LIMIT 2"))["rows"]
asked = json.loads(box.ask("Which Italian restaurants in Palo Alto are romantic?"))
print(json.dumps([tables[0]["table"], len(rows), asked["status"], "Almanaq" in llm.get_tools()]))
"""
DATASETTE = """
import asyncio, re, sys
from datasette.app import Datasette

async def main():
    datasette = Datasette([sys.argv[1]])
    await datasette.invoke_startup()
    form = await datasette.client.get("/-/almanaq/shop")
    token = re.search('name="csrftoken" value="([^"]+)"', form.text)[1]
    sent = {"question": "Which things have a price of at least 3?", "csrftoken": token}
    reply = await datasette.client.post("/-/almanaq/shop", data=sent, cookies=dict(form.cookies))
    forged = await datasette.client.post("/-/almanaq/shop", data={"question": "x"}, headers={"Origin": "http://evil.example"})
    missing = await datasette.client.get("/-/almanaq/none")
    linked = await datasette.client.get("/shop")
    print(form.status_code, reply.status_code, forged.status_code, missing.status_code)
    print("Ask a question" in linked.text, "<script>" in reply.text, "&lt;script&gt;" in reply.text)

asyncio.run(main())
"""


def said(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd="/", timeout=600, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contrib") / "venv"
    said(sys.executable, "-m", "venv", folder)
    wanted = [ROOT, ROOT / "contrib" / "llm-almanaq", ROOT / "contrib" / "datasette-almanaq"]
    said(folder / "bin" / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", *wanted)
    return folder / "bin" / "python"


def test_llm_has_the_tools_and_the_command(python: Path) -> None:
    assert json.loads(said(python, "-c", LLM)) == ["restaurants", 2, "answered", True]
    asked = said(python.with_name("llm"), "almanaq", "sample:restaurants", "How many restaurants are there?")
    assert "339" in asked
    assert "SELECT" in asked


def test_datasette_has_a_page_that_answers_what_is_posted(python: Path, tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
        database.execute("INSERT INTO things VALUES (1, '<script>alert(1)</script>', 5), (2, 'pen', 1)")
    database.close()
    codes, marks = said(python, "-c", DATASETTE, file).splitlines()[-2:]  # Datasette prints what it refuses
    assert codes == "200 200 403 404"
    assert marks == "True False True"
