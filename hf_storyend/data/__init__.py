"""Stories, vocabularies and what is made of them."""
