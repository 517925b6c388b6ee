"""The page in a browser: by mouse, by keys and on a phone, with markup in stories."""

from __future__ import annotations

import pytest

pytest.importorskip("selenium", reason="selenium is not installed")
pytest.importorskip("gradio", reason="gradio is not installed")

from demo.demo_server import running_demo  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

pytestmark = pytest.mark.browser
STORY = "Anna put a cake in the oven.\nThe cake in the oven was burnt."
MARKUP = (
    "Anna saw </td></iframe><script>window.hacked=1</script> <img src=x onerror=window.hacked=1> "
    "\n${window.hacked=1} {{constructor}} in the oven."
)


@pytest.fixture(scope="module")
def address(model_directory, copying_directory):
    with running_demo([model_directory, copying_directory]) as server:
        yield server.address


class Page:
    """What a person sees of the page and does to it."""

    def __init__(self, driver):
        self.driver = driver

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        (element,) = self.all(selector)
        return element

    def text(self, selector):
        return " ".join(element.text for element in self.all(selector))

    def wait(self, condition):
        return WebDriverWait(self.driver, 600, 0.05).until(lambda _: condition())

    def fill(self, selector, text):
        self.one(selector).send_keys(Keys.CONTROL, "a")
        self.one(selector).send_keys(Keys.DELETE)
        # Typed characters would start new lines only with the Shift key.
        self.driver.execute_script("arguments[0].focus()", self.one(selector))
        self.driver.execute_cdp_cmd("Input.insertText", {"text": text})

    def choose(self, group, name):
        (label,) = [label for label in self.all(f"#{group} label") if label.text == name]
        label.click()

    def open(self, name):
        self.one(f"#{name} > button").click()

    def open_tab(self, name):
        (tab,) = [tab for tab in self.all("[role=tab]") if tab.text == name]
        tab.click()

    def press(self, *keys):
        chain = ActionChains(self.driver)
        for key in keys[:-1]:
            chain.key_down(key)
        chain.send_keys(keys[-1])
        for key in keys[:-1]:
            chain.key_up(key)
        chain.perform()

    def generate(self):
        self.one("#generate").click()
        self.wait(lambda: self.text("#ending"))


