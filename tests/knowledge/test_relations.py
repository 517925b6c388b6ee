"""Inverse relations have names of their own; of several relations the most telling one is kept."""

import pytest

from hf_storyend.knowledge.relations import (
    INVERSES,
    SYMMETRIC_RELATIONS,
    inverse_relation,
    is_external,
    telling_order,
)


@pytest.mark.parametrize(
    ("relation", "inverse"),
    [
        ("Causes", "CausedBy"),
        ("HasSubevent", "SubeventOf"),
        ("HasPrerequisite", "PrerequisiteOf"),
        ("MotivatedByGoal", "GoalOf"),
        ("CausesDesire", "DesireCausedBy"),
        ("AtLocation", "LocationOf"),
        ("IsA", "HasKind"),
        ("Fears", "InverseOfFears"),
    ],
)
def test_inverse(relation: str, inverse: str) -> None:
    assert inverse_relation(relation) == inverse


@pytest.mark.parametrize("relation", sorted(SYMMETRIC_RELATIONS))
def test_symmetric_relations_are_their_own_inverse(relation: str) -> None:
    assert inverse_relation(relation) == relation


def test_no_name_is_used_twice() -> None:
    names = [*INVERSES, *INVERSES.values(), *SYMMETRIC_RELATIONS]
    assert len(set(names)) == len(names)


def test_what_happens_comes_before_what_things_are() -> None:
    mixed = ["RelatedTo", "Fears", "IsA", "Synonym", "CausedBy", "UsedFor", "CausesDesire", "HasSubevent"]
    assert sorted(mixed, key=telling_order) == [
        "CausedBy",
        "HasSubevent",
        "CausesDesire",
        "UsedFor",
        "IsA",
        "Fears",
        "Synonym",
        "RelatedTo",
    ]


def test_external_relations() -> None:
    assert is_external("dbpedia/genre")
    assert is_external("ExternalURL")
    assert not is_external("IsA")
