"""Drives a headless Chromium by its DevTools protocol over a pipe; Python's standard library alone."""
import base64, fcntl, json, os, select, shutil, struct, subprocess, tempfile, time, zlib

NAMES = "chromium", "google-chrome"
PATIENCE = 60  # seconds that an answer, a document or a condition may take; then the test has failed

FLAGS = [
    "--headless", "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--disable-gpu",
    "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-breakpad", "--hide-scrollbars", "--force-color-profile=srgb", "--mute-audio",
    "--disable-features=Translate,OptimizationHints,MediaRouter",
]


class Browser:
    """A browser with a profile of its own, which is removed with it."""

    def __init__(self):
        program = next(filter(None, map(shutil.which, NAMES)))
        self.folder = tempfile.mkdtemp(prefix="weir-chromium-")
        flags = FLAGS + [f"--user-data-dir={self.folder}"] + (["--no-sandbox"] if os.geteuid() == 0 else [])
        requests, self.requests = os.pipe()
        self.answers, answers = os.pipe()
        # The browser reads from descriptor 3 and writes to 4.
        given = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (requests, answers)]
        command = f'exec "$@" 3<&{given[0]} 4>&{given[1]} {given[0]}<&- {given[1]}>&-'
        self.errors = open(os.path.join(self.folder, "errors"), "w+b")
        self.process = subprocess.Popen(
            ["bash", "-c", command, "bash", program, *flags], pass_fds=given, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=self.errors)
        for end in [requests, answers, *given]:
            os.close(end)
        self.buffer, self.last, self.pages = b"", 0, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def page(self, url, beside=None, before=None):
        """A tab, once its document is loaded.

        It shares cookies and storage with the tab that it is beside, and with no other. The script before runs before those of every document.
        """
        context = beside.context if beside else self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", {"url": "about:blank", "browserContextId": context})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self.pages[session] = Page(self, session, context)
        for domain in "Page", "Runtime", "Log", "Network":
            page.call(f"{domain}.enable")
        if before:
            page.call("Page.addScriptToEvaluateOnNewDocument", source=before)
        page.resize(1280, 900)
        page.open(url)
        return page

    def call(self, method, parameters=None, session=None):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters or {}}
        os.write(self.requests, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        number, end = self.last, time.monotonic() + 2 * PATIENCE
        while True:
            answer = self.message(end)
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def wait(self, condition):
        """Reads messages until a function of no arguments returns something true, and returns that."""
        end = time.monotonic() + PATIENCE
        while not (value := condition()):
            self.message(end)
        return value

    def message(self, end):
        """The next message, if it comes before a time; events are given to their page."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self.answers, 1 << 20)
            if not read:
                self.errors.seek(0)
                raise AssertionError("the browser has ended: " + self.errors.read().decode(errors="replace")[-2000:])
            self.buffer += read
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message and message.get("sessionId") in self.pages:
            self.pages[message["sessionId"]].event(message["method"], message["params"])
        return message


class Page:
    def __init__(self, browser, session, context):
        self.browser, self.session, self.context = browser, session, context
        self.loads, self.complaints, self.urls, self.paused = 0, [], [], []

    def close(self):
        """With all tabs that share its storage."""
        self.browser.call("Target.disposeBrowserContext", {"browserContextId": self.context})

    def call(self, method, **parameters):
        return self.browser.call(method, parameters, self.session)

    def event(self, name, parameters):
        if name == "Page.loadEventFired":
            self.loads += 1
        elif name == "Fetch.requestPaused":
            self.paused.append(parameters["requestId"])
        elif name == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif name == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif name == "Network.requestWillBeSent":
            self.urls.append(parameters["request"]["url"])

    def open(self, url):
        self.load(lambda: self.call("Page.navigate", url=url))

    def reload(self):
        self.load(lambda: self.call("Page.reload"))

    def load(self, act):
        """Runs what loads a document, and waits for it."""
        loads = self.loads
        act()
        self.browser.wait(lambda: self.loads > loads)

    def resize(self, width, height, scale=1, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    def prefer(self, **features):
        """Media features, such as prefers_color_scheme="dark"."""
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def evaluate(self, expression):
        """The JSON value of an expression, or of its promise."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, f"{expression}: {json.dumps(result['exceptionDetails'])[:2000]}"
        return result["result"].get("value")

    def until(self, condition, seconds=PATIENCE):
        """Waits until an expression is true; it is looked at whenever the document changes. Returns its value."""
        return self.evaluate(f"""new Promise((resolve, reject) => {{
            const check = () => {{
                const value = (() => {condition})();
                if (value) {{ observer.disconnect(); clearTimeout(timer); resolve(value); }}
            }};
            const observer = new MutationObserver(check);
            observer.observe(document, {{ subtree: true, childList: true, attributes: true, characterData: true }});
            const timer = setTimeout(() => reject(new Error("not within {seconds} seconds; the page shows: "
                + document.body.innerText)), {seconds * 1000});
            check();
        }})""")

    # The network

    def hold(self, *patterns):
        """From now on answers to requests for these URLs wait until they are released or lost."""
        self.call("Fetch.enable", patterns=[{"urlPattern": pattern, "requestStage": "Response"} for pattern in patterns])

    def held(self):
        """Waits for an answer that is held back, and returns it."""
        self.browser.wait(lambda: self.paused)
        return self.paused.pop(0)

    def release(self, held):
        self.call("Fetch.continueRequest", requestId=held)

    def lose(self, held):
        self.call("Fetch.failRequest", requestId=held, errorReason="ConnectionReset")

    def replace(self, held, status, body, **headers):
        """Gives the page another answer than the one that is held back."""
        fields = [{"name": name.replace("_", "-"), "value": str(value)} for name, value in headers.items()]
        self.call("Fetch.fulfillRequest", requestId=held, responseCode=status, responseHeaders=fields,
                  body=base64.b64encode(json.dumps(body).encode()).decode())

    def release_all(self):
        self.call("Fetch.disable")
        self.paused.clear()

    def connect(self, is_connected):
        """Switches the network of the tab on or off."""
        self.call("Network.emulateNetworkConditions", offline=not is_connected, latency=0, downloadThroughput=-1, uploadThroughput=-1)

    # The user's hands

    def click(self, selector):
        """Clicks into the middle of an element, which must be visible there."""
        x, y = self.middle(selector)
        for kind in "mousePressed", "mouseReleased":
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def middle(self, selector):
        """The middle of an element, scrolled into view; fails if the user cannot see it there."""
        return self.evaluate(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            if (!element) throw new Error("no element " + {json.dumps(selector)});
            element.scrollIntoView({{ block: "center", behavior: "instant" }});
            const box = element.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
            const found = document.elementFromPoint(x, y);
            const isSeen = found && (element.contains(found) || found.contains(element) || element.closest("label") === found.closest("label"));
            if (!isSeen) throw new Error("covered or outside: " + {json.dumps(selector)});
            return [x, y];
        }})()""")

    def press(self, key, code=0, text=None):
        for kind in "keyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **({"text": text} if text and kind == "keyDown" else {}))

    def type(self, selector, text):
        """Replaces the text of a field, and leaves the field."""
        self.click(selector)
        self.evaluate(f"document.querySelector({json.dumps(selector)}).select()")
        self.press("Delete", 46)
        if text:
            self.call("Input.insertText", text=text)
        self.evaluate("document.activeElement.blur()")

    def type_ahead(self, text):
        """Chooses in the list that has the focus by the beginning of an option."""
        for letter in text:
            self.press(letter, text=letter)

    # The user's eyes

    def screenshot(self, selector=None, path=None):
        """The pixels of an element, or of the whole document."""
        box = self.evaluate(f"""(() => {{
            const box = document.querySelector({json.dumps(selector or "html")}).getBoundingClientRect();
            return {{ x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height, scale: 1 }};
        }})()""")
        data = base64.b64decode(self.call(
            "Page.captureScreenshot", format="png", clip=box, captureBeyondViewport=True)["data"])
        if path:
            with open(path, "wb") as file:
                file.write(data)
        return Pixels(data)


class Pixels:
    """A decoded PNG image of 8 bits a channel, as the browser makes them."""

    def __init__(self, png):
        position, packed = 8, b""
        while position < len(png):
            size, kind = struct.unpack(">I4s", png[position:position + 8])
            data = png[position + 8:position + 8 + size]
            if kind == b"IHDR":
                self.width, self.height, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", data)
                assert depth == 8 and color in (2, 6) and not interlaced, "another kind of PNG"
                self.channels = {2: 3, 6: 4}[color]
            elif kind == b"IDAT":
                packed += data
            position += 12 + size
        self.rows = list(self.unfiltered(zlib.decompress(packed)))

    def unfiltered(self, data):
        step, length = self.channels, self.width * self.channels
        above = bytes(length)
        for y in range(self.height):
            kind = data[y * (length + 1)]
            row = bytearray(data[y * (length + 1) + 1:(y + 1) * (length + 1)])
            for x in range(length if kind else 0):
                left = row[x - step] if x >= step else 0
                if kind == 1:
                    guess = left
                elif kind == 2:
                    guess = above[x]
                elif kind == 3:
                    guess = (left + above[x]) // 2
                else:
                    corner = above[x - step] if x >= step else 0
                    guess = min((abs(above[x] - corner), 0, left), (abs(left - corner), 1, above[x]),
                                (abs(left + above[x] - 2 * corner), 2, corner))[2]
                row[x] = (row[x] + guess) & 255
            above = bytes(row)
            yield above

    def colors(self):
        """How many colors there are: an area with text has many, an empty one has few."""
        return len({row[x:x + 3] for row in self.rows for x in range(0, len(row), self.channels)})

    def shows_the_same_as(self, other):
        """Whether two images are equal but for the last shades of smoothed corners, which depend on where they are."""
        return (self.width, self.height) == (other.width, other.height) and all(
            abs(a - b) <= 12 for mine, others in zip(self.rows, other.rows) for a, b in zip(mine, others))
