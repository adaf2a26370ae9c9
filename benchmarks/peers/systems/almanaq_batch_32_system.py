"""Ours with up to 32 short texts in a request, by choice."""

from __future__ import annotations

from ours import serve_ours

serve_ours(batch=32)
