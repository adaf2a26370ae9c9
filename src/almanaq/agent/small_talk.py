"""Tells small talk from questions that need the data, without a language model."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["greeting", "thanks", "goodbye", "about", "language", "acknowledgement", "empty"]

_KINDS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (
        "greeting",
        (
            r"(hi|hiya|hello|hey|good (morning|afternoon|evening)|howdy|greetings)( there| everyone| all)?"
            r"( how are you( doing)?( today)?)?",
            r"how are you( doing)?( today)?|how is it going|what is up",
        ),
    ),
    (
        "thanks",
        (
            r"(ok |okay |great |perfect |cool |awesome |no )*(thanks|thank you|thx|many thanks|cheers|much appreciated)"
            r"( you)?( so| very)?( much| a lot)?( for .{0,40}| that .{0,40})?( bye)?",
        ),
    ),
    (
        "goodbye",
        (
            r"(good ?bye|bye( bye)?|see you( later| soon)?|good night|that is all|i am done|quit|exit)"
            r"( then| now| thanks| thank you| for now)*",
        ),
    ),
    (
        "about",
        (
            r"(who|what) are you|what can you (do|answer|help( me)? with)|how do you work|help( me)?",
            r"are you (a |an )?(bot|robot|human|machine|ai|person|real).*|what is your name|what can i ask( you)?",
            r"who (made|built|created) you",
        ),
    ),
    (
        "language",
        (
            r"(do|can) you (speak|understand|talk|answer in|write) (in )?\w+",
            r"habla .*|parlez.*|sprichst.*|sprechen.*",
        ),
    ),
    (
        "acknowledgement",
        (
            r"(?:h+m+ )*(ok|okay|great|perfect|cool|awesome|nice|yes|no|sure|alright|got it|sounds good|i see"
            r"|interesting|wow|never ?mind|lol|haha)( ok| okay| great| then| that is all)*",
            r"(that|this|it) (is|sounds|looks) (great|good|perfect|nice|awesome|fine|helpful)",
            r"(tell me a joke|sing .*|i love you|you are (great|awesome|helpful|nice|funny).*)",
        ),
    ),
)
_COMPILED = tuple((kind, re.compile("|".join(f"(?:{p})" for p in patterns))) for kind, patterns in _KINDS)
_SHORT = (("'s", " is"), ("'m", " am"), ("'re", " are"), ("whats", "what is"), ("thats", "that is"))


def small_talk(text: str) -> Kind | None:
    """Return the kind of small talk that a text is as a whole, None when it says anything else."""
    plain = text.casefold().replace("\u2019", "'")
    for short, full in _SHORT:
        plain = plain.replace(short, full)
    plain = " ".join(re.sub(r"[^\w ]+", " ", plain).split())
    if not plain:
        return "empty"
    parts = [
        plain,
        *(
            " ".join(re.sub(r"[^\w ]+", " ", p).split())
            for p in re.split(r"[.!,;]| and ", text.casefold())
            if p.strip()
        ),
    ]
    if len(parts) > 2 and all(_kind(p) for p in parts[1:] if p):
        return _kind(parts[-1] or parts[1])
    return _kind(plain)


def _kind(plain: str) -> Kind | None:
    return next((kind for kind, pattern in _COMPILED if pattern.fullmatch(plain)), None)
