"""Hostile queries in DuckDB's own syntax.

In them, {s} is an item of FROM, {x} an expression, {f} a function, {p} a text, {n} a name; {canary} is a file that no
query may read, with siblings for each format, and {folder} its folder.
"""

from __future__ import annotations

import duckdb

_KELVIN = "\u212a"
"""A letter that is k in lower case, but not to DuckDB, which folds those of ASCII alone."""

ITEMS = (
    *("read_text('{canary}')", "read_csv('{canary}.csv')", "read_csv_auto('{canary}.csv')", "read_blob('{canary}')"),
    *("read_parquet('{canary}.parquet')", "parquet_scan('{canary}.parquet')", "read_json('{canary}.json')"),
    *("'{canary}.csv'", "'{canary}.parquet'", '"{canary}.json"', '"{canary}.csv"', "'file://{canary}.csv'"),
    *("sniff_csv('{canary}.csv')", "glob('{folder}/*')", "parquet_metadata('{canary}.parquet')", "canary_frame"),
    *("duckdb_variables()", "duckdb_settings()", "duckdb_indexes()", "duckdb_functions()", "duckdb_secrets()"),
    *("sqlite_master", "pg_catalog.pg_indexes", "pg_catalog.pg_settings", "system.main.duckdb_settings"),
    *("query($$FROM read_text('{canary}')$$)", "query_table('{canary}.csv')", "query_table(['{canary}.csv'])"),
    *("rows_of('{canary}')", "json_execute_serialized_sql(json_serialize_sql($$FROM '{canary}.csv'$$))"),
    *("(SELECT {x})", "(VALUES ({x}))", "unnest([{x}])", "(FROM '{canary}.csv')", '(TABLE "{canary}.csv")'),
    *("(SUMMARIZE '{canary}.csv')", "(DESCRIBE '{canary}.csv')", "(SHOW ALL TABLES)", "(PIVOT '{canary}.csv' ON x)"),
    *("pragma_database_list()", "pragma_storage_info('t')", "range({x}::int)", "repeat({x}, 1)", "checkpoint()"),
    *("(DELETE FROM t RETURNING x)", "(INSERT INTO t (x) VALUES ('b') RETURNING x)", "(UPDATE t SET x = 'b')"),
)
"""What a hostile query puts into FROM."""

