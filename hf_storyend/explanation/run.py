"""Explain a story as an [`ExplainOptions`] says: what `storyend explain` does before it prints."""

from __future__ import annotations

from ..pretrained import EXAMPLE_STORIES, load
from ..story_text import check_story_size
from .counterfactuals import Counterfactual, counterfactual
from .explain_story import explain
from .files import check_writable, save_counterfactual, save_explanation
from .options import FORMATS, ExplainOptions
from .result import Explanation


def explain_with_options(options: ExplainOptions) -> Explanation | Counterfactual:
    """
    Load a model, explain a story, and save the result if there is an `output_dir`.

    ```python
    >>> result = explain_with_options(ExplainOptions(story="Mei put a cake in the oven. She fell asleep."))
    >>> print(result.to_markdown())
    ```

    Returns:
        A [`Counterfactual`] if the options change the story, else an [`Explanation`].
    """
    formats = options.formats or FORMATS
    if options.output_dir is not None:
        # Fail before the model is loaded.
        check_writable(formats)
    story, changes = options.story or EXAMPLE_STORIES[0], options.changes()
    check_story_size(story, options.max_sentences, options.max_sentence_length)
    model, tokenizer = load(options.model)
    if changes:
        compared = counterfactual(model, tokenizer, story, **changes, **options.generate_arguments())
        if options.output_dir is not None:
            save_counterfactual(compared, options.output_dir, formats)
        return compared
    explanation = explain(model, tokenizer, story, **options.generate_arguments())
    if options.output_dir is not None:
        save_explanation(explanation, options.output_dir, formats)
    return explanation
