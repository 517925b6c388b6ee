"""What a triple of the user's does to its tail."""

import pytest
import torch
from datasets import Dataset
from small_model import small_model

from hf_storyend import KnowledgeTable
from hf_storyend.evaluation.user_triples import measure_user_triples

STORIES = Dataset.from_dict(
    {
        "context": [["Anna baked a cake.", "She watched a film."], ["Anna watched television."], ["It was a cake."]],
        "ending": ["She liked it.", "It was a good film.", "She liked the cake."],
    }
)


def test_a_pointer_gains_what_its_gate_and_the_weight_say(tokenizer):
    model = small_model("ie-copy-tails", tokenizer)
    pointer = model.encoder.tail_pointer
    with torch.no_grad():
        # Every key is zero: the score of a triple is 2 whatever it is.
        for weight in (pointer.triple_projection.weight, pointer.triple_projection.bias, pointer.gate.weight):
            weight.zero_()
        pointer.state_projection.weight.zero_()
        pointer.gate.bias.copy_(torch.tensor([2.0, 0.0]))
    tokenizer.knowledge = KnowledgeTable(["UsedFor"], triples={"film": [("film", "UsedFor", "cake")]})
    gain = measure_user_triples(model, tokenizer, STORIES.select([1]))
    # "cake" is the only tail. It is rare, so that a factor of 1 + exp(2) hardly changes the sum of all words.
    assert gain.num_stories == 1
    assert 0.5 < gain.median <= gain.median_of_best < torch.log1p(torch.tensor(2.0).exp()).item()


def test_a_model_that_reads_no_triples_gains_nothing(tokenizer):
    gain = measure_user_triples(small_model("ie-copy", tokenizer), tokenizer, STORIES)
    assert gain.median == gain.median_of_best == 0


@pytest.mark.parametrize("max_stories", [1, 3])
def test_the_choice_depends_on_the_seed_alone(tokenizer, max_stories):
    model = small_model("ie-copy-tails", tokenizer)
    first, again = (measure_user_triples(model, tokenizer, STORIES, max_stories=max_stories, seed=4) for _ in range(2))
    assert first == again and first.num_stories == max_stories


def test_without_relations_there_is_nothing_to_add(tokenizer):
    model = small_model("ie-copy-tails", tokenizer)
    tokenizer.knowledge = KnowledgeTable()
    assert measure_user_triples(model, tokenizer, STORIES) is None
