"""Names in SQL: every keyword may name a column or a table."""

import duckdb
import sqlglot
from sqlglot.dialects import DuckDB, Postgres

from almanaq.text.sql_literals import identifier


def test_every_keyword_can_name_a_column_and_a_table() -> None:
    con = duckdb.connect()
    words = {word for (word,) in con.sql("SELECT keyword_name FROM duckdb_keywords()").fetchall()}
    words |= {word.lower() for dialect in (DuckDB, Postgres) for word in dialect.Tokenizer.KEYWORDS}
    words = {word for word in words if word.isidentifier()}
    assert len(words) > 400
    for word in words:
        name = identifier(word)
        con.execute(f'CREATE OR REPLACE TABLE "{word}" AS SELECT 1 AS "{word}", 2 AS k')
        for query in (
            f"SELECT {name}, k FROM {name}",
            f"SELECT {name}, COUNT(*) AS {name} FROM {name} WHERE NOT {name} IS NULL GROUP BY {name} ORDER BY {name}",
            f"SELECT a.k FROM {name} AS a JOIN {name} ON a.{name} = {name}.{name}",
        ):
            for read in (DuckDB, Postgres):
                tree = sqlglot.parse_one(query, dialect=read)
                assert {column.name for column in tree.find_all(sqlglot.exp.Column)} <= {word, "k"}, query
                assert {table.name for table in tree.find_all(sqlglot.exp.Table)} == {word}, query
                assert con.execute(tree.sql(read, normalize_functions=False)).fetchall(), query
        con.execute(f'DROP TABLE "{word}"')
