"""The page in a real browser: keys, progress, what a reload keeps, and that its sheets are those the report reads."""

from __future__ import annotations

import pytest
from annotation.synthetic import ENDINGS, INJECTION, STORIES, write_endings

from hf_storyend.annotation import draw_sample, read_judgements, read_systems, write_sample
from hf_storyend.annotation.sheets import write_sheet

selenium = pytest.importorskip("selenium", reason="selenium is not installed")

from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

pytestmark = pytest.mark.browser
NUM_ITEMS = 8


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return draw_sample(read_systems(write_endings(tmp_path_factory.mktemp("endings"), ENDINGS)), num_stories=4)


@pytest.fixture(scope="module")
def page(sample, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("sample") / "out"
    write_sample(sample, folder)
    return (folder / "sheets" / "annotate.html").as_uri()


class Page:
    """What a person sees of the page and does to it."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def open(self, annotator=None):
        self.driver.get("about:blank")
        self.driver.get(self.address + (f"#{annotator}" if annotator else ""))
        return self

    def press(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, name):
        return self.find(f"#{name}").get_property("textContent")

    def pressed(self):
        """What is chosen now: scores by metric, and the kind of error."""
        chosen = self.driver.find_elements(By.CSS_SELECTOR, "[aria-pressed=true]")
        return [button.get_dom_attribute("data-score") or button.get_dom_attribute("data-error") for button in chosen]

    def wait(self, condition):
        return WebDriverWait(self.driver, 10).until(lambda _: condition())

    def download(self, folder):
        self.driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder), "eventsEnabled": False}
        )
        self.find("#download").click()
        return self.wait(lambda: next(folder.glob("sheet_*.csv"), None))

    def import_sheet(self, path):
        self.find("#import").send_keys(str(path))
        self.wait(lambda: "imported" in self.text("message"))
        return self.text("message")


@pytest.fixture
def view(chromium, page):
    """The page in a browser that has kept nothing."""
    chromium.get(page)
    chromium.execute_script("localStorage.clear()")
    chromium.get_log("browser")
    yield Page(chromium, page)
    assert chromium.get_log("browser") == []


def answers_for(sample, annotator):
    """Other scores for every place and annotator, all of them used."""
    answers = {}
    for number, place in enumerate(sample.order(annotator)):
        answers[sample.items[place].id] = {
            "grammar": str((number + annotator) % 3),
            "logicality": str(number // 3 % 3),
            "error_type": ["", "grammar", "logicality", "other"][(number + annotator) % 4],
        }
    return answers


def score_all(view, sample, annotator):
    for given in answers_for(sample, annotator).values():
        view.press(given["grammar"], given["logicality"], given["error_type"][:1], Keys.ENTER)


def test_annotators_choose_their_number_after_reading_the_guidelines(view):
    view.open()
    assert view.find("#start").is_displayed()
    assert not view.find("#scoring").is_displayed()
    assert "How to score endings" in view.find("#guidelines").text
    view.driver.find_elements(By.CSS_SELECTOR, "#annotators button")[1].click()
    assert view.text("who") == "Annotator 2"
    assert view.driver.current_url.endswith("#2")
    assert not view.find("#start").is_displayed()


def test_keys_score_grammar_then_logicality_and_enter_goes_on(view, sample):
    view.open(1)
    first, second = (sample.items[place] for place in sample.order(1)[:2])
    assert view.text("ending") == first.ending
    assert view.text("count") == f"0 of {NUM_ITEMS} scored"
    view.press("2")
    assert view.pressed() == ["2"]
    assert view.text("count") == f"0 of {NUM_ITEMS} scored"
    view.press("1")
    assert view.pressed() == ["2", "1"]
    assert view.text("count") == f"1 of {NUM_ITEMS} scored"
    assert view.find("#progress").get_property("value") == 1
    view.press(Keys.ENTER)
    assert view.text("ending") == second.ending
    assert view.text("place") == f"Ending 2 of {NUM_ITEMS}"
    assert view.pressed() == []


def test_arrows_move_and_mark(view):
    view.open(1)
    view.press("2", "1", Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert view.text("place") == f"Ending 1 of {NUM_ITEMS}"
    assert view.pressed() == ["2", "1"]
    view.press("0")
    assert view.pressed() == ["0", "1"]
    view.press(Keys.ARROW_DOWN, "2")
    assert view.pressed() == ["0", "2"]
    view.press(Keys.ARROW_UP, "1", *[Keys.ARROW_RIGHT] * 20)
    assert view.text("place") == f"Ending {NUM_ITEMS} of {NUM_ITEMS}"


def test_the_kind_of_error_is_named_and_taken_back(view):
    view.open(1)
    view.press("1", "0", "l")
    assert view.pressed() == ["1", "0", "logicality"]
    view.press("G")
    assert view.pressed() == ["1", "0", "grammar"]
    view.press("g")
    assert view.pressed() == ["1", "0"]


def test_other_keys_and_shortcuts_do_nothing(view):
    view.open(1)
    view.press("3", "x", " ", Keys.TAB)
    ActionChains(view.driver).key_down(Keys.CONTROL).send_keys("1").key_up(Keys.CONTROL).perform()
    assert view.pressed() == []
    assert view.text("place") == f"Ending 1 of {NUM_ITEMS}"


def test_the_mouse_scores_and_enter_still_goes_on(view):
    view.open(1)
    view.find("#metric-logicality [data-score='2']").click()
    view.find("#metric-grammar [data-score='0']").click()
    assert view.pressed() == ["0", "2"]
    view.press(Keys.ENTER)
    assert view.text("place") == f"Ending 2 of {NUM_ITEMS}"
    view.find("#previous").click()
    assert view.pressed() == ["0", "2"]


def test_enter_on_another_control_is_that_control(view):
    view.open(1)
    view.driver.execute_script("document.querySelector('#guidelines summary').focus()")
    view.press(Keys.ENTER)
    assert view.find("#guidelines").get_property("open")
    assert view.text("place") == f"Ending 1 of {NUM_ITEMS}"


def test_next_unscored_skips_what_is_done(view):
    view.open(1)
    view.press("2", "2", Keys.ENTER, "2", "2", Keys.ENTER, Keys.ENTER, "1", "1", Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert view.text("place") == f"Ending 2 of {NUM_ITEMS}"
    view.find("#unscored").click()
    assert view.text("place") == f"Ending 3 of {NUM_ITEMS}"
    view.find("#unscored").click()
    assert view.text("place") == f"Ending 5 of {NUM_ITEMS}"


def test_enter_at_the_end_goes_to_what_is_left(view):
    view.open(1)
    view.press(Keys.ENTER, *["2", "1", Keys.ENTER] * (NUM_ITEMS - 1))
    assert view.text("place") == f"Ending 1 of {NUM_ITEMS}"
    assert not view.find("#done").is_displayed()
    view.press("0", "0")
    assert view.find("#done").is_displayed()


def test_a_reload_keeps_scores_and_place(view):
    view.open(1)
    view.press("2", "1", "o", Keys.ENTER, "0")
    view.driver.refresh()
    assert view.text("who") == "Annotator 1"
    assert view.text("place") == f"Ending 2 of {NUM_ITEMS}"
    assert view.text("count") == f"1 of {NUM_ITEMS} scored"
    assert view.pressed() == ["0"]
    view.press("2")
    assert view.pressed() == ["0", "2"]
    view.press(Keys.ARROW_LEFT)
    assert view.pressed() == ["2", "1", "other"]


def test_annotators_do_not_see_each_others_scores(view):
    view.open(1).press("2", "1", Keys.ENTER)
    assert view.open(2).text("count") == f"0 of {NUM_ITEMS} scored"
    assert view.open(1).text("count") == f"1 of {NUM_ITEMS} scored"


def test_two_tabs_of_one_annotator_agree(view):
    view.open(1)
    first = view.driver.current_window_handle
    view.driver.switch_to.new_window("tab")
    view.open(1).press("2", "1")
    view.driver.close()
    view.driver.switch_to.window(first)
    view.wait(lambda: view.pressed() == ["2", "1"])
    view.press(Keys.ENTER, "0", "0")
    assert view.text("count") == f"2 of {NUM_ITEMS} scored"


def test_downloads_are_the_sheets_that_the_report_reads(view, sample, tmp_path):
    paths = []
    for annotator in (1, 2, 3):
        view.open(annotator)
        score_all(view, sample, annotator)
        assert view.find("#done").is_displayed()
        folder = tmp_path / str(annotator)
        folder.mkdir()
        paths.append(view.download(folder))
        assert paths[-1].name == f"sheet_{annotator}.csv"
        assert view.text("message") == ""
        write_sheet(tmp_path / "wanted.csv", sample, annotator, answers_for(sample, annotator))
        assert paths[-1].read_bytes() == (tmp_path / "wanted.csv").read_bytes()
    judgements = read_judgements(sample, paths)
    for item in sample.items:
        for annotator, judgement in enumerate(judgements[item.id], start=1):
            given = answers_for(sample, annotator)[item.id]
            assert judgement.scores == {name: int(given[name]) for name in ("grammar", "logicality")}
            assert (judgement.error_type or "") == given["error_type"]


def test_an_unfinished_sheet_can_be_downloaded_and_imported_elsewhere(view, tmp_path):
    view.open(3)
    view.press("2", "1", "g", Keys.ENTER, "0")
    path = view.download(tmp_path)
    assert f"7 of {NUM_ITEMS} endings are not scored yet" in view.text("message")
    view.driver.execute_script("localStorage.clear()")
    view.open(3)
    assert view.pressed() == []
    assert view.import_sheet(path) == "Answers for 2 endings were imported."
    assert view.pressed() == ["2", "1", "grammar"]
    assert view.text("count") == f"1 of {NUM_ITEMS} scored"
    view.driver.refresh()
    assert view.pressed() == ["2", "1", "grammar"]


def test_a_bad_sheet_is_refused_and_changes_nothing(view, sample, tmp_path):
    view.open(1).press("2", "2")
    answers = answers_for(sample, 1)
    first, second = (sample.items[place].id for place in sample.order(1)[:2])
    answers[first]["grammar"], answers[second]["error_type"] = "7", "boring"
    write_sheet(tmp_path / "bad.csv", sample, 1, answers)
    message = view.import_sheet(tmp_path / "bad.csv")
    assert message.splitlines() == [
        "bad.csv was not imported.",
        "Row 2, column grammar: must be 0, 1 or 2, not “7”.",
        "Row 3, column error_type: “boring” is not known.",
    ]
    assert view.pressed() == ["2", "2"]
    assert view.text("count") == f"1 of {NUM_ITEMS} scored"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "Columns are missing: sample, annotator, item, grammar, logicality. Is this a sheet?"),
        ('"sample","annotator', "A quotation mark is not closed: the sheet is cut off or damaged."),
        ("sample,annotator,item,grammar,logicality\nsample-0,1,item-1,2,2\n", "this sheet belongs to other stories."),
    ],
)
def test_what_is_no_sheet_of_this_sample_is_refused(view, tmp_path, content, message):
    path = tmp_path / "strange.csv"
    path.write_text(content)
    assert message in view.open(1).import_sheet(path)


def test_the_sheet_of_another_annotator_is_refused(view, sample, tmp_path):
    write_sheet(tmp_path / "sheet_2.csv", sample, 2, answers_for(sample, 2))
    message = view.open(1).import_sheet(tmp_path / "sheet_2.csv")
    assert "Row 2, column annotator: not 1, but “2”." in message
    assert view.text("count") == f"0 of {NUM_ITEMS} scored"


def test_a_browser_that_keeps_nothing_says_so(view):
    script = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };"
    added = view.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        view.open(1).press("2", "1")
        assert view.text("saved") == "Not saved"
        assert "Download the sheet before you close the page" in view.text("message")
        assert view.pressed() == ["2", "1"]
    finally:
        view.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_what_was_kept_and_is_damaged_is_told(view, sample):
    name = f"storyend {sample.id} annotator 1"
    view.driver.execute_script("localStorage.setItem(arguments[0], '{broken')", name)
    view.open(1)
    assert "can't be read" in view.text("message")
    view.press("2", "1")
    assert view.pressed() == ["2", "1"]


def test_texts_are_shown_as_they_are_and_never_run(view, sample):
    view.open(1)
    seen = set()
    for place in sample.order(1):
        item = sample.items[place]
        assert view.text("ending") == item.ending
        sentences = [
            line.get_property("textContent") for line in view.driver.find_elements(By.CSS_SELECTOR, "#context p")
        ]
        assert tuple(sentences) == sample.context(item)
        seen |= {item.ending, *sentences}
        view.press(Keys.ENTER)
    assert {INJECTION, "[no ending]"} | {sentence for story in STORIES for sentence in story} <= seen
    assert view.driver.execute_script("return window.hacked") is None
    assert view.driver.find_elements(By.TAG_NAME, "img") == []


def test_right_to_left_text_stands_at_the_right(view, sample):
    view.open(1)
    while view.text("ending") != "היא חייכה.":
        view.press(Keys.ENTER)
    direction = "return getComputedStyle(arguments[0]).direction"
    assert view.driver.execute_script(direction, view.find("#ending")) == "rtl"
    assert [
        view.driver.execute_script(direction, line)
        for line in view.driver.find_elements(By.CSS_SELECTOR, "#context p")
    ] == ["ltr", "ltr", "rtl", "ltr"]


def test_script_that_got_into_the_page_all_the_same_would_not_run(view):
    view.open(1)
    view.driver.execute_script("document.querySelector('#context').innerHTML = arguments[0]", INJECTION)
    view.wait(lambda: any("Content Security Policy" in entry["message"] for entry in view.driver.get_log("browser")))
    assert view.driver.execute_script("return window.hacked") is None
    view.driver.get_log("browser")


def test_nothing_is_fetched(view):
    view.open(1).press("2", "1", Keys.ENTER)
    assert view.driver.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_every_control_has_a_name_and_every_group_a_title(view):
    view.open(1)
    controls = view.driver.find_elements(By.CSS_SELECTOR, "#scoring button, #scoring input, #progress")
    assert len(controls) == 3 * 3 + 5 + 1
    assert all(control.accessible_name for control in controls)
    groups = view.driver.find_elements(By.TAG_NAME, "fieldset")
    assert [group.get_dom_attribute("aria-current") for group in groups] == ["true", "false", None]
    assert [group.accessible_name for group in groups] == [
        "Grammar Is the ending natural, fluent English?",
        "Logicality Does the ending follow from the story?",
        "Main error (optional)",
    ]


def test_a_phone_shows_all_without_scrolling_sideways(view):
    metrics = {"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": True}
    view.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        for annotator in (None, 1):
            view.open(annotator)
            assert view.driver.execute_script("return document.documentElement.scrollWidth") == 320
        box = view.find("#next").rect
        assert box["height"] >= 44
        assert (
            view.driver.execute_script("return arguments[0].getBoundingClientRect().bottom", view.find("#next")) <= 640
        )
    finally:
        view.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
