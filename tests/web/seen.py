"""A page of the server as Chromium shows it."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.resources import files

FLAGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--host-resolver-rules=MAP rebound.example 127.0.0.1, MAP other.example 127.0.0.1",
]


_kept = {}


@contextmanager
def opened(browser, client, path="/", **options):
    """A page that complains of nothing and asks no other host.

    Pages with the same options follow each other in one context, in which an empty page stays open: Chromium takes
    half of the time for a page of a process that is there. What a page has remembered is forgotten after it.
    """
    options = {"viewport": {"width": 1280, "height": 800}} | options
    key = browser, repr(sorted(options.items()))
    if key not in _kept:
        _kept[key] = browser.new_context(**options)
        _kept[key].new_page()
    page = _kept[key].new_page()
    page.set_default_timeout(90_000)
    faults, hosts = [], set()
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.goto(f"http://127.0.0.1:{client.port}{path}")
    try:
        yield page
        assert faults == []
        assert hosts <= {f"127.0.0.1:{client.port}"}
        page.evaluate("localStorage.clear()")
        page.context.clear_cookies()
        page.close()
    except BaseException:
        _kept.pop(key).close()
        raise


def violations(page):
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    found = page.evaluate(
        """async () => {
        const ending = document.getAnimations().filter(each => each.effect.getTiming().iterations !== Infinity);
        await Promise.allSettled(ending.map(each => each.finished)); // what fades in has its contrast at the end
        return (await axe.run({ resultTypes: ['violations'] })).violations }"""
    )
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
