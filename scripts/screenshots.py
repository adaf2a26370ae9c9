"""Write the pictures of the docs: five states of the page over the bundled sample and one over documents, in Chromium.

`python scripts/screenshots.py` needs the extras `web` and `test`, and Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "images"
QUESTION = "Where can I have a romantic Italian dinner in Palo Alto?"
DOCUMENTS = {
    "shift.txt": "Dear all,\n\nthe pump in hall two leaks. We closed valve seven.\n",
    "hours.md": "---\ntitle: Opening hours\ntags: [office]\n---\nWe open at nine.\n\nClosed on Sunday.\n",
    "ann.eml": "From: ann@example.org\nTo: bob@example.org\nSubject: Invoice 4711\n"
    "Date: Mon, 3 Jun 2024 00:30:00 +0200\n\nThe invoice is unpaid.\n",
}
WIDE, NARROW = {"width": 1200, "height": 760}, {"width": 360, "height": 720}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with serve_page("sample:restaurants") as (browser, address):
        page = open_page(browser, address, viewport=WIDE)
        shoot(page, "start")
        ask(page, QUESTION)
        page.locator(".quote button").first.click()
        page.locator("#reader mark").wait_for()
        shoot(page, "quote")
        page.get_by_role("button", name="Close").click()
        page.get_by_text("How this was found").click()
        page.get_by_label("SUQL query").fill(
            "SELECT name, ratin FROM restaurants\nWHERE answer(reviews, 'is it romantic?') = 'Yes'"
        )
        page.locator(".editor .fault").wait_for()
        page.keyboard.press("Escape")  # the completions
        page.locator(".editor").evaluate("place => place.scrollIntoView({ block: 'center' })")
        shoot(page, "mistake")
        page.get_by_role("button", name="Right", exact=True).click()
        page.goto(address + "accuracy")
        shoot(page, "accuracy")
        page = open_page(browser, address, viewport=NARROW, color_scheme="dark")
        ask(page, QUESTION)
        shoot(page, "narrow")
    with tempfile.TemporaryDirectory() as folder:
        inbox = Path(folder, "inbox")
        inbox.mkdir()
        for name, text in DOCUMENTS.items():
            (inbox / name).write_text(text)
        with serve_page("inbox", folder) as (browser, address):
            page = open_page(browser, address, viewport=WIDE)
            ask(page, "Which document says that an invoice is unpaid?")
            page.locator(".quote button").first.click()
            page.locator("#reader mark").wait_for()
            shoot(page, "documents")


@contextmanager
def serve_page(source: str, folder: str = ".") -> Iterator[tuple[Any, str]]:
    """Give a browser, and the address of a server over a source of a folder."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "almanaq", "serve", source, "--model", "local", "--port", "0", "--no-store"]
    with (
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as driver,
    ):
        assert server.stdout is not None
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        try:
            yield browser, server.stdout.readline().strip()
        finally:
            browser.close()
            server.terminate()


def open_page(browser: Any, address: str, **options: Any) -> Any:
    page = browser.new_context(**options).new_page()
    page.goto(address)
    return page


def ask(page: Any, question: str) -> None:
    page.fill("#question", question)
    page.press("#question", "Enter")
    page.locator(".card .buttons").wait_for()


def shoot(page: Any, name: str) -> None:
    page.screenshot(path=FOLDER / f"serve-{name}.jpeg", type="jpeg", quality=60)


if __name__ == "__main__":
    main()
