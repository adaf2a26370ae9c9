"""An MCP server over one connection: seven read-only tools, resources and prompts, for stdio and HTTP."""

from __future__ import annotations

from almanaq.mcp.server import asgi_app, make_server, run_stdio

__all__ = ["asgi_app", "make_server", "run_stdio"]
