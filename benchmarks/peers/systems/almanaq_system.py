"""Ours as it comes."""

from __future__ import annotations

from ours import serve_ours

serve_ours()