@pytest.fixture
def page(chromium, address):
    chromium.get_log("browser")
    chromium.get(address)
    page = Page(chromium)
    page.wait(lambda: page.all("#story textarea") and page.all("#generate"))
    # Until everything is loaded, Gradio's own sign of that lies above the page.
    page.wait(lambda: not page.all(".app > [data-testid=status-tracker]"))
    yield page
    assert [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_click_gives_an_ending_and_the_sources_of_each_word(page):
    assert page.text("#results") == ""
    page.generate()
    rows = page.all("#words table:first-of-type tbody tr")
    assert rows and all(len(row.find_elements(By.TAG_NAME, "td")) == 4 for row in rows)
    assert "Log probability" in page.text("#words")
    assert page.text("#message") == ""


def test_nothing_is_fetched_from_elsewhere(page, address):
    page.generate()
    names = page.driver.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert names and all(name.startswith((address, "data:")) for name in names)


def test_keys_are_enough(page):
    active = lambda: page.driver.switch_to.active_element  # noqa: E731
    page.wait(lambda: active().tag_name == "textarea")
    page.press(Keys.CONTROL, Keys.ENTER)
    page.wait(lambda: page.text("#ending"))
    page.press(Keys.TAB)
    assert active().get_attribute("value") == "greedy"
    page.press(Keys.ARROW_LEFT)
    assert active().get_attribute("value") == "sampling"
    page.press(Keys.TAB)
    assert active().get_attribute("id") == "generate"
    page.press(Keys.ENTER)
    page.wait(lambda: len(page.all("#endings input")) == 3)
    page.press(Keys.TAB)
    first = page.text("#ending")
    assert active().get_attribute("type") == "radio"
    page.press(Keys.ARROW_DOWN)
    page.wait(lambda: page.text("#ending") not in ("", first))
    # Each of the three is a stop of its own, and so is each word of the ending.
    page.press(Keys.TAB)
    page.press(Keys.TAB)
    assert "source" in active().get_attribute("class")
    for _ in page.all("#ending .source"):
        page.press(Keys.TAB)
    assert active().text == "Copy"
    page.press(Keys.TAB)
    assert active().get_attribute("role") == "tab"


def test_shift_enter_in_the_story_generates(page):
    page.wait(lambda: page.driver.switch_to.active_element.tag_name == "textarea")
    page.press(Keys.SHIFT, Keys.ENTER)
    page.wait(lambda: page.text("#ending"))


def test_another_system_can_be_chosen(page):
    page.choose("system", "copying (hlstm-copy)")
    page.generate()
    assert page.all("#words .weight.story") and "reads no knowledge" in page.text("#words")


def test_tabs_are_rendered_when_opened_and_the_frame_is_interactive(page):
    page.fill("#story textarea", STORY)
    page.generate()
    page.open_tab("Explore")
    page.wait(lambda: page.all("#page iframe"))
    page.driver.switch_to.frame(page.one("#page iframe"))
    page.wait(lambda: page.all("button.word"))
    page.all(".sentence.ending button.word")[1].click()
    assert page.text("#chosen") == page.all(".sentence.ending button.word")[1].text
    page.driver.switch_to.default_content()
    for name in ("clues", "attention"):
        page.open_tab(name.capitalize())
        page.wait(lambda name=name: page.all(f"#{name} img"))
        width = "return arguments[0].decode().then(() => arguments[0].naturalWidth)"
        assert page.driver.execute_script(width, page.one(f"#{name} img")) > 300


def test_a_new_ending_removes_the_old_pictures(page):
    page.generate()
    page.open_tab("Clues")
    page.wait(lambda: page.all("#clues img"))
    page.fill("#story textarea", STORY)
    page.one("#generate").click()
    page.wait(lambda: page.one("[role=tab][aria-selected=true]").text == "Words")
    assert not page.all("#clues img")


def test_user_triples_are_used_and_an_invalid_one_is_named(page):
    page.fill("#story textarea", STORY)
    page.open("own")
    page.wait(lambda: page.one("#triples textarea").is_displayed())
    page.fill("#triples textarea", "oven, Causes, smoke\noven, Causes")
    page.one("#generate").click()
    page.wait(lambda: "Triple 2 must be head, relation, tail" in page.text("#message"))
    # Parts of the page are drawn one after the other.
    page.wait(lambda: page.text("#results") == "")
    page.fill("#triples textarea", "oven, Causes, smoke")
    page.generate()
    page.wait(lambda: "Without your triples" in page.text("#ending .before") and page.text("#message") == "")
    assert page.text("#ending .after").startswith("With your triples")


def test_a_triple_is_put_together_from_a_choice_of_relations(page):
    page.open("own")
    page.wait(
        lambda: page.one("#head textarea, #head input").is_displayed() and page.one("#relation input").is_displayed()
    )
    page.wait(lambda: page.one("#relation input").get_property("value") == "Causes")
    page.fill("#head textarea, #head input", "oven")
    page.fill("#tail textarea, #tail input", "smoke")
    page.one("#add").click()
    page.wait(lambda: page.one("#triples textarea").get_property("value") == "oven, Causes, smoke")
    page.wait(lambda: page.one("#head textarea, #head input").get_property("value") == "")


def test_a_word_shows_its_sources_when_it_has_the_focus(page):
    page.generate()
    word = page.all("#ending .source")[0]
    shown = "return getComputedStyle(arguments[0], '::after').content"
    assert page.driver.execute_script(shown, word) in ("none", "normal")
    page.driver.execute_script("arguments[0].focus()", word)
    assert "from the vocabulary" in page.driver.execute_script(shown, word)


def test_the_ending_is_copied(page):
    page.generate()
    # A headless browser has no clipboard: what would go there is caught.
    page.driver.execute_script("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.one("#ending button.copy").click()
    page.wait(lambda: page.text("#ending button.copy") == "Copied")
    assert page.driver.execute_script("return window.copied") == page.text("#ending .ending")


@pytest.mark.parametrize(("story", "problem"), [("", "The story is empty"), ("?! 🎂", "The story has no words")])
def test_an_invalid_story_is_an_error_in_the_page(page, story, problem):
    page.generate()
    page.fill("#story textarea", story)
    page.one("#generate").click()
    page.wait(lambda: problem in page.text("#message [role=alert]") and page.text("#results") == "")
    assert "Traceback" not in page.driver.page_source


def test_the_story_is_shown_as_it_is_and_never_runs(page):
    page.fill("#story textarea", MARKUP)
    page.choose("system", "copying (hlstm-copy)")
    page.generate()
    for name in ("Explore", "Clues", "Attention"):
        page.open_tab(name)
    page.wait(lambda: page.all("#attention img") and page.all("#clues img") and page.all("#page iframe"))
    assert page.driver.execute_script("return window.hacked") is None
    assert page.all("#results script, #results img[src=x]") == []
    page.driver.switch_to.frame(page.one("#page iframe"))
    try:
        assert page.driver.execute_script("return window.hacked") is None
        assert "script" in page.driver.find_element(By.ID, "story").get_property("textContent")
    finally:
        page.driver.switch_to.default_content()


def test_an_example_goes_into_the_story(page):
    page.all("#examples button")[1].click()
    page.wait(lambda: "Halloween" in page.one("#story textarea").get_property("value"))


def test_on_a_phone_the_ending_stands_below_the_button_and_nothing_is_cut_off(page):
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page.choose("decoding", "Sampling")
        page.generate()
        button, ending = page.one("#generate").rect, page.one("#results").rect
        assert 0 < ending["y"] - (button["y"] + button["height"]) < 60
        assert page.one("#options").rect["y"] > ending["y"]
        assert all(label.rect["height"] >= 44 for label in page.all("#endings label"))
        for name in ("Words", "Explore", "Clues", "Attention"):
            page.open_tab(name)
            assert page.driver.execute_script("return document.documentElement.scrollWidth") == 390
        for name in ("clues", "attention"):
            page.open_tab(name.capitalize())
            page.wait(lambda name=name: page.all(f"#{name} img"))
            rect = page.one(f"#{name} img").rect
            assert rect["x"] >= 0 and rect["x"] + rect["width"] <= 390
        page.one("#attention button.enlarge").click()
        page.wait(lambda: page.one("#attention img").rect["width"] > 800)
        assert page.driver.execute_script("return document.documentElement.scrollWidth") == 390
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
