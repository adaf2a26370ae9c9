"""Ours with no more rows under way than a LIMIT still needs: fewer calls, more of them one after another."""

from __future__ import annotations

from ours import serve_ours

serve_ours(speculation=1)
