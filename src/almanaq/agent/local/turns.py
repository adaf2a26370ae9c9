"""Tells what an asker does with a turn, by its words and by what they link to: no language model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from almanaq.agent.history import Turn, TurnKind
from almanaq.agent.local.links import Links
from almanaq.agent.local.references import refers, shown_before
from almanaq.agent.small_talk import small_talk

_FILLERS = re.compile(
    r"^(?:(?:ok|okay|and|so|but|well|hmm+|hm|please|now|then|great|good|no|yes|yeah|alright|right|cool|fine|thanks)\b[, ]*)+"
)
_SET = r"(?:them|these|those|the (?:\w+ )?(?:ones|three|two|four|five|results|list))"
_NUMBER = re.compile(r"\d")


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p})" for p in patterns))


_TALK = _any(
    r"\b(?:thanks|thank you|thx|cheers|appreciate|good ?bye|bye|see you|good night|farewell)\b",
    r"\bhave an? (?:nice|good|great|lovely|wonderful) (?:day|evening|weekend|night|time|one)\b",
    r"\byou(?:'ve| have)? (?:been|are|were|'re)\b.*\b(?:kind|helpful|great|help|funny|smart|awesome|amazing|nice)\b",
    r"\b(?:exactly|just) what (?:i|we) (?:needed|wanted|was|were)\b",
    r"^(?:that|this|it|those)?(?:'s| is| are)? ?(?:sounds?|looks?|all|everything|enough|perfect|wonderful|great)\b"
    r"(?!.*\b(?:but|when|what|where|how|only|with)\b)",
    r"\b(?:i|we)(?:'ll| will) (?:go|take|book|try|think|have a look|pick|choose)\b(?!.*\b(?:what|where|when|how|is|does)\b)",
    r"^(?:anyone|anybody) (?:home|there)\b|^(?:hi|hello|hey|greetings|good (?:morning|evening|afternoon|day))\b[^?]{0,12}$",
    r"\b(?:can|could|should|may) i (?:ask|say|type)\b|\bask you\b|\bwho (?:made|built|created|wrote) you\b",
    r"\bare you (?:a|an|real|human|there|alive|sure|ok|able)\b|\bhow are you\b|\bdo you (?:speak|understand|know english|sleep)\b",
    r"\bwhat (?:can|do) you (?:do|know|answer)\b|\byour (?:name|job|purpose)\b|\bhow do you work\b",
)
_INTERJECTIONS = frozenset(
    """
    ok okay yes no yeah nope sure great good perfect cool nice awesome amazing wow hmm hm hmmm mm ah oh lol haha alright
    right fine interesting impressive wonderful excellent super got it i see understood never mind nevermind sorry oops
    really indeed lovely brilliant then well thanks that is
    """.split()
)
_WORLD = _any(
    r"\bdifference between\b|\bstands? for\b|\bwhat (?:does|do|is meant by) .*\bmean\b|\bmeaning of\b|\bcapital of\b",
    r"\b(?:translate|poem|joke|song|story|essay|riddle|recipe|calories|vitamins?|weather|rain|snow|forecast)\b",
    r"\bhow (?:do|can|should|would) (?:i|you|we|one) (?:make|cook|prepare|bake|build|write|learn|say|pronounce|spell)\b",
    r"\bhow to\b|\bhow does (?:a|an|the) .* work\b|\bexplain\b|^why\b|\bwhat time is it\b|\bwhat day is\b|\btoday's date\b",
    r"^(?:what|who|how big|how old|how heavy) (?:is|are|was|were) an?\b|^(?:is|are) an? \w+ an?\b|\bhow far is the\b",
    r"\b(?:president|prime minister|king|queen|chancellor|population) of\b|\bwho (?:won|invented|discovered|painted|wrote)\b",
    r"\b(?:book|order|buy|call|reserve|send|remind|set) (?:me|us|it for me|an?)\b.*\b(?:flight|taxi|ticket|table|alarm|email|uber|cab)\b",
    r"\bshould i (?:invest|buy|sell|marry|quit)\b|^what is \d|\bsquare root\b|\b(?:made|invented|consist) (?:of|in)\s*\??$",
    r"\b(?:invest|stock market|bitcoin|football|world cup|quantum|history of|meaning of life)\b",
)
_COUNT = _any(
    rf"\bhow many (?:of (?:{_SET}|that)|are there|is that|is it|were there|there (?:are|were)|do you|did you|in (?:all|total)|such"
    r"|results?|matches|hits|rows|would that|altogether|remain|are left)\b",
    r"\bhow many\??$|\b(?:count|number|total) of (?:them|those|these|such|the)\b|^(?:just )?count\b|\bthe (?:total )?(?:count|number)\??$",
    r"\btotal (?:number|count)\b|\b(?:tell me|know|count|say) how many\b",
)
_DROP = _any(
    r"\b(?:does|do|is|are|did|need)(?: not|n't)(?: really)?(?: that| so)? (?:matter|important|necessary|needed|relevant|required|care)\b",
    r"\b(?:isn't|aren't|not) (?:that |so |really |very )?(?:important|necessary|needed|required|relevant)\b|\bdon't (?:really )?(?:care|mind)\b",
    r"\bany (?:\w+ ){0,3}(?:is|are|will|would|'s)(?: be)? (?:fine|ok|okay|good|do|alright|all right|acceptable)\b|\bany (?:\w+ ){0,3}will do\b",
    r"^(?:please )?(?:forget|ignore|drop|remove|skip|omit|delete|lift|relax|cancel|lose)\b|\bforget (?:about|the)\b",
    r"\b(?:take|leave) out\b|\bget rid of\b|\bleave (?:the|that) .* (?:out|away)\b",
    r"\bwithout (?:the|that|any) .*(?:requirement|condition|constraint|restriction|filter|limit|part|criterion)\b",
    r"\b(?:needn't|need not|don't need to|doesn't need to|does not need to|do not need to|doesn't have to|don't have to"
    r"|does not have to|do not have to|not have to|no longer (?:has|have|needs?)|no need)\b",
    r"\bregardless\b|\bnever mind (?:the|about)\b|\bflexible (?:on|about|with|regarding)\b|\bno matter\b|\bwhatever the\b",
    r"\bno .* (?:needed|required|necessary)\b|\b(?:anywhere|anytime|anything) (?:is|will|would) (?:be )?(?:fine|ok|good|do)\b",
    r"^no more (?:need|filter|condition)\b|\bdoes not matter\b",
)
_ANOTHER = _any(
    r"\banother\b|\bothers?\b(?! than \w+ing)|\b(?:what|who|anything|something|anyone|somebody|someone|anybody|where|which) else\b",
    r"\balternatives?\b|\b(?:something|anything|somewhere|someone|a|some|any) different\b|\bbesides\b|\bother than (?:them|those|these|that|this)\b",
    r"\b(?:a few|some|any|one|two|three|several|give me|show me|list|see) more\b(?! \w+ (?:one|place))|^more\b(?! (?:about|info|details))|\bmore\b[.!]?$",
    r"\bmore (?:like (?:this|that|these|those)|of (?:them|these|those|the same)|options|suggestions|results|ideas|choices|examples)\b",
    r"^next\b|\bthe (?:next|rest|remaining)\b|\bkeep going\b|^go on\b|^continue\b|\bthe second best\b",
    r"^not (?:that|this|these|those|the (?:first|second|third|last))\b|\bnot (?:that|this) one\b",
    r"\b(?:been|seen|tried|know|watched|visited) (?:there|those|them|these|it|that one) (?:already|before)|\balready (?:been|seen|know|tried)\b",
    r"\bdon't (?:like|want|fancy) (?:any|these|those|them|that|it|this)\b|\bnone of (?:these|those|them)\b|\bnew suggestions?\b",
)
_COMPARATIVE = (
    r"(?:cheaper|pricier|fancier|costlier|dearer|better|worse|higher|lower|longer|shorter|newer|older|younger|bigger|larger"
    r"|smaller|closer|nearer|quicker|faster|slower|earlier|later|taller|heavier|lighter|richer|poorer|fewer|stronger)"
)
_COMPARE = _any(
    rf"\b{_COMPARATIVE}\b",
    r"\b(?:more|less) (?:expensive|affordable|recent|popular|costly|modern|famous|upscale|fancy|highly rated|luxurious|pricey|than)\b",
    r"\b(?:with|has|have|having|earns?|paid|makes?|costs?|gets?|got) (?:more|less|fewer)\b|\bmore (?:reviews|stars|money)\b",
    r"\btoo (?:expensive|pricey|dear|costly|cheap|long|short|old|new|far|big|small|young|much|fancy|low|high)\b",
    r"\bnot (?:so|that|as|too|quite so|quite as) (?:expensive|pricey|dear|costly|cheap|long|short|old|new|far|big|small|young|fancy)\b",
)
_SUPERLATIVE = _any(
    r"\b(?:cheapest|priciest|fanciest|best|worst|highest|lowest|longest|shortest|newest|oldest|youngest|biggest|largest"
    r"|smallest|closest|nearest|latest|earliest|tallest|heaviest|richest|top(?: rated)?|fewest|(?<!at )(?:most|least))\b"
)
_OF_SET = re.compile(rf"\b(?:of|among|amongst|between|from|out of) (?:all )?(?:{_SET}|us)\b|\bof (?:this|that) list\b")
_REPLACE = _any(
    r"^(?:what|how) about\b|^what if\b|\binstead\b|^(?:the )?same\b|\bthe same (?:question|for|but|in|thing|with|search)\b",
    r"^make (?:it|that|this)\b|^try\b|^change\b|^switch\b|^replace\b|\brather than\b|^or\b|\bi mean(?:t)?\b|^let's\b|^do (?:it|the same)\b",
    r"\bwhat would (?:it|that) be (?:for|in|with)\b|^what about\b|\bhow about\b|\bwhat about\b",
)
_NARROW = _any(
    r"^(?:only|just|with|without|that|whose|who (?:are|is|have|has|speak|work)|which (?:are|have|take|is|has))\b",
    r"\b(?:those|these|the ones|ones|people|anyone) (?:who|that|with|which|about|in|from|where|of)\b|^the ones\b",
    rf"\b(?:which|any|one|some|all|each|many) of {_SET}\b|\bwhich ones?\b|\bof {_SET}\b",
    r"\b(?:it|they|he|she|that|these|those|place)(?: also)? (?:must|should|needs?|has to|have to|ought|also)\b|\balso (?:be|have|need|want|has)\b",
    r"\b(?:must|should|has to|have to|need to|needs to) (?:be|have|also|take|serve|offer|accept|allow)\b",
    r"\b(?:as well|too)(?:,? please)?[?.!]?$|^i (?:also|would also|'d also)\b|^(?:i|we)(?:'d| would)? (?:also )?(?:want|need|like|prefer|love)\b",
    r"^(?:filter|restrict|limit|narrow|reduce|keep)\b|\bonly\b|^(?:i|we) (?:do not|don't) want\b",
    r"\bif possible\b|\bwould be better\b|\bones? (?:only|please)$",
)
_MORE_ABOUT = _any(
    r"\b(?:more|details?|info(?:rmation)?|something|everything) (?:\w+ )?(?:about|on|of) \b|\btell me (?:more|about)\b",
    r"\bwhat (?:do|did) (?:people|they|guests|reviewers|customers) (?:say|think)\b|\bdescribe\b|\bsummar",
)
_ASKS = re.compile(
    r"^(?:which|what|who|where|when|how|find|show|list|give|name|recommend|suggest|is there|are there|i'm looking|i am looking|i'm after"
    r"|we are|(?:i|we) (?:need|want)|(?:i|we)(?:'d| would) like|looking for|search|can you (?:find|recommend|suggest|show)|could you (?:find|recommend)|tell me|do you have|get me)\b|\b(?:like|want|need|love) to know\b"
)


@dataclass(frozen=True, slots=True)
class Heard:
    """A turn made ready to be told apart.

    Attributes:
        text: in lower case, with plain apostrophes and single spaces; `core` without the fillers that open it.
        values: it names values of the data; `nouns` it names a relation; `linked` anything at all.
    """

    text: str
    core: str
    values: int
    nouns: int
    linked: bool


def hear(question: str, links: Links) -> Heard:
    """Give what tells a turn apart."""
    text = " ".join(question.casefold().replace("\u2019", "'").split()).strip()
    core = _FILLERS.sub("", text).strip(" ,.!") or text
    nouns = sum(not link.verb for link in links.relations)
    linked = bool(links.values or nouns or links.columns or links.numbers)
    return Heard(text, core, len(links.values), nouns, linked)


def turn_kind(question: str, links: Links, history: Sequence[Turn]) -> TurnKind:
    """Give the kind of a turn. `links` are those of the question with the source's schema."""
    heard = hear(question, links)
    if small_talk(question) is not None:
        return "talk"
    follows = _follow_up(heard, history) if any(t.suql for t in history) else None
    if follows is not None:
        return follows
    if _talks(heard):
        return "talk"
    if _WORLD.search(heard.core) or not (heard.linked or _searching(heard)):
        return "world"
    return "new"


