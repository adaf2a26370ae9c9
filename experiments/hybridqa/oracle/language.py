# ruff: noqa: E501 (a pattern reads best whole)
"""Words, sentences and the shapes of names, dates and numbers in tokenised English (spaces around punctuation)."""

from __future__ import annotations

import re
from functools import lru_cache

import Stemmer

_STEM = Stemmer.Stemmer("english").stemWord
_WORD = re.compile(r"[^\W_]+(?:[.,][0-9]+)*")
_END = re.compile(r"(?<=\s[.!?])\s+(?=[\"'“(]?\s?[A-Z0-9])|\n+")
_NO_END = re.compile(
    r"(?:\b[A-Z]|\b(?:St|Mt|Jr|Sr|Dr|Mr|Mrs|Ms|vs|No|Gen|Maj|Col|Lt|Sgt|Rev|lit|ca|approx|Inc|Co|Ft)) [.]$"
)
STOP = frozenset(
    """a an the of in on at to for from by with as and or is was were are be been being did do does has have had this that
    these those it its he she his her him they their them who whom whose which what when where why how s there into than
    person people one any ever also called name named known titled title after before during about you
    i please tell me team player city place thing whom""".split()
)
"""Words that tell nothing of what is asked for, or that stand for the subject of the passage."""
_GROUPS = (
    "found establish form creat start incept",
    "die dead death decease",
    "film movi pictur",
    "stadium arena ground venu",
    "locat situat lie",
    "build built construct erect",
    "win won winner champion victori",
    "write wrote written author penn",
    "marri wife husband spous",
    "largest biggest",
    "peopl inhabit resid popul citizen",
    "seat capac spectat hold",
    "attend educ graduat studi alma",
    "draft select pick",
    "releas publish issu",
    "manag coach train",
    "height tall elev high altitud",
    "footbal soccer",
    "direct director",
    "produc product",
    "compos composit",
    "award honor honour prize",
    "children kid",
    "begin began start",
    "nicknam monik",
    "open inaugur",
    "straddl astrid",
)
_KINDS = {"song": ("record", "singl", "track"), "play": ("tragedi", "drama", "comedi")}
"""What is of a kind: a single is a song, but not every record is."""
_SAME: dict[str, int] = {word: number for number, group in enumerate(_GROUPS) for word in group.split()}
NATIONS = {
    line.split(":")[0]: line.split(":")[1].split(",")
    for line in """america:american,united states,us,u.s.,usa
england:english
britain:british,united kingdom,uk
scotland:scottish,scots
wales:welsh
ireland:irish
france:french
germany:german
italy:italian
spain:spanish
portugal:portuguese
netherlands:dutch
belgium:belgian
switzerland:swiss
austria:austrian
sweden:swedish
norway:norwegian
denmark:danish
finland:finnish
iceland:icelandic
poland:polish
russia:russian
ukraine:ukrainian
hungary:hungarian
romania:romanian
bulgaria:bulgarian
serbia:serbian
croatia:croatian
slovenia:slovenian,slovene
slovakia:slovak
greece:greek
turkey:turkish
israel:israeli
iran:iranian
iraq:iraqi
egypt:egyptian
morocco:moroccan
algeria:algerian
tunisia:tunisian
nigeria:nigerian
ghana:ghanaian
kenya:kenyan
ethiopia:ethiopian
cameroon:cameroonian
senegal:senegalese
india:indian
pakistan:pakistani
china:chinese
japan:japanese
korea:korean
taiwan:taiwanese
thailand:thai
malaysia:malaysian
indonesia:indonesian
philippines:filipino,philippine
vietnam:vietnamese
australia:australian
canada:canadian
mexico:mexican
brazil:brazilian
argentina:argentine,argentinian
chile:chilean
colombia:colombian
peru:peruvian
uruguay:uruguayan
venezuela:venezuelan
cuba:cuban
jamaica:jamaican
estonia:estonian
latvia:latvian
lithuania:lithuanian
belarus:belarusian
kazakhstan:kazakhstani,kazakh
jordan:jordanian
singapore:singaporean
burma:burmese,myanmar
czech republic:czech
south africa:south african
new zealand:new zealander
bosnia:bosnian
albania:albanian
cyprus:cypriot
malta:maltese
georgia:georgian
armenia:armenian
azerbaijan:azerbaijani
uzbekistan:uzbekistani
costa rica:costa rican
soviet union:soviet
yugoslavia:yugoslav
ecuador:ecuadorian
haiti:haitian
honduras:honduran
panama:panamanian
lebanon:lebanese
syria:syrian
scandinavia:scandinavian""".splitlines()
}
_FORMS = {form.title() for forms in NATIONS.values() for form in forms if len(form) > 3}
DEMONYM = f"(?:{'|'.join(sorted(_FORMS, key=len, reverse=True))})"

MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
DATE = rf"(?:[0-9]{{1,2}}(?:st|nd|rd|th)? {MONTH} ?,? [0-9]{{4}}|{MONTH} [0-9]{{1,2}}(?:st|nd|rd|th)?(?: ?, ?| )[0-9]{{4}})"
LOOSE_DATE = rf"(?:{DATE}|{MONTH} ,? ?[0-9]{{4}}|(?<![0-9,.-])(?:1[0-9]|20)[0-9]{{2}}(?![0-9,%]))"
YEAR = r"(?<![0-9,.])(?:1[0-9]|20)[0-9]{2}(?![0-9,%])"
_WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
_TENS = "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred"
COUNT_WORD = "|".join((*_WORDS.split(), *_TENS.split()))
NUMBER = rf"(?:(?<![\w.,])[$£€₹]? ?[0-9][0-9,]*(?:\.[0-9]+)?(?: (?:million|billion|thousand|trillion))?(?![\w])|\b(?:{COUNT_WORD})\b)"
_TOKEN = r"(?:[A-ZÀ-ÖØ-ÞĀ-Ž][\w’'.&/-]*|[0-9]+(?:ers|st|nd|rd|th)?)"
_LINK = r"(?:of|the|de|da|do|dos|del|della|di|du|la|le|von|van|der|den|al|bin|ibn|y|of the|at|&|'s|-)"
NAME = rf"(?:[A-ZÀ-ÖØ-ÞĀ-Ž][\w’'.&/-]*(?: (?:{_LINK} )*{_TOKEN})*(?: 's(?= [A-Z]))?(?: {_TOKEN})*)"
PLACE = rf"(?:{NAME}(?: , {NAME})*)"


def stem(word: str) -> str:
    return str(_STEM(word.casefold()))


def words(text: str) -> list[str]:
    return [match[0].casefold() for match in _WORD.finditer(text)]


@lru_cache(maxsize=200_000)
def stems(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in words(text))


def content(question: str) -> list[str]:
    """Return the stems of a question that say what is asked for, in order."""
    return [stem(word) for word in words(question) if word not in STOP]


def alike(stem_: str) -> frozenset[str]:
    """Return the stems that mean what this one does."""
    group = _SAME.get(stem_)
    same = () if group is None else _GROUPS[group].split()
    return frozenset((stem_, *same, *_KINDS.get(stem_, ())))


@lru_cache(maxsize=50_000)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a document; abbreviations end none."""
    found: list[str] = []
    for part in _END.split(text):
        if found and _NO_END.search(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        elif part.strip():
            found.append(part.strip())
    return tuple(found)


def tidy(span: str) -> str:
    """Return a span as people write it, without the spaces of the tokens."""
    span = re.sub(r" ([,.;:)])", r"\1", span.strip(" ,;:-"))
    return re.sub(r"\s+", " ", re.sub(r"\( ", "(", span)).replace(" 's", "'s").strip()
