# ruff: noqa: E501 (a pattern reads best whole)
"""What questions can be asked, and the patterns that answer them: an ordered list; the first that finds words wins."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from oracle.language import DATE, DEMONYM, LOOSE_DATE, MONTH, NAME, NUMBER, PLACE, YEAR


@dataclass(frozen=True)
class Form:
    """A kind of question (a pattern over it), and patterns whose group 1 answers it, in a passage."""

    asked: str
    patterns: tuple[str, ...]
    keep: Callable[[str], str] = str

    def find(self, text: str, question: str) -> str | None:
        asked = re.search(self.asked, question, re.IGNORECASE)
        if not asked:
            return None
        for pattern in self.patterns:
            for key, value in asked.groupdict().items():
                pattern = pattern.replace(f"<{key}>", re.escape(value or ""))
            for passage in text.split("\n\n"):
                found = re.search(pattern, passage)
                if found and self.keep(found[1]).strip(" ,"):
                    return self._kept(found[1], question)
        return None

    def _kept(self, span: str, question: str) -> str:
        """Return the part of a span that was asked for: of a date, the year alone where the question says so."""
        kept = self.keep(span)
        return year_of(kept) or kept if re.search(r"\b(?:what|which) year\b", question, re.IGNORECASE) else kept


def first_place(span: str) -> str:
    return span.split(" , ")[0]


def last_place(span: str) -> str:
    return span.split(" , ")[-1]


def second_place(span: str) -> str:
    return span.split(" , ")[1] if " , " in span else ""


def year_of(span: str) -> str:
    found = re.search(YEAR, span)
    return found[0] if found else ""


def month_of(span: str) -> str:
    found = re.search(r"[A-Z][a-z]+", span)
    return found[0] if found else ""


def day_of(span: str) -> str:
    found = re.search(r"([A-Z][a-z]+ [0-9]{1,2}|[0-9]{1,2} [A-Z][a-z]+)", span)
    return found[0] if found else ""


_BORN_DATE = (
    rf"\b[Bb]orn [^.;)]{{0,60}}?({DATE})",
    rf"\( (?:[^()]*?[;,] )?({DATE}) ?(?:, [^()0-9]*|in [^()0-9]*|\[[^]]*\] )?[-–—] ",
    rf"\( [^0-9]*?({DATE})[^)0-9]* ?[-–—)]",
    rf"\b[Bb]orn [^.;)]{{0,60}}?({LOOSE_DATE})",
    rf"\( (?:[^()]*?[;,] )?(?:c\. )?({LOOSE_DATE}) ?[-–—] ",
)
_DIED_DATE = (
    rf"\( [^()]*?{LOOSE_DATE}[^()]*? ?[-–—] ?(?:c\. )?({LOOSE_DATE})",
    rf"\bdied [^.;]{{0,60}}?({LOOSE_DATE})",
    rf"\bdeath [^.;]{{0,40}}?({LOOSE_DATE})",
    rf"\( died ({LOOSE_DATE})",
)
_BORN_PLACE = (
    rf"\b[Bb]orn (?:(?:on )?{LOOSE_DATE} ,? ?)?(?:and raised |and grew up |to [^.]{{0,60}}? |[A-Z][\w ]{{0,40}}? )?(?:in|at|near) (?:the (?:city|town|village|suburb|municipality) of |the )?({PLACE})",
    rf"\( [^()]*?{DATE} ?(?:in|at) ({PLACE})",
    rf"\( (?:born )?{DATE} ?, ({PLACE}) ?[-–—)]",
    rf"\b(?:native of|hails from|originally from|a native of|comes from) (?:the )?({PLACE})",
    rf"\b(?:from|raised in) ({PLACE})",
)
_DIED_PLACE = (
    rf"\bdied (?:[^.;]{{0,60}}? )?(?:in|at|near) (?:the )?({PLACE})",
    rf"[-–—] {DATE} ?(?:in|,) ({PLACE})",
)
_LOCATED = (
    rf"\b(?:located|situated|lies|based|headquartered|held)(?: \w+)? (?:in|on|at|near|within) (?:the (?:\w+ ){{0,5}}?(?:of|in) )?(?:downtown |central |northern |southern |eastern |western |the )?({PLACE})",
    rf"\b(?:is|was|are) [^.]{{0,90}}? (?:in|on|of|at) (?:the (?:\w+ ){{0,5}}?(?:of|in) |the |downtown )?({PLACE})",
    rf"\b(?:in|at|near) (?:the )?({PLACE})",
)
_NATION = (rf"\b(?:is|was|are|were) (?:[^.]{{0,60}}?)\b({DEMONYM}(?:-{DEMONYM}| {DEMONYM})?)\b", rf"\b({DEMONYM})\b")
_ROLE = (
    r"\b(?:is|was) (?:an? |the |one of the )?(?:(?:former|retired|professional|ex-|late) )*(?:"
    + DEMONYM
    + r"|[A-Z][a-z]+(?:-[A-Z][a-z]+)?)? ?(?:(?:former|retired|professional) )*([a-z][a-z -]*?)(?: who| that| and| for| of| from| in| with| at| \.| ,)",
)


_EVENTS = {
    r"found|establish|form(?:ed)?\b|creat|organi[sz]ed|chartered|come into being|start|begin": r"(?:founded|established|formed|created|organi[sz]ed|chartered|incorporated|started|began|inaugurated|instituted|first held|introduced|origins)",
    r"\bopen": r"(?:opened|opening|inaugurated)",
    r"built|construct|erected|complet": r"(?:built|constructed|erected|completed|construction|dates? (?:from|back to))",
    r"releas|publish|issued|come out": r"(?:released|published|issued|release|is an? )",
    r"premier|first air|debut|broadcast": r"(?:premiered|aired|debuted|broadcast|premiere)",
    r"incorporat": r"(?:incorporated|incorporation)",
    r"dissol|disband|defunct|close|abolish|end\b": r"(?:dissolved|disbanded|closed|folded|defunct|abolished|until|ended)",
    r"demolish|destroyed|burn": r"(?:demolished|destroyed|razed|burned|burnt)",
    r"list|register|designat": r"(?:listed|added|placed|designated|National Register of Historic Places)",
    r"retire": r"(?:retired|retirement)",
    r"discover": r"discovered",
    r"join": r"(?:joined|member)",
    r"launch": r"launched",
    r"settled": r"settled",
    r"elect": r"elected",
    r"marr": r"married",
    r"sign": r"signed",
    r"recorded": r"recorded",
    r"compos|writ": r"(?:composed|written)",
    r"record": r"record",
    r"renamed|change": r"(?:renamed|changed)",
    r"retir": r"retired",
    r"held|take place|happen|fought": r"(?:held|took place|fought|contested|occurred)",
}


def _event_forms() -> list[Form]:
    return [
        Form(
            rf"^(?:when|what date|on (?:what|which) (?:date|day)|(?:in )?(?:what|which) (?:year|decade|month)|what was the (?:date|year)).*\b(?:{asked})",
            (rf"\b{said}\b[^.;]{{0,70}}?({LOOSE_DATE})", rf"({LOOSE_DATE})[^.;]{{0,50}}?\b{said}\b"),
        )
        for asked, said in _EVENTS.items()
    ]


_AGENT = {
    "direct": "directed", "writ|wrote|author": "written", "produc": "produced", "compos": "composed", "coach|manag": "(?:coached|managed)",
    "found": "founded", "design": "designed", "own": "owned", "creat": "created", "build|built": "built", "record|sung|sang|perform": "(?:recorded|performed|sung)",
    "publish": "published", "develop": "developed", "draft|select": "(?:drafted|selected|picked|chosen)", "host": "hosted", "sponsor": "sponsored",
    "release": "released", "operat": "operated", "voice": "voiced", "portray|play": "(?:portrayed|played)", "discover": "discovered", "establish": "established",
    "represent": "represented", "illustrat": "illustrated", "succeed": "succeeded", "manufactur|ma[dk]e": "(?:manufactured|made)", "train": "trained",
}  # fmt: skip


def _agent_forms() -> list[Form]:
    forms = []
    for asked, said in _AGENT.items():
        by = rf"\b{said}(?: (?:and|,) \w+)* ?(?:[^.;]{{0,30}}? )??by (?:the |its |an? |\w+ (?:director|writer|filmmaker|composer|coach|architect) )?({NAME}(?: (?:and|&) {NAME})?)"
        forms.append(
            Form(
                rf"^(?:who(?:m)?|by whom|(?:what|which) (?:\w+ ){{1,3}}|what is the name of the \w+ (?:who|that)).*\b(?:{asked})",
                (by,),
            )
        )
    return forms


FORMS: tuple[Form, ...] = (
    Form(r"\bhow old\b.*\b(?:die|death)", (r"\b(?:aged?|age of) ([0-9]+)",)),
    Form(r"(?:year|decade).*\b(?:born|birth)|birth year", _BORN_DATE, year_of),
    Form(r"(?:month).*\b(?:born|birth)|birth month", _BORN_DATE, month_of),
    Form(r"(?:day of the month|birthday|day and month).*", _BORN_DATE, day_of),
    Form(r"^(?:when|on (?:what|which) (?:date|day)|what (?:is|was) the (?:date of birth|birth ?date)|what date).*(?:born|birth)", _BORN_DATE),
    Form(r"(?:date of birth|birth ?date)", _BORN_DATE),
    Form(r"(?:year).*\b(?:die|death|dead)", _DIED_DATE, year_of),
    Form(r"^(?:when|on (?:what|which) (?:date|day)|what date).*\b(?:die|death|pass)", _DIED_DATE),
    Form(r"(?:date of death)", _DIED_DATE),
    Form(r"(?:which|what) (?:city|town|village|municipality|suburb|borough).*\bborn", _BORN_PLACE, first_place),
    Form(r"(?:which|what) (?:country|nation).*\bborn", _BORN_PLACE, last_place),
    Form(r"(?:which|what) (?:state|province|county|region).*\bborn", _BORN_PLACE, second_place),
    Form(r"(?:where.*\b(?:born|from)|place of birth|birth ?place|home ?town)", _BORN_PLACE),
    Form(r"(?:which|what) (?:city|town).*\bdie", _DIED_PLACE, first_place),
    Form(r"where.*\b(?:die|death|pass)|place of death", _DIED_PLACE),
    Form(r"\bnickname|nicknamed|\bmoniker", (rf"\b(?:nicknamed|[Nn]ickname(?:d)?(?: was| is| of| ,)?|known by the nickname ,?|moniker) (?:as |of )?(?:the |The )?({NAME})", rf"\b(?:also|often|popularly|commonly|better|best|affectionately)? ?(?:known|referred to) (?:simply |to his fans )?as (?:the |The )?({NAME})")),
    Form(r"\b(?:also known as|another name|other name|alias|ring name|stage name|pen name|known as)", (rf"\b(?:also|better|best|commonly|professionally|popularly|formerly|sometimes|often|usually)? ?(?:known|referred to|billed|called)(?: professionally| mononymously| simply| locally)? (?:as|by (?:his|her) (?:ring|stage) names?) (?:the )?({NAME})", rf"\b(?:ring|stage|pen) name (?:of |is )?({NAME})")),
    Form(r"\b(?:middle name)", (r"^(?:\"|Sir )?[\w'’.-]+ ((?:[\w'’-]+ )*?[\w'’-]+) [\w'’-]+(?: (?:Jr|Sr) \.| Jr\.| Sr\.| I+)? (?:\(|,|is|was|[A-Z]{2,} )",), lambda s: s.split()[0]),
    Form(r"\b(?:full|real|birth|official|formal|complete) name|name at birth", (rf"\bborn (?!{MONTH})({NAME}) [;,(o]", rf"\b(?:officially|formally) (?:known as )?(?:the )?({NAME})", rf"^(?:The )?({NAME})(?: (?:Jr|Sr) \.)? (?:\(|,|is|was)")),
    Form(r"\b(?:maiden name)", (rf"\b(?:née|nee|born) ({NAME})",)),
    Form(r"\bformer(?:ly)? (?:name|known|called)|previous(?:ly)? (?:name|known|called)|original(?:ly)? (?:name|known|called)", (rf"\b(?:formerly|previously|originally)(?: \w+)? (?:known as |called |named |as )?(?:the )?({NAME})", rf"\bknown as (?:the )?({NAME}) (?:until|before|from)")),
    Form(r"\bnationality|what country.*\b(?:from|represent|citizen)|\bdemonym", _NATION),
    Form(r"\bpopulation\b|how many (?:people|residents|inhabitants)\b.*\b(?:live|population|there|reside|have)", (rf"\b(?:population|inhabitants)[^.;]{{0,60}}?\b(?:was|is|of|were|at|stood at|:|estimated at|over|about|approximately|around)(?: estimated)?(?: at| to be| about| around| approximately| over)? ({NUMBER})", rf"({NUMBER}) (?:people|inhabitants|residents)", rf"\bpopulation[^.;]{{0,80}}?({NUMBER})(?= people| inhabitants| residents| ,| \.)")),
    Form(r"\bcapacity|how many (?:people|spectators|fans|seats).*\b(?:hold|seat|fit|accommodate|have|capacity)|how many seats", (rf"\b(?:capacity|seats|holds|accommodates?|seat|hold)\b[^.;]{{0,50}}?({NUMBER})", rf"({NUMBER})(?:-| )?(?:seat|spectators|people|capacity|seats)")),
    Form(r"square kilomet", (rf"({NUMBER})(?:-| )(?:square kilomet\w+|km2|km²)",)),
    Form(r"square miles", (rf"({NUMBER})(?:-| )(?:square miles|sq mi)",)),
    Form(r"\barea\b|how (?:large|big)\b|square (?:miles|kilomet)", (rf"\b(?:area|covers|covering|size)\b[^.;]{{0,50}}?({NUMBER}(?: (?:square (?:miles|kilomet\w+|km|mi)|sq mi|km2|km²|hectares|acres|ha|sq\. mi))?)", rf"({NUMBER}(?:-| )(?:square (?:miles|kilomet\w+)|sq mi|km2|hectares?|acres?|ha))")),
    Form(r"\bhow (?:long|wide|far)|\blength\b|\bdistance", (rf"({NUMBER}(?:-| )(?:miles?|mi|km|kilomet\w+|m|met(?:re|er)s?|feet|ft|foot|minutes|hours|days|weeks|months|years|mile|yards))\b",)),
    Form(r"\bhow (?:tall|high)|\bheight|\belevation|\baltitude", (rf"\b(?:elevation|height|altitude|tall|high|rises|standing)\b[^.;]{{0,40}}?({NUMBER}(?:-| )(?:m|met(?:re|er)s?|feet|ft|foot)?)", rf"({NUMBER} (?:m|met(?:re|er)s?|feet|ft|stories|storeys))\b")),
    Form(r"\bhead ?coach|\bmanager\b|who (?:currently )?(?:coaches|manages)|who is the (?:current )?coach", (rf"\b(?:[Hh]ead coach|manager|coach)(?: is| was| ,| and [a-z ]+ is)? ({NAME})", rf"\b(?:coached|managed|led)(?: \w+)? by (?:\w+ coach |head coach |manager )?({NAME})", rf"({NAME}) is (?:the|their) (?:\w+ )?(?:head coach|manager|coach)")),
    Form(r"\bcapital\b", (rf"\bcapital(?: city)?(?: and [a-z ]+)? (?:is|was|:) (?:the )?(?:city of )?({NAME})", rf"\bcapital (?:and [a-z ]+ )?(?:city )?,? ({NAME})", rf"\b(?:capital|capital city)(?: and [a-z -]+?)? of (?:the )?({PLACE})")),
    Form(r"\b(?:county seat|seat of)", (rf"\b(?:county )?seat(?: and [a-z ]+)? (?:is|was) ({NAME})", rf"\bseat of ({NAME})")),
    Form(r"\b(?:named (?:after|for|in honou?r)|namesake|whom)", (rf"\bnamed (?:after|for|in (?:honou?r|memory) of|to honou?r) (?:the |a |an |its |his |her |their )?(?:{DEMONYM} (?=[a-z]))?(?:[a-z-]+ ){{0,6}}?({NAME})",)),
    Form(r"\b(?:university|college|school|alma mater|educat|stud(?:y|ied))\b", (rf"\b(?:played|play) college \w+ (?:at|for|with) (?:the )?({NAME})", rf"\b(?:attended|graduated from|educated at|studied (?:[a-z ,]+ )?at|student at|alumnus of|degree (?:in [\w ]+ )?(?:from|at)|matriculated at|graduate of|attending) (?:the )?({NAME}(?: , {NAME})?)", rf"\bat (?:the )?({NAME} (?:University|College|School|Institute)|University of {NAME})", rf"((?:University of {NAME})|(?:{NAME} (?:University|College|High School)))")),
    Form(r"\bdraft.*\b(?:round)", (r"\b(?:in the )?(\w+) round\b",)),
    Form(r"\bdraft.*\b(?:overall|pick|number)|what pick", (r"\b(?:with the |, |pick )?([0-9]+(?:st|nd|rd|th)?|\w+) (?:overall|pick)",)),
    Form(r"\bdraft.*year|(?:year|when).*\bdraft", (rf"\b(?:drafted|selected|draft|chosen|picked)\b[^.;]{{0,80}}?({YEAR})", rf"({YEAR})[^.;]{{0,20}}? [Dd]raft")),
    Form(r"\b(?:old|former|previous|first|original)\b.*\b(?:stadium|arena|home|venue|ground|field)", (rf"\b(?:previously|formerly|originally)(?: \w+)? (?:playing|played|plays|based|housed)(?: their| its)?(?: home games| games| matches)? (?:at|in|on) (?:the )?({NAME})", rf"\b(?:former|previous|old|original) (?:home|stadium|arena|ground|venue|field)[^.;]{{0,20}}?(?:,|was|is|at|of) (?:the )?({NAME})")),
    Form(r"\b(?:home (?:games|matches|ground|stadium|venue|field|arena|court|rink|park)|stadium|arena|ballpark)\b", (rf"\bhome (?:games|matches|ground|stadium|venue|field|arena|court|ballpark|base|rink)[^.;]{{0,30}}?(?:at|in|is|are|on|was) (?:the )?({NAME})", rf"\b(?:play|plays|played)(?: their| its)?(?: home)?(?: games| matches)? (?:at|in) (?:the )?({NAME})", rf"\b({NAME} (?:Stadium|Arena|Park|Field|Center|Centre|Ground|Coliseum|Dome))")),
    Form(r"\b(?:league|conference|division|competition)\b", (rf"\b(?:plays?|compet\w+|participat\w+|played|member|club)\b[^.;]{{0,60}}?(?:in|of) (?:the )?({NAME} (?:League|Conference|Division|Premiership|Championship|Association|Liga|Series)(?: {NAME})?)", rf"\b(?:plays?|compet\w+|participat\w+)\b[^.;]{{0,40}}? (?:in|of) (?:the )?({NAME})")),
    Form(r"\b(?:position)\b", (r"\b(?:plays?|played|playing)(?: \w+)? (?:as|at|in)(?: an?| the)? ([a-z][a-z -]*?)(?= position| for| in| and| who| \.| ,|$)", r"\b(?:is|was) an? [^.]*?\b((?:attacking |defensive |central |left |right |wide |running |tight |offensive |point |shooting |small |power |outside |middle |corner|free |strong |starting |relief |second |first |third |center |short)?-? ?(?:midfielder|defender|striker|forward|goalkeeper|winger|quarterback|receiver|linebacker|tackle|guard|center|centre|cornerback|safety|pitcher|catcher|outfielder|infielder|baseman|fielder|shortstop|end|back|kicker|punter|fullback|halfback|goaltender|defenceman|defenseman|wing|prop|hooker|lock|flanker|batsman|bowler))s?\b")),
    Form(r"\b(?:occupation|profession|job|do for a living|work as)\b", _ROLE),
    Form(r"\bwhat (?:type|kind|sort|genre|style)|\bgenre\b", (r"\b(?:is|was|are|were) (?:an? |the )?(?:[0-9]{4} )?(?:" + DEMONYM + r" )?((?:[a-z][\w-]* ){0,4}?[a-z][\w-]*)(?= (?:film|movie|series|novel|album|song|show|game|club|band|team|company|by|of|in|for|that|which|who|based|located|directed|from|\.|,))",)),
    Form(r"\b(?:son|daughter|child|parent|father|mother) of whom|who (?:is|was|are|were) (?:his|her|the|their)?.*\b(?:father|mother|parents)", (rf"\b(?:son|daughter|child) of (?:[a-z -]+ )?({NAME}(?: and {NAME})?)", rf"\bfather ,? (?:was |is )?({NAME})")),
    Form(r"\b(?:brother|sister|sibling|twin|cousin)", (rf"\b(?:brother|sister|sibling|twin|cousin)s? (?:of |, |is |was |to )?(?:[a-z -]+ )?({NAME})",)),
    Form(r"\b(?:married|marry|wife|husband|spouse)", (rf"\b(?:married|wife|husband|spouse|marriage to)(?: to| ,| of| is| was)? (?:[a-z -]+ )?({NAME})",)),
    Form(r"\bwho (?:star|play|act)|\bstar(?:s|red|ring)?\b|\blead (?:actor|role)", (rf"\b(?:starring|stars|starred|features|featuring) (?:[a-z -]+ )?({NAME})",)),
    Form(r"\b(?:river|lake|ocean|sea|bay|mountain|gulf|coast|island)\b", (rf"\b(?:on|along|by|near|of|at|beside|into|from|in) (?:[a-z -]+ )?(?:the )?((?:River|Lake|Mount|Gulf of|Bay of|Sea of|Isle of) {NAME}|{NAME} (?:River|Lake|Ocean|Sea|Bay|Mountains?|Gulf|Coast|Islands?|Creek))", rf"((?:River|Lake|Mount|Gulf of|Bay of|Sea of) {NAME}|{NAME} (?:River|Lake|Ocean|Sea|Bay|Mountains?|Gulf|Coast|Islands?))")),
    Form(r"\b(?:company|label|publisher|network|studio|record label|manufacturer|developer|distributor)\b", (rf"\b(?:released|published|produced|developed|distributed|manufactured|owned|made|broadcast|aired|signed)(?: \w+)* (?:by|on|to|through|via|under) (?:the )?({NAME})", rf"({NAME} (?:Records|Entertainment|Pictures|Studios|Games|Inc|Network|Corporation|Company))")),
    *_event_forms(),
    *_agent_forms(),
    Form(r"(?:which|what) (?:country|nation)", (r"\b(?:in|of|from) (?:[^.;]{0,40}? , )?((?:the )?(?:United States|United Kingdom|Soviet Union|New Zealand|South Africa|Czech Republic|Costa Rica|[A-Z]\w+))(?= \.|$| ,? (?:and|that|which|with|who))",), lambda s: re.sub(r"^the ", "", s)),
    Form(r"(?:which|what) (?:state|province)", (rf"\bstate of ({NAME})", *_LOCATED), lambda s: s.split(" , ")[1] if " , " in s else s),
    Form(r"(?:which|what) county", (rf"({NAME} County)\b", rf"(County {NAME})\b", rf"\bcounty of ({NAME})")),
    Form(r"(?:which|what) (?P<kind>suburb|district|borough|neighbourhood|neighborhood|village|ward)", (rf"\b(?:in|of|from) (?:the )?({NAME}) <kind>", rf"\b<kind> of ({NAME})"), first_place),
    Form(r"(?:which|what) (?:city|town|village|municipality|district|borough|suburb|neighbou?rhood)", _LOCATED, first_place),
    Form(r"^where (?:is|are|was|were) (?:\w+ ?){1,3}\??$|\blocat(?:ed|ion)\b", _LOCATED),
)  # fmt: skip
"""In order: what a question says first decides."""
