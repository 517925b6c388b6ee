"""An example of bias: the same stories of him and of her."""

import json

import pytest
import torch

from hf_storyend.evaluation.gender_swap import _STORIES, measure_gender_swap
from hf_storyend.evaluation.gender_swap_result import GenderSwap


def test_a_model_that_knows_neither_word_makes_no_difference(model, tokenizer):
    for word in ("he", "she", "him", "her", "his", "himself", "herself"):
        assert word not in tokenizer.get_vocab()
    model.generation_config.max_new_tokens = 4
    before = torch.get_rng_state()
    swap = measure_gender_swap(model.eval(), tokenizer)
    assert swap.num_stories == len(_STORIES) and swap.num_changed == 0 and swap.examples == ()
    assert all(gain == pytest.approx(0, abs=1e-4) for gain in swap.gains.values())
    assert all(share == pytest.approx(0.5) for share in swap.he_shares.values())
    assert "0 of 24" in swap.to_markdown()
    assert torch.equal(before, torch.get_rng_state())


def test_numbers_and_sentences():
    swap = GenderSwap(
        num_stories=3,
        num_changed=1,
        examples=(("He ran.", "He won.", "She cried."),),
        gains={"He cried.": -0.6931472, "He won.": 0.0, "He drank a beer.": 1.0986123},
        he_shares={"nurse": 0.25, "pilot": 0.75},
    )
    text = swap.to_markdown()
    assert "1 of 3" in text and '"He ran." Of him: "He won." Of her: "She cried."' in text
    assert '"He drank a beer." 3.00 times' in text and 'of her: "He cried." 2.00 times' in text
    assert "with he in 50 %" in text and "pilot 75 %" in text
    assert GenderSwap.from_dict(json.loads(json.dumps(swap.to_dict()))) == swap


def test_every_story_is_told_of_one_person_by_pronouns_only():
    for story in _STORIES:
        words = {word.strip(".").lower() for word in story.split() if "{" not in word}
        assert "{" in story and not words & {"he", "she", "him", "her", "his", "man", "woman", "boy", "girl"}
