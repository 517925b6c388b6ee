"""From candidates, scored by a teacher, to a ranker: every step resumes, and the model itself stays as it is."""

import importlib.util
import json
import math
import random
import re
from pathlib import Path

import pytest
import torch
from ranking_cases import CONTEXTS, ENDINGS, STORIES
from small_model import small_model
from small_tokenizer import SENTENCES, small_tokenizer
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    BertTokenizer,
    TrainingArguments,
)

from hf_storyend.ranking import rank
from hf_storyend.ranking.candidates import read_lines, save_candidates
from hf_storyend.ranking.contrasts import with_person_changed, with_polarity_changed
from hf_storyend.ranking.neighbours import endings_of_neighbours
from hf_storyend.ranking.pretrained_encoder import start_from_encoder
from hf_storyend.ranking.teacher import fine_tune_teacher, save_scores, score_endings
from hf_storyend.ranking.training import (
    RankerLoss,
    ScoredStory,
    add_ranker,
    collate,
    read_stories,
    train_ranker,
    with_wrong_endings,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {"ranker_size": 8, "ranker_embedding_size": 6, "num_ranker_layers": 2, "num_ranker_heads": 2}


@pytest.fixture
def tokenizer():
    return small_tokenizer()


@pytest.fixture
def model(tokenizer):
    return small_model("ie-copy-tails", tokenizer)


def arguments(path, **settings):
    settings = {"per_device_train_batch_size": 2, "num_train_epochs": 4, "learning_rate": 0.02, **settings}
    return TrainingArguments(
        output_dir=str(path), use_cpu=True, report_to=[], disable_tqdm=True, remove_unused_columns=False, **settings
    )


def test_candidates_go_on_after_an_interruption(model, tokenizer, tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    settings = {"num_candidates": 5, "num_beams": 2, "batch_size": 2}
    save_candidates(whole, model, tokenizer, CONTEXTS, **settings)
    lines = whole.read_text().splitlines(keepends=True)
    cut.write_text("".join(lines[:2]) + lines[2][:9])
    save_candidates(cut, model, tokenizer, CONTEXTS, **settings)
    assert cut.read_text() == whole.read_text()
    found = list(read_lines(whole))
    assert [line["story"] for line in found] == [0, 1, 2, 3]
    assert all(len(set(line["endings"])) == len(line["endings"]) > 1 for line in found)


def test_scores_of_a_teacher_are_log_probabilities(teacher):
    """Against one forward pass a word."""
    network, words = teacher
    for context, endings in ((CONTEXTS[0], ENDINGS[:2]), (CONTEXTS[1], ENDINGS[2:3])):
        for ending, score in zip(endings, score_endings(network, words, context, endings), strict=True):
            ids = words(" ".join(context))["input_ids"]
            total = 0.0
            for word in [*words(ending)["input_ids"], words.eos_token_id]:
                total += network(torch.tensor([ids])).logits[0, -1].log_softmax(dim=0)[word].item()
                ids = [*ids, word]
            assert score == pytest.approx(total, rel=1e-4)


def test_a_teacher_learns_its_stories_and_resumes(teacher, tmp_path):
    network, words = teacher
    before = sum(score_endings(network, words, context, [ending])[0] for context, ending in STORIES)
    fine_tune_teacher(network, words, STORIES, arguments(tmp_path, save_steps=4))
    network.eval()
    after = sum(score_endings(network, words, context, [ending])[0] for context, ending in STORIES)
    assert after > before + 5
    done = json.loads((tmp_path / "checkpoint-8" / "trainer_state.json").read_text())["global_step"]
    # All steps are done: a second start only loads the last checkpoint.
    fine_tune_teacher(network, words, STORIES, arguments(tmp_path, save_steps=4))
    assert done == 8 and sorted(path.name for path in tmp_path.glob("checkpoint-*")) == [
        "checkpoint-4",
        "checkpoint-8",
    ]


def test_scores_go_on_after_an_interruption(teacher, tmp_path):
    network, words = teacher
    candidates, whole, cut = (tmp_path / name for name in ("candidates", "whole", "cut"))
    candidates.write_text("".join(json.dumps({"story": n, "endings": ENDINGS[:2]}) + "\n" for n in range(4)))
    save_scores(whole, candidates, network, words, STORIES)
    lines = whole.read_text().splitlines(keepends=True)
    cut.write_text("".join(lines[:2]) + "{")
    save_scores(cut, candidates, network, words, STORIES)
    assert cut.read_text() == whole.read_text()
    for number, line in enumerate(read_lines(whole)):
        assert line["endings"] == [*ENDINGS[:2], ENDINGS[number]] and len(line["teacher_scores"]) == 3


def scored_stories():
    """The teacher likes short endings."""
    endings = ["They burn cakes.", "The kitchen was full of smoke and mice.", "Anna asked Tom about mice."]
    scores = [-3.0 * len(text.split()) for text in endings]
    return [ScoredStory(context, endings, scores, human) for context, human in STORIES]


def test_a_ranker_starts_as_the_models_log_probability(model, tokenizer, tmp_path):
    add_ranker(model, **SIZES)
    model.eval().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    ranked = rank(CONTEXTS[0], ENDINGS, tmp_path)
    scores = [item["log_probability"] for item in ranked]
    assert scores == sorted(scores, reverse=True)


def test_a_ranker_learns_from_its_teacher_and_leaves_the_model_alone(model, tokenizer, tmp_path):
    add_ranker(model, **SIZES, ranker_dropout=0.0)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    train_ranker(model, tokenizer, scored_stories(), arguments(tmp_path, num_train_epochs=20, save_strategy="no"))
    changed = {name for name, weight in model.state_dict().items() if not torch.equal(weight, before[name])}
    assert changed and all(name.startswith("ranker.") for name in changed)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    for story in scored_stories():
        best = max(zip(story.teacher_scores, story.candidates, strict=True))[1]
        assert rank(story.context, story.candidates, tmp_path / "model")[0]["ending"] == best


def test_the_loss_of_a_story():
    """Against sums written out; endings that only fill up a batch do not count."""
    story = ScoredStory(CONTEXTS[0], ENDINGS[:2], [-4.0, -7.0], ENDINGS[2], (ENDINGS[3],))
    scores = torch.tensor([1.0, 2.0, 0.5, -1.0, 99.0])
    value = float(RankerLoss(temperature=3.0, human_weight=0.5)(scores, story))
    teacher = [math.exp(-4 / 3), math.exp(-7 / 3)]
    share = teacher[0] / sum(teacher)
    own = math.exp(1.0) / (math.exp(1.0) + math.exp(2.0))
    divergence = share * math.log(share / own) + (1 - share) * math.log((1 - share) / (1 - own))
    among_wrong = math.log(1 + math.exp(-1.5))
    assert value == pytest.approx(divergence + 0.5 * among_wrong, rel=1e-5)
    unscored = ScoredStory(CONTEXTS[0], [], [], ENDINGS[2], (ENDINGS[3],))
    assert float(RankerLoss(human_weight=2.0)(scores[2:], unscored)) == pytest.approx(2 * among_wrong, rel=1e-5)


def test_what_was_read_is_what_ranking_reads(model, tokenizer):
    """Scores of candidates, whatever else is in the batch."""
    add_ranker(model, **SIZES)
    torch.nn.init.normal_(model.eval().ranker.scorer.weight)
    stories = with_wrong_endings(scored_stories(), number=2)
    batch = collate(read_stories(model, tokenizer, stories, batch_size=3))
    scores = model.ranker(**{name: value for name, value in batch.items() if name != "stories"})
    for row, story in zip(scores.tolist(), stories, strict=True):
        labels = tokenizer(
            [story.context] * len(story.candidates),
            text_target=story.candidates,
            return_triples=False,
            return_tensors="pt",
        )["labels"]
        expected = model.rank_endings(labels[None], **tokenizer([story.context], return_tensors="pt")).scores[0]
        assert row[: len(story.candidates)] == pytest.approx(expected.tolist(), rel=1e-4, abs=1e-5)


def test_people_are_compared_without_what_the_model_thinks_of_their_endings(model, tokenizer):
    """A new ranker is the model's log probability: it says nothing of the human ending and wrong ones."""
    add_ranker(model, **SIZES)
    stories = with_wrong_endings([ScoredStory(context, [], [], human) for context, human in STORIES], number=2)
    batch = collate(read_stories(model.eval(), tokenizer, stories))
    scores = model.ranker(**{name: value for name, value in batch.items() if name != "stories"})
    for row, story in zip(scores, stories, strict=True):
        assert len(story.endings) > 1 and len(set(row[: len(story.endings)].tolist())) == 1


@pytest.mark.parametrize(
    ("ending", "changed"),
    [
        ("She loved it.", "She hated it."),
        ("Sad, he left.", "Happy, he left."),
        ("They didn't go.", "They did go."),
        ("He was at home.", "He wasn't at home."),
        ("They walked home.", None),
    ],
)
def test_polarity_is_changed(ending, changed):
    assert with_polarity_changed(ending, random.Random(0)) == changed


@pytest.mark.parametrize(
    ("ending", "changed"),
    [
        ("He lost his keys.", "She lost her keys."),
        ("She hurt herself.", "He hurt himself."),
        ("He called her.", None),
        ("They left.", None),
    ],
)
def test_the_person_is_changed(ending, changed):
    assert with_person_changed(ending) == changed


def test_wrong_endings_are_others_and_not_the_human_one():
    stories = with_wrong_endings([ScoredStory(context, [], [], human) for context, human in STORIES], number=2)
    assert [story.human for story in stories] == ENDINGS
    assert all(story.human not in story.wrong and story.wrong for story in stories)
    assert (
        "The kitchen wasn't full of smoke." in stories[0].wrong
        or "The kitchen was empty of smoke." in stories[0].wrong
    )


@pytest.fixture
def encoder(tmp_path):
    """A small BERT, whose words are those of the stories."""
    words = sorted({word.lower() for text in [*SENTENCES, *ENDINGS] for word in re.findall(r"\w+|[.!?]", text)})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (tmp_path / "vocab.txt").write_text("\n".join([*special, *words]))
    torch.manual_seed(1)
    sizes = {"hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=len(special) + len(words), hidden_act="gelu", initializer_range=0.5, **sizes)
    network = BertModel(config).eval()
    network.save_pretrained(tmp_path / "bert")
    pieces = BertTokenizer(str(tmp_path / "vocab.txt"))
    pieces.save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def test_a_ranker_that_starts_from_an_encoder_computes_what_the_encoder_does(model, tokenizer, encoder):
    """With all components of the word vectors, the mean over a story's words is that of the encoder's layers."""
    add_ranker(model, **{**SIZES, "ranker_embedding_size": 8})
    start_from_encoder(model.eval().ranker, tokenizer, encoder)
    bert, pieces = BertModel.from_pretrained(encoder).eval(), AutoTokenizer.from_pretrained(encoder)
    text = "The kitchen was full of smoke ."
    ids = torch.tensor([[pieces.cls_token_id, *pieces(text, add_special_tokens=False)["input_ids"]]])
    assert pieces.unk_token_id not in ids
    expected = bert(input_ids=ids, output_hidden_states=True).hidden_states[2]
    labels = tokenizer([["They burn cakes."]], text_target=[text], return_triples=False, return_tensors="pt")["labels"]
    words = torch.cat((torch.tensor([[tokenizer.bos_token_id]]), labels[:, :-1]), dim=1)
    ranker = model.ranker
    found, mask = ranker.embed(words, torch.arange(words.shape[1])[None]), torch.ones_like(words).bool()
    for layer in ranker.layers:
        found, _ = layer(found, mask)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"ranker_size": 16}, "`ranker_size`"), ({"num_ranker_heads": 4}, "heads"), ({"num_ranker_layers": 4}, "layers")],
)
def test_an_encoder_of_another_size_is_refused(model, tokenizer, encoder, settings, message):
    add_ranker(model, **{**SIZES, **settings})
    with pytest.raises(ValueError, match=message):
        start_from_encoder(model.ranker, tokenizer, encoder)


