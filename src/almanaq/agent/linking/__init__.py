"""Linking: which words of a text mean which tables, columns, values, numbers and days of a catalog."""

from almanaq.agent.linking.index import CatalogIndex
from almanaq.agent.linking.link import Links, link
from almanaq.agent.linking.spans import Span

__all__ = ["CatalogIndex", "Links", "Span", "link"]
