"""The corpus that comes with the package keeps its promises."""

import re
from collections import Counter

from hf_storyend.data.embedded import embedded_stories, embedded_tokenizer, embedded_triples

RELATIONS = {
    "Antonym", "AtLocation", "CapableOf", "Causes", "CausesDesire", "CreatedBy", "Desires", "HasA", "HasFirstSubevent",
    "HasLastSubevent", "HasPrerequisite", "HasProperty", "HasSubevent", "IsA", "LocatedNear", "MadeOf",
    "MotivatedByGoal", "PartOf", "ReceivesAction", "RelatedTo", "Synonym", "UsedFor",
}  # fmt: skip


def test_stories():
    stories = embedded_stories()
    assert len(stories) >= 600
    sentences = [sentence for story in stories for sentence in (*story["context"], story["ending"])]
    assert all(len(story["context"]) == 4 for story in stories)
    assert len({re.sub(r"\W", "", sentence.lower()) for sentence in sentences}) == len(sentences), "no line twice"
    assert all(5 <= len(sentence.split()) <= 14 for sentence in sentences)
    assert all(sentence[-1] in '.!?"' and sentence.isascii() for sentence in sentences)


def test_it_is_not_one_template():
    openings = Counter(" ".join(story["ending"].split()[:3]) for story in embedded_stories())
    assert openings.most_common(1)[0][1] < 0.03 * openings.total()


def test_triples():
    triples = embedded_triples()
    assert 300 <= len(triples) < 1000 and len({(head, tail) for head, _, tail in triples}) == len(triples)
    assert {relation for _, relation, _ in triples} <= RELATIONS
    assert all(word.isalpha() and word.islower() for head, _, tail in triples for word in (head, tail))


def test_tokenizer():
    tokenizer = embedded_tokenizer()
    batch = tokenizer([story["context"] for story in embedded_stories()], return_tensors="pt")
    assert tokenizer.unk_token_id not in batch["input_ids"]
    assert batch["triple_mask"].any(dim=-1).float().sum() / batch["attention_mask"].sum() > 0.1
