"""PostgreSQL's own regression files, run through almanaq on PostgreSQL and on DuckDB, against the server's rows."""
