"""Words out of the vocabulary in ids: any decoding prints them, whoever made them and whenever."""

import copy
import pickle
import threading

import pytest
import torch
from datasets import Dataset
from datasets.fingerprint import Hasher
from hypothesis import given
from hypothesis import strategies as st
from small_model import small_model
from small_tokenizer import small_tokenizer
from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments, TextStreamer

from hf_storyend.modeling.oov_ids import OOVNames, to_named_ids, to_slots

# A name with letters that no id can spell, a name of two cases, and names of one case.
STORIES = ["Łucja put a cake in the oven. They saw Zorbl.", "McDuff put a cake in the oven. They saw Ludmila."]
PREDICTIONS = ["Łucja asked.", "McDuff asked."]
ENDINGS = ["Then Zorbl was burnt.", "Then McDuff saw Ludmila."]


@pytest.fixture(scope="module")
def copying():
    tokenizer = small_tokenizer()
    tokenizer.num_copy_slots = 3
    return tokenizer


@pytest.fixture(scope="module")
def copier(copying):
    """A model that has learnt to write the first unknown word of a story."""
    model = small_model("ie-copy", copying, knowledge=None).train()
    stories = [f"{name} put a cake in the oven. They saw Zorbl." for name in ("Wolfram", "Marla", "Ottokar")]
    endings = [f"{story.split()[0]} asked." for story in stories]
    batch = copying(stories, text_target=endings, return_tensors="pt")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    for _ in range(40):
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


def names_in(tokenizer, stories):
    """What is printed of the words of stories that the vocabulary lacks, and of nothing else."""
    copies = tokenizer(stories)["copy_ids"]
    return [
        [tokenizer.decode([index]) for row in story for index in row if index >= len(tokenizer)] for story in copies
    ]


def test_words_are_decoded_without_the_story(copying):
    assert names_in(copying, STORIES) == [["Łucja", "Zorbl"], ["McDuff", "Ludmila"]]
    ids = copying(STORIES, return_tensors="pt")["copy_ids"]
    assert copying.batch_decode(ids[:, 1], skip_special_tokens=True) == ["They saw Zorbl.", "They saw Ludmila."]
    assert copying.batch_decode(ids[:, 1].numpy(), skip_special_tokens=True)[0] == "They saw Zorbl."
    assert copying.decode(ids[0, 1], skip_special_tokens=True) == "They saw Zorbl."
    gathered = ids[0, 1].masked_fill(ids[0, 1] == copying.pad_token_id, -100)
    assert copying.decode(gathered, skip_special_tokens=True) == "They saw Zorbl.", "Trainer pads with -100"


def test_another_process_reads_what_is_spelled_and_calls_the_rest_unknown(copying):
    ids = copying(STORIES, return_tensors="pt")["copy_ids"].flatten(1)
    other = pickle.loads(pickle.dumps(copying))
    assert other.decode(ids[0], skip_special_tokens=True) == STORIES[0].replace("Łucja put", "<unk> Put")
    assert other.decode(ids[1], skip_special_tokens=True) == STORIES[1]
    assert other.batch_decode(ids, skip_special_tokens=True, context=STORIES) == STORIES


def test_labels_are_columns_of_the_logits(copying, copier):
    """Losses of others look them up: no id in them spells a word."""
    batch = copying(STORIES, text_target=ENDINGS, return_tensors="pt")
    assert int(batch["labels"].max()) == len(copying) + 1 < copier.config.num_output_words
    assert copying.batch_decode(batch["labels"], skip_special_tokens=True, context=STORIES) == ENDINGS
    named = batch["labels"].clone()
    named[0, 1] = batch["copy_ids"][0, 1, 2]
    assert named[0, 1] > copier.config.num_output_words
    torch.testing.assert_close(copier(**{**batch, "labels": named}).loss, copier(**batch).loss)


def test_ids_depend_on_the_story_only(copying):
    fresh = copy.deepcopy(copying)
    copying(["Wolfram saw Brunhilde.", "Zorbl saw McDuff."])
    assert copying(STORIES)["copy_ids"] == fresh(STORIES)["copy_ids"]


def test_the_fingerprint_of_cached_data_sets_stays(copying):
    before = Hasher.hash(copying)
    batch = copying(STORIES, text_target=ENDINGS, return_tensors="pt")
    copying.batch_decode(batch["labels"])
    copying.encode(STORIES[0])
    copying.pad([{"input_ids": [1, 2]}, {"input_ids": [1]}])
    assert Hasher.hash(copying) == before


def test_a_generated_name_is_printed_without_the_story(copying, copier):
    batch = copying(STORIES, return_tensors="pt")
    for settings in ({}, {"num_beams": 3}, {"do_sample": True, "temperature": 0.1}):
        generated = copier.generate(**batch, **settings)
        assert copying.batch_decode(generated, skip_special_tokens=True) == PREDICTIONS, settings
    several = copier.generate(**batch, num_beams=3, num_return_sequences=3, return_dict_in_generate=True).sequences
    assert copying.batch_decode(several, skip_special_tokens=True)[::3] == PREDICTIONS


