"""The SUQL dialect on sqlglot: parsing, the text functions, and the allow-list."""
