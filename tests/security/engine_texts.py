r"""What an engine would make of a text that is sent to it: its own texts, names and comments, and what it must not run.

Written from the engines' manuals, and sharing nothing with what the product looks at (`engines/ibis/profiles.py`) or
with the printer's own rules: where a text ends is told here by each engine's lexical rules alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_DOUBLED, _BACKSLASH = r"'(?:[^']|'')*'", r"'(?:[^'\\]|''|\\.)*'"
_NAME, _TICKED = r'"(?:[^"]|"")*"', r"`(?:[^`]|``)*`"
_DOUBLE_TEXT, _ESCAPED_NAME, _ESCAPED_TICKED = r'"(?:[^"\\]|""|\\.)*"', r'"(?:[^"\\]|""|\\.)*"', r"`(?:[^`\\]|\\.)*`"
_NO_DOUBLING = r"'(?:[^'\\\n]|\\.)*'"


@dataclass(frozen=True)
class Lexicon:
    """How an engine reads a text.

    Attributes:
        quoted: its texts and quoted names.
        comments: what begins a comment, or a text in another way that nothing of ours is written in.
        refused: words before a parenthesis that it must not be sent.
        clauses: what else it must not be sent.
    """

    quoted: str
    comments: str
    refused: str
    clauses: str


LEXICONS = {
    "mysql": Lexicon(
        f"{_BACKSLASH}|{_DOUBLE_TEXT}|{_TICKED}",
        r"--\s|\#|/\*",
        r"load_file sleep benchmark get_lock release_lock release_all_locks is_free_lock is_used_lock master_\w+ "
        r"source_pos_wait wait_\w+ sys_\w+ gtid_\w+ last_insert_id nextval setval lastval extractvalue updatexml "
        r"json_table user current_user session_user database schema version connection_id current_role uncompress",
        r"@|\binto\b|\boutfile\b|\bdumpfile\b|\bfor\s+update\b|\block\s+in\b|\bprocedure\b|:=|\bhandler\b",
    ),
    "trino": Lexicon(
        f"{_DOUBLED}|{_NAME}",
        r"--|/\*|\b[uU]&'",
        r"table query kill_query exclude_columns read_\w+ http_\w+ ai_\w+ current_groups fail",
        r"\binto\b|\bfor\s+version\b|\bfor\s+timestamp\b|\bmatch_recognize\b|\bsystem\s*\.",
    ),
    "clickhouse": Lexicon(
        f"{_BACKSLASH}|{_ESCAPED_NAME}|{_ESCAPED_TICKED}",
        r"--|/\*|\#!|\#\s|\$\w*\$",
        r"file s3\w* url\w* remote\w* cluster\w* hdfs\w* azure\w* gcs mysql postgresql mongodb redis sqlite jdbc odbc "
        r"executable input sleep\w* getsetting\w* getserver\w* getmacro dictget\w* joinget\w* hostname fqdn merge view "
        r"currentdatabase currentuser numbers zeros generaterandom dictionary deltalake\w* iceberg\w* hudi\w* "
        r"filesystem\w* catboost\w* evalmlmethod throwif addresstoline\w* showcertificate initializeaggregation "
        r"fuzz\w+ loop generateserialid transaction\w+ getclienthttpheader tcpport uptime encrypt decrypt",
        r"\binto\b|\boutfile\b|\bsettings\b|\bformat\s+\w+\s*$|\bsystem\s*\.|@|\bfinal\b",
    ),
    "snowflake": Lexicon(
        f"{_BACKSLASH}|{_NAME}",
        r"--|/\*|//|\$\$",
        r"system\w*\$\w+ result_scan infer_schema get_ddl get_presigned_url build_scoped_file_url build_stage_file_url "
        r"to_query getvariable setvariable ai_\w+ complete cortex\w* embed_text\w* generate\w* validate "
        r"seq\d generator current_\w+_name last_query_id copy_history to_file fl_get\w* execute "
        r"identifier external_\w+ query_history parse_document",
        r"@|\bsystem\$|\binto\b|\$\w+|\bnextval\b|\bcortex\s*\.|\bat\s*\(|\bbefore\s*\(|"
        r"\btable\s*\((?!\s*flatten\()",
    ),
    "bigquery": Lexicon(
        rf"'''|\"\"\"|\b[bB]{_NO_DOUBLING}|{_NO_DOUBLING}|\"(?:[^\"\\\n]|\\.)*\"|{_ESCAPED_TICKED}",
        r"--|/\*|\#|\b[rRbB]{1,2}['\"]",  # of bytes' texts those that end as others do are quoted
        r"external_query session_user ai_\w+ predict\w* generate_text\w* generate_table appends changes vector_search "
        r"external_object_transform kms\w* keyset\w* aead\w* error table gap_fill query query_table search",
        r"@|\binto\b|\bml\s*\.|\bai\s*\.|\bnet\s*\.|\bkeys\s*\.|\baead\s*\.|\bobj\s*\.|\bsystem_time\b|\bfor\s+system",
    ),
    "databricks": Lexicon(
        f"{_BACKSLASH}|{_DOUBLE_TEXT}|{_TICKED}",
        r"--|/\*|\b[rR]['\"]",
        r"read_\w+ ai_\w+ http_request reflect java_method try_reflect secret try_secret list_secrets remote_query "
        r"input_file_\w+ cloud_files\w* vector_search table_changes event_log session_user current_\w+_name "
        r"range transform assert_true raise_error",
        r"@|\binto\b|\b(?:csv|json|parquet|text|orc|avro|delta|binaryfile)\s*\.|\btimestamp\s+as\s+of\b",
    ),
}
_FIRST = re.compile(r"\s*\(*\s*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)
_FROM_STAGE = re.compile(r"\b(?:from|join|table)\s*\(?\s*'at'", re.IGNORECASE)


def objection(text: str, engine: str) -> str:
    """Say what an engine would do with a SELECT that it must not; "" where it would do nothing else than read."""
    lexicon = LEXICONS[engine]
    if not _FIRST.match(text):
        return "no SELECT"
    if engine == "databricks" and "${" in text:
        return "a variable, which is put in before texts are told from the rest"
    bare = without_quoted(text, engine)
    if bare is None:
        return "an open text, or a comment"
    if ";" in bare or bare.count("(") != bare.count(")"):
        return "more than one statement, or half of one"
    refused = "|".join(lexicon.refused.split())
    called = re.search(rf"(?<![\w$])(?:{refused})\s*\(", bare, re.IGNORECASE)
    if called is not None:
        return f"calls {called[0]}"
    clause = re.search(lexicon.clauses, bare, re.IGNORECASE) or _FROM_STAGE.search(bare)
    return f"has {clause[0]}" if clause is not None else ""


def without_quoted(text: str, engine: str) -> str | None:
    """Return a text with '' or "" for what is quoted in it, 'at' for a text that begins with @, which may name a file.

    None for one with a comment, or with an open quote.
    """
    lexicon = LEXICONS[engine]
    pieces = re.compile(f"(?P<quoted>{lexicon.quoted})|(?P<bad>{lexicon.comments}|['\"`])", re.DOTALL)
    found: list[str] = []
    at = 0
    for match in pieces.finditer(text):
        if match["bad"] is not None or match[0] in ("'''", '"""'):
            return None
        blank = '""' if match[0][0] != "'" else "'at'" if match[0].startswith("'@") else "''"
        found += [text[at : match.start()], blank]
        at = match.end()
    return "".join((*found, text[at:]))