_FROM = (
    *("FROM {s}", "FROM {s} SELECT *", "FROM t, {s}", "FROM t AS a, LATERAL {s} AS b", "SELECT x FROM {s}"),
    *("SELECT * FROM t SEMI JOIN {s} AS s ON true", "SELECT * FROM t POSITIONAL JOIN {s}", "TABLE {s}"),
    *("SELECT * FROM t ASOF JOIN {s} AS s ON t.d >= s.d", "SELECT * FROM t ANTI JOIN {s} AS s USING (x)"),
    *("SELECT x FROM t UNION ALL BY NAME FROM {s}", "FROM s: {s}", "SELECT y: {x} FROM t", "FROM (FROM (FROM {s}))"),
    *("FROM {f}({p})", "FROM {f}()", "FROM {f}('t')", "FROM t, {f}(x)", "FROM system.{f}()"),
    *("SELECT x FROM t WHERE EXISTS (FROM {s})", "SELECT x FROM t WHERE x IN (FROM {s})", "SELECT (FROM {s} LIMIT 1)"),
    *("FROM t AT (VERSION => {x})", "FROM t AT (TIMESTAMP => now())", "SELECT x FROM t USING SAMPLE 1 ROWS WHERE {x}"),
)
_PIVOTS = (
    *("PIVOT {s} ON x", "PIVOT t ON x USING first({x})", "PIVOT t ON x IN ('a', {x})", "PIVOT t ON {x} USING count(*)"),
    *("UNPIVOT {s} ON COLUMNS(*)", "UNPIVOT t ON (x, {x})", "SELECT * FROM t PIVOT (max({x}) FOR x IN ('abc'))"),
    *("SELECT COLUMNS(c -> c = {x}) FROM t", "SELECT COLUMNS({x}) FROM t", "SELECT max(COLUMNS(*)) FROM {s}"),
    *("SELECT COLUMNS('x') || {x} FROM t", "SELECT * REPLACE ({x} AS x) FROM t", "SELECT * EXCLUDE (d), {x} FROM t"),
    *("SELECT * RENAME (x AS {n}) FROM t", "SELECT * LIKE {p} FROM t", "SELECT {f}(COLUMNS(*)) FROM t"),
)
_EXPRESSIONS = (
    *("SELECT x.{f}({p}) FROM t", "SELECT ({x}).{f}() FROM t", "SELECT x.concat({x}) FROM t", "SELECT 'a'.{f}({p})"),
    *("SELECT x.main.{f}({p}) FROM t", "SELECT main.{f}({p}) FROM t", "SELECT system.main.{f}({p}) FROM t"),
    *(
        "SELECT {f}(x := {p}) FROM t",
        "SELECT {f}(x => {p}) FROM t",
        "SELECT {f}(t) FROM t",
        "SELECT {f}(x, {x}) FROM t",
    ),
    *("SELECT {f}(x) FILTER (WHERE {x} = x) FROM t", "SELECT x FROM t QUALIFY {f}({p}) OVER () = x"),
    *("SELECT [{x} FOR y IN [1]]", "SELECT [y FOR y IN [1] IF {x} = 'a']", "SELECT list_transform([1], lambda y: {x})"),
    *("SELECT list_transform([1], y -> {f}({p}))", "SELECT {'a': {x}}", "SELECT MAP {'a': {x}}", "SELECT [{x}][1]"),
    *(
        "SELECT struct_pack(a := {x})",
        "SELECT ({'a': {x}}).a",
        "SELECT try({x}) FROM t",
        "SELECT try_cast({x} AS json)",
    ),
    *("SELECT array_agg(x ORDER BY {x}) FROM t", "SELECT {x} IS NOT DISTINCT FROM x FROM t"),
    *("SELECT x FROM t GROUP BY ALL ORDER BY {x}", "SELECT x FROM t LIMIT (SELECT {x})", "SELECT x FROM t LIMIT {x} %"),
    *("SELECT x AS y, {x} AS z FROM t WHERE z = y", "SELECT x FROM t GROUP BY x HAVING {x} = 'a'"),
)
_MEMBERS = (
    *("WITH m AS (FROM {s}) FROM m", "WITH m AS MATERIALIZED (SELECT {x}) FROM m"),
    *("WITH m AS (DELETE FROM t RETURNING x) FROM m", "WITH m AS (UPDATE t SET x = 'b' RETURNING x) FROM m"),
    *(
        "WITH m AS (INSERT INTO t (x) VALUES ('b') RETURNING x) FROM m",
        "WITH m AS (COPY t TO '{folder}/stolen') FROM m",
    ),
    "WITH m AS (MERGE INTO t USING t AS u ON true WHEN MATCHED THEN DELETE RETURNING x) FROM m",
    "WITH RECURSIVE m(a) AS (SELECT 'a' UNION FROM {s}) FROM m",
    "WITH RECURSIVE m(a) USING KEY (a) AS (SELECT 'a' UNION FROM {s}) FROM m",
    *('WITH "{canary}.csv" AS (SELECT 1) FROM "{canary}.csv"', "WITH {n} AS (SELECT 1 AS a) FROM {n}, '{canary}.csv'"),
    *(
        f'WITH "{{folder}}/{_KELVIN}.csv" AS (SELECT 1) FROM "{{folder}}/k.csv"',
        "WITH m AS (SELECT 1) FROM system.m, {s}",
    ),
    'WITH "pg_catalog.pg_indexes" AS (SELECT 1) FROM pg_catalog.pg_indexes',
    'WITH "duckdb_settings()" AS (SELECT 1) FROM duckdb_settings()',
    "WITH m AS (SELECT 1) FROM (WITH sqlite_master AS (SELECT 1) FROM m), sqlite_master",
)
_STATEMENTS = (
    *("DESCRIBE FROM {s}", "SUMMARIZE FROM {s}", "SUMMARIZE '{canary}.csv'", "DESCRIBE '{canary}.csv'"),
    *("SHOW ALL TABLES", "SHOW TABLES FROM system", "SHOW VARIABLES", "SHOW extension_directory", "SHOW DATABASES"),
    *("EXPLAIN ANALYZE FROM {s}", "EXPLAIN ANALYZE DELETE FROM t", "CALL {f}({p})", "PRAGMA {f}({p})", "PRAGMA {f}"),
    *("COPY t TO '{folder}/stolen'", "COPY (FROM {s}) TO '{folder}/stolen'", "EXPORT DATABASE '{folder}/stolen'"),
    *("ATTACH '{folder}/stolen' AS stolen", "INSTALL '{canary}'", "LOAD '{canary}'", "SET threads = 7", "USE system"),
    *("SET VARIABLE stolen = {x}", "CREATE TABLE stolen AS FROM {s}", "CREATE OR REPLACE MACRO lower(x) AS {x}"),
    *("PREPARE stolen AS FROM {s}", "EXECUTE stolen", "IMPORT DATABASE '{folder}'", "FROM t; DELETE FROM t", "BEGIN"),
    *(
        "TRUNCATE t",
        "DROP TABLE t",
        "CHECKPOINT",
        "RESET threads",
        "COMMENT ON TABLE t IS 'x'",
        "VACUUM t",
        "LOAD json",
    ),
)
_TEXTS = (
    *("SELECT answer({x}, 'what is it?') FROM t", "SELECT x FROM t WHERE answer(x, {x}) = 'Yes'"),
    *("SELECT summary({x}) FROM t", "SELECT x.answer({x}) FROM t", "FROM answer({x}, 'a')", "FROM summary({s})"),
    *("SELECT answer(content, 'what is it?') FROM {s}", "FROM {s} AS s, t SELECT s.*, answer(t.x, 'a')"),
    *("WITH m AS (FROM {s}) SELECT answer(x, 'a'), m.* FROM t, m", "SELECT answer(x, 'a'), {f}({p}) FROM t"),
    *("PIVOT (SELECT x, answer(x, 'a') AS a, {x} AS b FROM t) ON b", "SELECT answer(x, 'a') FROM t QUALIFY {x} = 'a'"),
    *("SELECT answer(x, 'a'), COLUMNS(c -> c = {x}) FROM t", "SELECT answer(x, 'a') FROM t POSITIONAL JOIN {s}"),
    *(
        "WITH m AS (DELETE FROM t RETURNING x) SELECT answer(x, 'a') FROM m",
        "SELECT answer(x, 'a') FROM t ORDER BY {x}",
    ),
    *("SELECT answer(x, 'a') AS {n}, {n} || {x} FROM t", "SELECT {f}(answer(x, {p})) FROM t"),
    *("SELECT answer(x, 'a'), [{x} FOR y IN [1]] FROM t", "SELECT answer(x, 'a') FROM t GROUP BY ALL HAVING {x} = 'a'"),
    f'WITH "{{folder}}/{_KELVIN}.csv" AS (SELECT 1 AS x) SELECT answer(x, $$a$$) FROM "{{folder}}/k.csv"',
)
QUERIES = (*_FROM, *_PIVOTS, *_EXPRESSIONS, *_MEMBERS, *_STATEMENTS, *_TEXTS)


def functions() -> frozenset[str]:
    """Return the names of all functions, macros, table functions and pragmas of DuckDB."""
    with duckdb.connect() as connection:
        listed = connection.execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions()").fetchall()
    return frozenset(str(name) for (name,) in listed)
