"""docs/json.md lists the keys that are printed, and no others."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from almanaq.agent.response import Response
from almanaq.encode import evidence_record, response_record, result_record, trace_record
from almanaq.suql.result import Evidence, Result, Trace

QUOTE = Evidence("r", {"id": 1}, "text", 0, 0, "words", "why?")
RECORDS = {
    "result": result_record(Result(pa.table({"a": [1]}), ((),), Trace(), "")),
    "reply": response_record(Response("answered", "")),
    "quote": evidence_record(QUOTE),
    "trace": trace_record(Trace()),
}


@pytest.mark.parametrize("record", RECORDS)
def test_the_page_lists_the_keys_of_a_record(root, record):
    page = (root / "docs" / "json.md").read_text("utf-8")
    row = re.search(rf"^\| {record} \|[^|]*\|([^|]*)\|$", page, re.MULTILINE)
    assert row is not None
    assert set(re.findall(r"`(\w+)`", row[1])) == set(RECORDS[record])