def test_generated_ids_go_on_as_prompts_and_score_as_they_did(copying, copier):
    batch = copying(STORIES, return_tensors="pt")
    whole = copier.generate(**batch, return_dict_in_generate=True, output_scores=True)
    begun = copier.generate(**batch, max_new_tokens=1)
    assert (begun[:, 1] >= len(copying)).all()
    again = copier.generate(**batch, decoder_input_ids=begun)
    assert torch.equal(again, whole.sequences)
    scores = copier.compute_transition_scores(whole.sequences, whole.scores, normalize_logits=True)
    logits = copier(**batch, decoder_input_ids=whole.sequences[:, :-1]).logits
    columns = copier.output_columns(whole.sequences[:, 1:]).unsqueeze(2)
    assert scores.isfinite().all()
    # Suppressed words take part in the softmax of the model, not in that of the scores.
    expected = logits.index_fill(2, torch.tensor([0, 1, 2]), -torch.inf).log_softmax(-1).gather(2, columns)
    torch.testing.assert_close(scores, expected.squeeze(2), rtol=1e-4, atol=1e-4)


def test_a_streamer_prints_the_name(copying, copier, capsys):
    batch = copying(STORIES[0], return_tensors="pt")
    copier.generate(**batch, streamer=TextStreamer(copying, skip_special_tokens=True))
    assert capsys.readouterr().out.strip() == PREDICTIONS[0]


def test_threads_and_batches_in_flight(copying):
    """Stories with many words that no id can spell, read and decoded in turns."""
    problems = []

    def work(thread: int) -> None:
        batches = []
        for number in range(20):
            name = f"Unspellable{thread}x{number}"
            batches.append((name, copying(f"They saw {name}.")["copy_ids"][0]))
        problems.extend(name for name, ids in batches if copying.decode(ids) != f"They saw {name}.")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_remembered_words_are_bounded(monkeypatch):
    monkeypatch.setattr("hf_storyend.modeling.oov_ids._MAX_REMEMBERED", 10)
    names = OOVNames()
    ids = [names.ids([f"Unspellable{number}"], 100, 4)[0] for number in range(30)]
    known = [names.word(index, 100, 4) for index in ids]
    assert known == [None] * 20 + [f"Unspellable{number}" for number in range(20, 30)]


@pytest.mark.parametrize(
    "word", "zorblaxians Zorblaxians ZORBLAXIANS McDonalds O'Brien José François 3:30 2nd iPhone $20 x-ray".split()
)
def test_what_any_process_reads(word):
    assert OOVNames().word(OOVNames().ids([word], 10_000, 32)[0], 10_000, 32) == word


@given(st.lists(st.text(min_size=1, max_size=20), unique=True, max_size=6), st.sampled_from([6, 32, 65_536]))
def test_ids_and_words(words, num_slots):
    names = OOVNames()
    ids = names.ids(words, 1000, num_slots)
    assert all(1000 <= index < 2**63 for index in ids)
    assert [names.word(index, 1000, num_slots) for index in ids] == words
    slots = to_slots(torch.tensor(ids, dtype=torch.long), 1000, num_slots)
    assert slots.tolist() == [1000 + number for number in range(len(words))]
    if words:
        story = torch.tensor([[5, *ids]])
        assert to_named_ids(slots.repeat(3, 1), story, 1000, num_slots).tolist() == [ids] * 3
    # Another tokenizer reads the same word, or none.
    assert all(OOVNames().word(index, 1000, num_slots) in (word, None) for index, word in zip(ids, words, strict=True))


def test_seq2seq_trainer_predicts_names(copying, copier, tmp_path):
    """Batches of stories of different sizes, gathered with -100, decoded by compute_metrics and afterwards."""
    rows = {"story": STORIES, "ending": [ENDINGS[0], "Then McDuff."]}

    def read(batch):
        return copying(batch["story"], text_target=batch["ending"], return_triples=False)

    dataset = Dataset.from_dict(rows).map(read, batched=True, remove_columns=["story", "ending"])
    decoded = []

    def compute_metrics(prediction):
        decoded.extend(copying.batch_decode(prediction.predictions, skip_special_tokens=True))
        references = copying.batch_decode(prediction.label_ids, skip_special_tokens=True, context=rows["story"])
        return {"same_references": references == rows["ending"]}

    arguments = Seq2SeqTrainingArguments(
        str(tmp_path), per_device_eval_batch_size=1, predict_with_generate=True, use_cpu=True, report_to=[],
        disable_tqdm=True, generation_max_length=9,
    )  # fmt: skip
    trainer = Seq2SeqTrainer(
        copier,
        arguments,
        processing_class=copying,
        data_collator=DataCollatorForSeq2Seq(copying, model=copier),
        compute_metrics=compute_metrics,
    )
    output = trainer.predict(dataset)
    assert output.metrics["test_same_references"]
    assert decoded == PREDICTIONS
    assert copying.batch_decode(output.predictions, skip_special_tokens=True) == decoded
    assert "<unk>" not in "".join(copying.batch_decode(output.predictions))
