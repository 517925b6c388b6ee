"""The graphs of an export against the model, run by torch: no ONNX is needed to see that they read the same."""

import numpy as np
import torch
from small_model import small_model

from hf_storyend.export.graphs import DecoderStepGraph, EncoderGraph, input_names
from hf_storyend.export.runner import OnnxGenerator

STORIES = ["Quentin put a cake in the oven. They saw Zorbl.", "McDuff asked. Tom opened the window. Tom asked."]


@torch.no_grad()
def test_graphs_read_words_out_of_the_vocabulary_as_the_tokenizer_gives_them(tokenizer):
    model = small_model("ie-copy-tails", tokenizer)
    batch = tokenizer(STORIES, return_tensors="pt")
    assert int(batch["copy_ids"].max()) > model.config.num_output_words, "ids that spell the word"
    encoded = EncoderGraph(model)({name: batch[name] for name in input_names(model.config)})
    expected = model.encoder(**batch)
    for name, tensor in encoded.items():
        torch.testing.assert_close(tensor, expected[name], msg=name)
    start = torch.full((2, 1), model.config.decoder_start_token_id)
    logits = DecoderStepGraph(model)({"decoder_input_ids": start, **encoded})["logits"]
    told = model(**batch, decoder_input_ids=start).logits[:, 0]
    # Slots of no word may have any logits of no probability.
    torch.testing.assert_close(logits.softmax(dim=1), told.softmax(dim=1))


def test_generated_ids_spell_the_words(tokenizer):
    tokenizer.num_copy_slots = 3
    first = len(tokenizer)
    generator = object.__new__(OnnxGenerator)
    generator.config = {"vocab_size": first, "num_copy_slots": 3}
    copy_ids = tokenizer(STORIES, return_tensors="np")["copy_ids"]
    named = generator._named_ids(np.array([[2, first, first + 1, 3], [2, 5, first, 3]]), copy_ids)
    assert tokenizer.batch_decode(named, skip_special_tokens=True)[0] == "Quentin Zorbl"
    assert named[1].tolist()[:2] == [2, 5] and tokenizer.decode(named[1, 2]) == "McDuff"
