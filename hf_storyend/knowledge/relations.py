"""Relations of ConceptNet: the names of their inverses, and which of several says most about a story."""

from __future__ import annotations

SYMMETRIC_RELATIONS = frozenset(
    "Antonym DistinctFrom EtymologicallyRelatedTo LocatedNear RelatedTo SimilarTo Synonym".split()
)

# The most telling first: what happens and why, then what things are for, then what they are.
INVERSES = {
    "Causes": "CausedBy",
    "HasSubevent": "SubeventOf",
    "HasLastSubevent": "LastSubeventOf",
    "HasFirstSubevent": "FirstSubeventOf",
    "HasPrerequisite": "PrerequisiteOf",
    "MotivatedByGoal": "GoalOf",
    "CausesDesire": "DesireCausedBy",
    "Desires": "DesiredBy",
    "NotDesires": "NotDesiredBy",
    "Entails": "EntailedBy",
    "UsedFor": "UsesTool",
    "CapableOf": "AbilityOf",
    "NotCapableOf": "NotAbilityOf",
    "ReceivesAction": "ActionOn",
    "CreatedBy": "Creates",
    "AtLocation": "LocationOf",
    "HasProperty": "PropertyOf",
    "NotHasProperty": "NotPropertyOf",
    "HasA": "BelongsTo",
    "PartOf": "HasPart",
    "MadeOf": "MaterialOf",
    "MannerOf": "HasManner",
    "SymbolOf": "HasSymbol",
    "IsA": "HasKind",
    "InstanceOf": "HasInstance",
    "DefinedAs": "DefinitionOf",
    "DerivedFrom": "HasDerivative",
    "FormOf": "HasForm",
    "HasContext": "ContextOf",
}
_LAST = ("Antonym", "DistinctFrom", "LocatedNear", "Synonym", "SimilarTo", "EtymologicallyRelatedTo", "RelatedTo")
_ORDER = {name: place for place, name in enumerate(name for pair in INVERSES.items() for name in pair)}
_ORDER |= {name: 2 * len(_ORDER) + place for place, name in enumerate(_LAST)}


def inverse_relation(relation: str) -> str:
    """Return the name of the inverse: the relation itself if it is symmetric."""
    if relation in SYMMETRIC_RELATIONS:
        return relation
    return INVERSES.get(relation, f"InverseOf{relation}")


def is_external(relation: str) -> bool:
    """Return whether a relation comes from an encyclopaedia (`dbpedia/genre`) or ends in a web address."""
    return "/" in relation or relation == "ExternalURL"


def telling_order(relation: str) -> tuple[int, str]:
    """Return a sort key: the most telling relation is first, those of other sources come before `_LAST`."""
    return _ORDER.get(relation, len(_ORDER)), relation
