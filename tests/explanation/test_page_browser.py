"""The page in a browser: pointing, clicking and keys show the attention of a word, and nothing of the story runs."""

from __future__ import annotations

import pytest

selenium = pytest.importorskip("selenium", reason="selenium is not installed")

from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

pytestmark = pytest.mark.browser
MARKUP = "Tom saw </script><script>window.hacked=1</script> <img src=x onerror=hacked=1>."


class Page:
    """What a person sees of the page and does to it."""

    def __init__(self, driver, explanation):
        self.driver, self.explanation = driver, explanation

    def word(self, sentence, position):
        return self.driver.find_element(By.CSS_SELECTOR, f"[data-sentence='{sentence}'][data-position='{position}']")

    def press(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def text(self, name):
        return self.driver.find_element(By.ID, name).get_property("textContent")

    def chosen(self):
        (button,) = self.driver.find_elements(By.CSS_SELECTOR, "button.word[aria-pressed=true]")
        return int(button.get_dom_attribute("data-sentence")), int(button.get_dom_attribute("data-position"))

    def rows(self, name):
        """Text and weight of each row of a table."""
        rows = self.driver.find_elements(By.CSS_SELECTOR, f"#{name} tr")
        cells = [row.find_elements(By.TAG_NAME, "td") for row in rows]
        return [(row[0].get_property("textContent"), float(row[-1].get_property("textContent"))) for row in cells]

    def weight(self, sentence, position, kind):
        script = f"return getComputedStyle(arguments[0]).getPropertyValue('--{kind}-weight')"
        return float(self.driver.execute_script(script, self.word(sentence, position)))


@pytest.fixture
def view(chromium, explain_story, tmp_path):
    def open_page(system="ie-msa-ga", sentences=None):
        explanation = explain_story(system, sentences)
        (tmp_path / "page.html").write_text(explanation.to_html(), encoding="utf-8")
        chromium.get((tmp_path / "page.html").as_uri())
        return Page(chromium, explanation)

    chromium.get_log("browser")
    yield open_page
    assert chromium.get_log("browser") == []


def check_rows(rows, weighted, describe):
    """The highest weights, as far as three digits tell them from 0."""
    shown = [item for item in weighted if item.weight >= 0.0005][:12]
    assert [weight for _, weight in rows] == pytest.approx([item.weight for item in shown], abs=6e-4)
    assert {text for text, _ in rows} == {describe(item) for item in shown}


def check_shows(page, position):
    """The details are those of a word of the ending."""
    word = page.explanation.words[position - 1]
    assert page.text("chosen") == word.word
    assert f"{word.probability:.4f}" in page.text("facts")
    check_rows(page.rows("words"), word.state_attention, lambda read: f"{read.word} sentence {read.sentence}")
    check_rows(
        page.rows("triples"), word.triple_attention, lambda t: f"{t.head} · {t.relation} · {t.tail} at {t.word}"
    )
    for read in word.state_attention:
        assert page.weight(read.sentence, read.position, "state") == pytest.approx(read.weight, abs=1e-5)
    for read in word.knowledge_attention:
        assert page.weight(read.sentence, read.position, "knowledge") == pytest.approx(read.weight, abs=1e-5)


def test_it_opens_with_the_first_word_of_the_ending(view):
    page = view()
    assert page.chosen() == (5, 1)
    check_shows(page, 1)


def test_pointing_clicking_and_keys_choose_a_word(view):
    page = view()
    ActionChains(page.driver).move_to_element(page.word(5, 3)).perform()
    assert page.chosen() == (5, 3)
    check_shows(page, 3)
    page.word(5, 2).click()
    check_shows(page, 2)
    page.press(Keys.ARROW_RIGHT)
    assert page.chosen() == (5, 3)
    page.press(Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert page.chosen() == (5, 1)
    check_shows(page, 1)


def test_tab_reaches_the_words_and_arrows_the_sentences(view):
    page = view()
    page.press(Keys.TAB)
    assert page.driver.switch_to.active_element == page.word(5, 1)
    page.press(Keys.ARROW_UP, Keys.ARROW_RIGHT)
    assert page.chosen() == (4, 2)
    weights = next(m.weights for m in page.explanation.attentions if (m.kind, m.query_sentence) == ("state", 4))
    assert page.rows("words")[0][1] == pytest.approx(max(weights[1]), abs=6e-4)
    page.press(*[Keys.ARROW_UP] * 5)
    assert page.chosen()[0] == 1
    assert page.text("facts") == "This word attends to no other sentence."


def test_words_without_triples_are_not_marked(view):
    page = view()
    for position, graph in enumerate(page.explanation.graphs[3], start=1):
        assert (page.weight(4, position, "knowledge") > 0) == bool(graph)
    assert f"{page.explanation.words[0].empty_graph_attention:.3f} to words without triples" in page.text(
        "other-triples"
    )


@pytest.mark.parametrize("system", ["seq2seq", "hlstm-copy"])
def test_systems_without_knowledge_show_none(view, system):
    page = view(system)
    assert not page.driver.find_element(By.ID, "triples-part").is_displayed()
    assert page.driver.find_element(By.ID, "sources-part").is_displayed()
    assert "no chain of clues" in page.text("notes")


def test_a_word_of_the_ending_shows_what_it_came_from(view):
    page = view("ie-copy-tails")
    sources = page.explanation.words[0].sources
    shares = dict(page.rows("sources"))
    assert shares["vocabulary "] == pytest.approx(sources.vocabulary, abs=6e-4)
    for place in sources.story:
        assert place.share < 0.0005 or f"{place.word} copied from sentence {place.sentence}" in shares
    assert "without sentence 4" in page.text("effects") and "without all triples" in page.text("effects")
    assert not page.driver.find_element(By.ID, "triples-part").is_displayed()
    page.press(Keys.TAB, Keys.ARROW_UP)
    assert not page.driver.find_element(By.ID, "sources-part").is_displayed()


def test_the_story_is_shown_as_it_is_and_never_runs(view):
    page = view(sentences=[MARKUP, "Anna saw </title> & mice."])
    assert page.driver.execute_script("return window.hacked") is None
    assert page.driver.find_elements(By.TAG_NAME, "img") == []
    words = [page.word(1, position).get_property("textContent") for position in range(1, 5)]
    assert words == page.explanation.sentences[0][:4]


def test_nothing_is_fetched(view):
    page = view()
    page.word(5, 2).click()
    assert page.driver.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_a_phone_shows_all_without_scrolling_sideways(view):
    page = view("ie-msa-ca-copy")
    metrics = {"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        assert page.driver.execute_script("return document.documentElement.scrollWidth") == 320
        assert page.word(1, 1).rect["height"] >= 44
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
