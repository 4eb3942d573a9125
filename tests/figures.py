"""What tests of moving figures share: a figure alone on a page, moved and read back."""

import contextlib

import torch

from tests import browsers
from tools.site.figure_pictures import preview

TOLERANCE = 1e-4  # how far a figure's number may be from the reference's


def near(shown, expected) -> None:
    """Compare numbers of a figure with those that PyTorch or the reference computes."""
    shown = torch.as_tensor(shown, dtype=torch.float64)
    expected = torch.as_tensor(expected, dtype=torch.float64).detach()
    torch.testing.assert_close(shown, expected, atol=TOLERANCE, rtol=0)


class Figure:
    """A figure in a browser: `page` is Playwright's, `numbers()` what it shows."""

    def __init__(self, visitor: browsers.Visitor, name: str):
        self.name, self.visitor = name, visitor
        self.page = visitor.open(f"{name}.html")
        self.page.locator("figure[data-state]").wait_for()  # drawn when it is seen
        state = self.page.locator("figure").get_attribute("data-state")
        assert state == "ready", self.page.locator("figure").inner_text()
        assert visitor.complaints == []

    def numbers(self) -> dict:
        """Give what the figure's script says it shows."""
        return self.page.evaluate(
            "document.querySelector('figure[data-figure]').figure.numbers()"
        )

    def slide(self, label: str, value: float) -> None:
        """Move a slider to a value."""
        self.page.get_by_label(label, exact=True).fill(str(value))

    def press(self, locator, key: str, times: int = 1) -> None:
        """Focus something and press a key."""
        locator.focus()
        for _ in range(times):
            self.page.keyboard.press(key)

    def drag(self, locator, right: float, down: float) -> None:
        """Drag something with the pointer, so many pixels of the screen."""
        box = locator.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + right / 2, y + down / 2)
        self.page.mouse.move(x + right, y + down)
        self.page.mouse.up()


@contextlib.contextmanager
def opened(browser, folder):
    """Give what opens figures, each alone on a page of a folder."""

    def open_figure(name: str, viewport: dict = browsers.DESK, **options) -> Figure:
        preview(name, folder)
        return Figure(make(folder.as_uri() + "/", viewport, **options), name)

    with browsers.visits(browser) as make:
        yield open_figure


def shown(page, selector: str) -> list[float]:
    """Give the numbers that are on the page, with all their digits."""
    return page.eval_on_selector_all(
        f"{selector}", "all => all.map((each) => Number(each.dataset.value))"
    )
