"""Write the pictures of docs/serve.md: five states of the page over the bundled sample, in Chromium.

`python scripts/screenshots.py` needs the extras `web` and `test`, and Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "images"
QUESTION = "Where can I have a romantic Italian dinner in Palo Alto?"
WIDE, NARROW = {"width": 1200, "height": 760}, {"width": 360, "height": 720}


def main() -> None:
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "almanaq", "serve", "sample:restaurants", "--port", "0", "--no-store"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as driver:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = open_page(browser, address, viewport=WIDE)
        shoot(page, "start")
        ask(page)
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
        ask(page)
        shoot(page, "narrow")
        browser.close()
        server.terminate()


def open_page(browser: Any, address: str, **options: Any) -> Any:
    page = browser.new_context(**options).new_page()
    page.goto(address)
    return page


def ask(page: Any) -> None:
    page.fill("#question", QUESTION)
    page.press("#question", "Enter")
    page.locator(".card .buttons").wait_for()


def shoot(page: Any, name: str) -> None:
    page.screenshot(path=FOLDER / f"serve-{name}.jpeg", type="jpeg", quality=60)


if __name__ == "__main__":
    main()