def _talks(heard: Heard) -> bool:
    if set(re.findall(r"[a-z]+", heard.text)) <= _INTERJECTIONS:
        return True
    return bool(_TALK.search(heard.text)) and not (heard.values and _ASKS.search(heard.core))


def _searching(heard: Heard) -> bool:
    """Say whether a turn looks for something that only prose can tell: no word of it names anything."""
    return bool(re.search(r"\b(?:somewhere|place|places|spot|spots|where can|recommend|suggest)\b", heard.text))


def _follow_up(heard: Heard, history: Sequence[Turn]) -> TurnKind | None:
    """Give the kind of a turn that goes on from an earlier one, None for one that stands alone."""
    core = heard.core
    of_set = bool(_OF_SET.search(core)) or bool(re.search(rf"\b{_SET}\b", core))
    refers_to_row = refers(core)
    complete = heard.nouns > 0 and not of_set and not refers_to_row
    if _WORLD.search(core) and not heard.nouns:
        return "world"
    if _counts(heard, complete):
        return "count"
    if _DROP.search(core):
        return "drop"
    if _talks(heard):
        return "talk"
    if _MORE_ABOUT.search(core) and (refers_to_row or of_set):
        return "detail"
    if _ANOTHER.search(core) and not heard.values:
        return "another"
    if _COMPARE.search(core) and not _NUMBER.search(core) and not (complete and heard.values):
        return None if "would be better" in core else "compare"
    if _SUPERLATIVE.search(core) and not heard.values and not (complete and not of_set):
        return "best"
    return _reference(heard, history, of_set=of_set, refers_to_row=refers_to_row, complete=complete)


