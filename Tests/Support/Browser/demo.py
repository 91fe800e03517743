"""The demo page as its users have it."""
import json, re

PHONE, LAPTOP = "[data-device=Phone]", "[data-device=Laptop]"
BOTH = PHONE, LAPTOP


class Demo:
    """The page in a tab, and what a user does with it."""

    def __init__(self, browser, url, owner=None, beside=None):
        record = {"owner": owner, "devices": [{"name": name, "isOnline": True} for name in ("Phone", "Laptop")], "table": None}
        first = f"localStorage.getItem('weir-demo:page') ?? localStorage.setItem('weir-demo:page', {json.dumps(json.dumps(record))});"
        self.url = url
        self.page = browser.page(url + "/demo", beside=beside, before=first if owner else None)

    def ready(self):
        self.until("document.querySelectorAll('.device').length > 1 && document.querySelector('.rows')")
        return self

    def until(self, condition):
        return self.page.until(condition)

    def table(self, name):
        self.page.click(f"#tables input[value={name}] + span")

    def toggle(self, *devices):
        for device in devices:
            self.page.click(f"{device} .switch input")

    def add(self, device, **values):
        """Fills in the form for a new row. Returns the row's id."""
        known = set(self.ids(device))
        for column, value in values.items():
            self.page.type(f"{device} .add [data-column={column}] input", value)
        self.page.click(f"{device} .add > button")
        [id] = set(self.ids(device)) - known
        return id

    def ids(self, device):
        return self.page.evaluate(f"[...document.querySelectorAll('{device} .row[data-id]')].map((row) => row.dataset.id)")

    def field(self, device, id, column):
        return f"{device} [data-id='{id}'] [data-column={column}] input"

    def edit(self, device, id, **values):
        for column, value in values.items():
            self.page.type(self.field(device, id, column), value)

    def delete(self, device, id):
        self.page.click(f"{device} [data-id='{id}'] .delete")

    def value(self, device, id, column):
        return self.page.evaluate(f"document.querySelector(`{self.field(device, id, column)}`)?.value ?? null")

    def until_value(self, device, id, column, value):
        self.until(f"document.querySelector(`{self.field(device, id, column)}`)?.value === {json.dumps(value)}")

    def settled(self, *devices):
        """Waits until devices have sent everything and hold all that the server has."""
        for device in devices or BOTH:
            self.until(f"document.querySelector('{device}').matches('[data-state=idle][data-pending=\"0\"]')")
        self.until("(() => { const floors = weir.entries.map((e) => e.device.state.vector[0]?.lastTimeStamp);"
                   " return floors.every((floor) => floor === floors[0]); })()" if not devices else "true")

    def pending(self, device):
        return int(self.page.evaluate(f"document.querySelector('{device}').dataset.pending"))

    def text(self, selector):
        return self.page.evaluate(f"document.querySelector(`{selector}`).innerText")

    def not_stored(self, device):
        """What the device shows of edits that were not stored; '' where it shows none."""
        return self.page.evaluate(f"""(() => {{
            const shown = document.querySelector('{device} .asides');
            return shown.checkVisibility() ? shown.innerText : "";
        }})()""")

    def still(self):
        """Ends every animation."""
        self.page.evaluate("document.body.offsetWidth, document.getAnimations().forEach((animation) => animation.finish())")

    def rows_on_screen(self, device):
        """The rows as pixels; nothing has the focus or the pointer."""
        self.page.evaluate("document.activeElement.blur()")
        self.page.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        self.still()
        return self.page.screenshot(f"{device} .rows")

    def expect_equal_on_screen(self):
        self.settled()
        first, second = map(self.rows_on_screen, BOTH)
        assert first.colors() > 20, "the rows are not visible"
        assert first.shows_the_same_as(second), "the devices show different rows"

    def expect_quiet(self):
        """No error, and no request to anything but the server's own paths."""
        assert not self.page.complaints, self.page.complaints
        for url in self.page.urls:
            if url.startswith("data:"):
                continue  # icons of the browser's own fields
            assert re.match(re.escape(self.url) + r"/(demo(/[\w.]+)?|v1/[\w/]+(\?.*)?)$", url), url


def equal(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


def contains(text, *parts):
    for part in parts:
        assert part in text, f"{part!r} is not in {text!r}"


# The least contrast of visible text with the color behind it (WCAG), with the element that has it.
CONTRAST = """(() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const layers = (colors) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (color) => {
        const [r, g, b] = color.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    let least = [21, ""];
    for (const element of document.querySelectorAll("body *")) {
        const hasText = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || element.matches("input:not([type=checkbox]), select");
        if (!hasText || !element.checkVisibility({ opacityProperty: true }) || element.closest(":disabled, option, noscript")) continue;
        const behind = [];
        for (let e = element; e; e = e.parentElement) behind.unshift(getComputedStyle(e).backgroundColor);
        const [a, b] = [light(layers(behind)), light(layers([...behind, getComputedStyle(element).color]))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < least[0]) least = [contrast, element.outerHTML.slice(0, 200)];
    }
    return least;
})()"""
