"""A draft of a model card from what a run measured."""

from __future__ import annotations

from typing import Any

from huggingface_hub import ModelCardData

from ..systems import find_system

_TEXT = """# Story endings: {system}

Given the sentences of a story, this model writes a one-sentence ending. It is {description}, a system of
[Guan, Wang and Huang (AAAI 2019)](https://arxiv.org/abs/1808.10113), made with `hf_storyend`.

```python
from transformers import AutoModel, AutoTokenizer

model = AutoModel.from_pretrained("PATH", trust_remote_code=True)
tokenizer = AutoTokenizer.from_pretrained("PATH", trust_remote_code=True)
inputs = tokenizer("Mei put a cake in the oven. She fell asleep.", return_tensors="pt")
print(tokenizer.batch_decode(model.generate(**inputs), skip_special_tokens=True))
```

## Training

{training}

## Evaluation

On the validation stories. The sampled perplexity is that of the paper's own code (512 sampled words) and far below the
true one; only figures of one kind can be compared.

{evaluation}

## Limits

Draft: say here what the model was looked at for, whom it is for, and where its stories, its knowledge and its word
vectors come from, with their licences.
"""


def draft_card(run: dict[str, Any], metrics: dict[str, float]) -> str:
    """Text of the card, with its metadata; only measured numbers stand in it."""
    metadata = ModelCardData(
        language="en",
        library_name="transformers",
        tags=["story-ending-generation", "commonsense", run["system"]],
    )
    training = {
        "stories": run["data"],
        "parameters": f"{run['parameters']:,}",
        "updates": run["updates"],
        "minutes": run["minutes"],
        "stories a second": run["stories_per_second"],
        "peak memory, MB": run["peak_memory_mb"],
        "device": f"{run['num_processes']} x {run['device']}, precision {run['precision']}",
        "recipe": run["options"]["recipe"],
    }
    text = _TEXT.format(
        system=run["system"],
        description=find_system(run["system"]).description,
        training=_table({name: value for name, value in training.items() if value is not None}),
        evaluation=_table({name: f"{value:.4g}" for name, value in metrics.items()}),
    )
    return f"---\n{metadata.to_yaml()}\n---\n\n{text}"


def _table(rows: dict[str, Any]) -> str:
    return "\n".join(("| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows.items())))