def _counts(heard: Heard, complete: bool) -> bool:
    if _COUNT.search(heard.core):
        return not (complete and heard.values) or bool(re.search(r"\bsuch\b", heard.core))
    if not re.search(r"\bhow many\b", heard.core) or refers(heard.core):
        return False
    return bool(re.search(r"\b(?:is|was|would|were) (?:that|it|this|these|those)\b", heard.core)) or (
        not heard.nouns and heard.values > 0 and not re.search(r"\bdoes\b", heard.core)
    )


def _reference(
    heard: Heard, history: Sequence[Turn], *, of_set: bool, refers_to_row: bool, complete: bool
) -> TurnKind | None:
    core = heard.core
    if re.match(r"(?:and )?(?:what|how) about\b", core) and refers_to_row:
        return "detail"
    modal = re.search(r"\b(?:it|they|he|she)(?: also)? (?:must|should|needs?|has to|have to)\b", core)
    if refers_to_row and not modal and not re.match(r"(?:only|just|filter|restrict|limit)\b", core):
        return "detail" if shown_before(history) else None
    if _REPLACE.search(core) and (heard.linked or len(core.split()) < 7) and not _complete_search(heard, complete):
        return "replace"
    if re.search(r"\bto know (?:where|which|what|who)\b", core):
        return None
    if complete and not re.match(r"(?:only|just|filter|restrict|limit|with|without)\b", core):
        return None if len(core.split()) > 2 or not heard.text.startswith(("and", "or", "ok and")) else "replace"
    if _NARROW.search(core) or modal:
        return None if heard.values > 1 and _ASKS.search(core) else "narrow"
    return _fragment(heard)


def _complete_search(heard: Heard, complete: bool) -> bool:
    """Say whether a turn asks for rows by all that it wants of them."""
    return complete and bool(_ASKS.search(heard.core)) and not re.match(r"(?:what|how) (?:about|if|would)\b", heard.core)


def _fragment(heard: Heard) -> TurnKind | None:
    """Give the kind of a few words without a verb of asking: "and comedies?", "in Sunnyvale, please"."""
    if not heard.linked or _ASKS.search(heard.core) or len(heard.core.split()) > 6:
        return None
    return "replace" if heard.values else "narrow"
