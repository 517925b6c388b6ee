"""A language model of a few words that can be a teacher."""

import pytest
import torch
from ranking_cases import ENDINGS
from small_tokenizer import SENTENCES
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast


@pytest.fixture(scope="module")
def teacher():
    words = sorted({word for text in [*SENTENCES, *ENDINGS] for word in text.split()})
    vocabulary = {word: number for number, word in enumerate(["<end>", "<unk>", *words])}
    fast = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    torch.manual_seed(0)
    network = LlamaForCausalLM(LlamaConfig(vocab_size=len(vocabulary), **sizes)).eval()
    return network, PreTrainedTokenizerFast(tokenizer_object=fast, eos_token="<end>", unk_token="<unk>")
