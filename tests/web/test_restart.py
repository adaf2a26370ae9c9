"""A server that is killed and started again under a page that stays open."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.web.live import Client, own_environment
from tests.web.test_page import ask, unwatched

QUESTION = "How many places are there?"


@pytest.fixture
def start(tmp_path):
    kept, begun = own_environment(tmp_path), []

    def run(port):
        command = [sys.executable, "-m", "almanaq", "serve", "places.csv", "--model", "local", "--port", str(port)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kept, cwd=tmp_path)
        begun.append(process)
        return process, int(process.stdout.readline().rpartition(":")[2].strip("/\n"))

    yield run
    for process in begun:
        process.kill()
        process.communicate()


def test_the_page_goes_on_after_a_restart(browser, start):
    process, port = start(0)
    with unwatched(browser, Client(port)) as page:
        ask(page, QUESTION)
        process.kill()
        process.wait()
        page.fill("#question", QUESTION)
        page.press("#question", "Enter")
        page.locator("[role=alert]", has_text="The connection to the server was lost.").wait_for()
        start(port)
        page.get_by_role("button", name="Ask again").last.click()
        page.locator(".turn").nth(1).locator(".figure").wait_for()
        assert page.locator("[role=alert]").count() == 0
        answers = page.locator(".turn .figure").all_inner_texts()
        assert answers[0] == answers[1] != ""
        page.reload()  # it is one conversation still: what was answered before is kept
        page.get_by_text("Earlier conversations").click()
        page.locator("#history").get_by_role("button", name=QUESTION, exact=True).click()
        page.locator(".turn").nth(1).wait_for()
        assert page.locator(".turn .figure").all_inner_texts() == answers
