"""A pattern that every number, day and time matches, and hardly any other text: its words are those that they use."""

from __future__ import annotations

_USED = (
    "us a c ca au nz hk s r usd eur gbp jpy chf inr cny aud cad sek nok dkk rmb rs percent per cent e "
    "hundred k thousand m mn mio million millions b bn billion billions tn trillion trillions "
    "jan january feb february mar march apr april may jun june jul july aug august sep sept september oct october "
    "nov november dec december mon monday tue tues tuesday wed wednesday thu thur thurs thursday fri friday sat "
    "saturday sun sunday st nd rd th of and at t z utc gmt p am pm noon midnight true false "
    "d day days h hr hrs hour hours min mins minute minutes sec secs second seconds n na null none nan"
)
_WORD = "|".join(sorted(_USED.split(), key=len, reverse=True))
WORDS = rf"[^\p{{L}}]*((?:{_WORD})[^\p{{L}}]+)*(?:{_WORD})?[^\p{{L}}]*"
"""For RE2, case folded."""
