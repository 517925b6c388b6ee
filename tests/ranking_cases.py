"""Four stories for rankers and teachers."""

from small_tokenizer import SENTENCES

CONTEXTS = [SENTENCES[:2], SENTENCES[2:4], SENTENCES[4:6], SENTENCES[6:8]]
ENDINGS = ["The kitchen was full of smoke.", "They burn cakes.", "We saw mice.", "Tom opened the window."]
STORIES = list(zip(CONTEXTS, ENDINGS, strict=True))
