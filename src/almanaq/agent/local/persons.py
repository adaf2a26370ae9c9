"""Which relations hold people: "who" and "everyone" speak of their rows."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.agent.local.links import Links, RelationLink
from almanaq.agent.local.schema_index import Place, SchemaIndex
from almanaq.agent.local.spoken import relation_stems
from almanaq.agent.local.words import word_set
from almanaq.suql.catalog.relations import Relation

_PEOPLE = word_set(
    """
    person member employee staff customer client patient doctor nurse student teacher professor pupil user guest author
    writer artist singer actor actress director player coach referee contact applicant candidate tenant owner agent
    seller buyer subscriber visitor volunteer donor participant attendee driver pilot passenger manager worker colleague
    resident citizen friend child parent man woman athlete swimmer wrestler gymnast poker musician conductor performer
    reviewer borrower reader lawyer engineer instructor technician trainer speaker advisor supervisor assistant
    official politician president senator king queen host borrower personnel crew relative
    """
)
_TRAITS = frozenset(("birth", "age", "pay"))
_OF_PEOPLE = word_set("gender sex surname firstname lastname nationality birthday hired hometown")
_WHO = word_set("who whom everyone everybody anyone anybody")


def holds_people(relation: Relation, places: Sequence[Place]) -> bool:
    """Say whether the rows of a relation are people, by its name or by what only people have."""
    if _PEOPLE & set(relation_stems(relation)[-1:]):
        return True
    stems = {part for place in places for part in place.stems}
    return bool({"first", "last", "name"} <= stems or stems & _OF_PEOPLE or any(_TRAITS & p.roles for p in places))


def _does(links: Links) -> bool:
    """Say whether a verb names those who do it: "who supplies" the suppliers."""
    doing = (relation_stems(r)[-1:] for link in links.relations if link.verb for r in link.relations)
    return any(stem and stem[0].endswith(("er", "or")) for stem in doing)


def link_people(links: Links, index: SchemaIndex) -> None:
    """Link "who" and "everyone" to the relations of people, where no noun or verb of the question names one."""
    people = tuple(r for r in index.catalog.relations if holds_people(r, index.places[r.name]))
    named = {r.name for link in links.relations for r in link.relations}
    at = next((i for i, word in enumerate(links.words) if word.folded in _WHO), None)
    if at is None or not people or any(r.name in named for r in people) or _does(links):
        return
    if at == 0 and not named and not any(c.verb for c in links.columns):
        named = {place.relation.name for value in links.values for place, _ in value.meanings}
        if any(r.name in named for r in people):
            return
    everyone = links.folded(at).startswith(("every", "any"))
    if everyone or (at == 0 and named):
        nearest = [r for r in people if any(hop.right in named for hop in index.hops[r.name])]
        links.relations.insert(0, RelationLink(at, tuple(nearest) or people, verb=not everyone))
        links.take(at, at + 1, "relation")
