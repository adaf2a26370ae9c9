"""PostgreSQL's regular expressions, read into a tree, and what of them an engine of other rules matches the same."""
