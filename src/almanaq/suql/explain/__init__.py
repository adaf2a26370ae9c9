"""EXPLAIN, ANALYZE, and why a row is not in a result."""
