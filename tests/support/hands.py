"""What a person does on a page: by mouse, by keyboard alone, or by touch on a phone."""

from playwright.sync_api import Locator, Page

FURTHEST = 300
"""Of tab stops, from the beginning of a page."""


class Mouse:
    """Clicks and fills. ``pressed`` counts what was pressed of links and buttons."""

    def __init__(self, page: Page) -> None:
        self.page, self.pressed = page, 0

    def press(self, what: Locator) -> None:
        """Press a link, a button, a check box or a disclosure."""
        self.pressed += 1
        self._press(what)

    def fill(self, what: Locator, text: str) -> None:
        what.fill(text)

    def choose(self, what: Locator, option: str) -> None:
        """Choose the option of a select that has this text, once the scripts that may apply it are there."""
        self.page.wait_for_load_state()
        what.select_option(label=option)

    def finish(self) -> None:
        """Check what must be true of the last page too."""

    def _press(self, what: Locator) -> None:
        what.click()


class Touch(Mouse):
    """Taps. No page that it leaves may be wider than its window."""

    def finish(self) -> None:
        assert self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), self.page.url

    def _press(self, what: Locator) -> None:
        what.wait_for()
        self.finish()
        what.tap()


class Keyboard(Mouse):
    """Reaches everything with Tab, from the beginning of a page past its sections; focus must be seen."""

    def fill(self, what: Locator, text: str) -> None:
        self._reach(what)
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.type(text)

    def choose(self, what: Locator, option: str) -> None:
        self.page.wait_for_load_state()
        self._reach(what)
        self.page.keyboard.press("Home")
        for _ in range(what.locator("option").count()):
            if what.evaluate("(one) => one.selectedOptions[0].text") == option:
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"{option} cannot be chosen of {what} on {self.page.url}")

    def _press(self, what: Locator) -> None:
        self._reach(what)
        is_box = what.evaluate("(one) => one.type === 'checkbox'")
        self.page.keyboard.press("Space" if is_box else "Enter")

    def _reach(self, what: Locator) -> None:
        what.wait_for()
        for _ in range(FURTHEST):
            self.page.keyboard.press("Tab")
            if what.evaluate("(one) => one === document.activeElement"):
                assert what.evaluate("(one) => one.matches(':focus-visible')")
                return
        raise AssertionError(f"Tab does not reach {what} on {self.page.url}")
