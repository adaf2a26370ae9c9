"""The web server: a page where answers can be checked, and an HTTP API; `docs/serve.md` is its reference.

Needs the extra `web`. It is a client of the public API alone: everything it answers, `almanaq.connect` answers too.
"""
