"""Ours with one row under way at a time, where a LIMIT may stop it: fewer calls, one after another."""

from __future__ import annotations

from ours import serve_ours

serve_ours(speculation=1)
