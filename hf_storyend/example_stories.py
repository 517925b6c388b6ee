"""Three beginnings of stories, our own, for whoever has none at hand."""

EXAMPLE_STORIES = (
    "Mei put a cake in the oven. She sat down with a good book. The story was very exciting. "
    "Then she smelled smoke from the kitchen.",
    "Omar's old car made a strange noise. He had no money to repair it. He drove to work anyway. "
    "Halfway there the engine stopped.",
    "Nina wanted to win the singing contest. She sang for an hour every day after school. "
    "On the big night her hands were shaking. Her father smiled at her from the first row.",
)