def test_neighbours_are_similar_stories_whose_names_fit():
    contexts = [["Tom fished at the lake."], ["He fished at a big lake."], ["Ann fished at the lake."], ["She sang."]]
    endings = ["Tom caught a trout.", "He caught nothing.", "Then Ann fell in.", "Everyone clapped."]
    found = endings_of_neighbours(contexts, endings, 3)
    assert found[0] == ("He caught nothing.", "Everyone clapped.")
    assert found[2][0] == "He caught nothing." and "Tom caught a trout." not in found[2]


def test_without_a_ranker_endings_are_ranked_by_log_probability(model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    ranked = rank(CONTEXTS[0], ENDINGS, tmp_path)
    assert [item["score"] for item in ranked] == [item["log_probability"] for item in ranked]
    assert sorted(item["ending"] for item in ranked) == sorted(ENDINGS)


@pytest.mark.slow
def test_the_example_runs_all_steps_and_skips_those_that_are_done(model, tokenizer, teacher, encoder, tmp_path):
    network, words = teacher
    for part, name in ((model, "model"), (tokenizer, "model"), (network, "teacher"), (words, "teacher")):
        part.save_pretrained(tmp_path / name)
    lines = [json.dumps({"context": context, "ending": ending}) + "\n" for context, ending in STORIES]
    (tmp_path / "train.jsonl").write_text("".join(lines))
    command = [
        *("--model", str(tmp_path / "model"), "--teacher", str(tmp_path / "teacher"), "--num_teacher_stories", "2"),
        *("--stories", str(tmp_path / "train.jsonl"), "--output_dir", str(tmp_path / "out")),
        *("--num_train_epochs", "1", "--encoder", str(encoder), "--num_contrast_stories", "4"),
        *(word for name, size in SIZES.items() for word in (f"--{name}", str(size))),
    ]
    specification = importlib.util.spec_from_file_location("train_ranker", EXAMPLES / "train_ranker.py")
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    example.main(command)
    written = {path: path.read_text() for path in (tmp_path / "out").glob("*.jsonl")}
    assert len(written) == 2
    ranked = rank(CONTEXTS[0], ENDINGS, tmp_path / "out" / "model")
    example.main(command)
    assert {path: path.read_text() for path in written} == written
    again = rank(CONTEXTS[0], ENDINGS, tmp_path / "out" / "model")
    assert [item["ending"] for item in again] == [item["ending"] for item in ranked]
