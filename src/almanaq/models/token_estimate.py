"""An estimate of token counts that needs no tokenizer and no download."""

from __future__ import annotations


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has: four bytes each, which errs on the high side for
    scripts beyond ASCII.
    """
    return (len(text) if text.isascii() else len(text.encode("utf-8", "replace"))) // 4 + 1
