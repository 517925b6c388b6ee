"""Stories to start from, made up for the page."""

STORIES = (
    "Anna put a cake in the oven.\nShe fell asleep on the couch with her cat.\nThe smoke alarm woke her up.\n"
    "The kitchen was full of smoke.",
    "It was Halloween.\nTom wanted to be a pirate.\nHe and his sister walked from house to house.\n"
    "They came home with bags full of candy.",
    "Sara forgot her umbrella at home. On the way to work it began to rain. A stranger shared his umbrella with her. "
    "They talked all the way to the station.",
)
