"""Drives a headless Chromium over the DevTools protocol on two pipes.

    with browser.open() as page:
        page.visit("file:///tmp/report.html")
        page.evaluate("document.title")
        page.screenshot("light.png")
        page.check_quiet()        # no error was logged, no other host was contacted

No library is needed: with --remote-debugging-pipe the browser reads commands from descriptor 3 and
writes responses and events to descriptor 4, as JSON texts terminated by a zero byte.
"""
import base64
import contextlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

BOUND = 300.0  # seconds until a test gives up; no result depends on it
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--hide-scrollbars", "--no-first-run", "--no-default-browser-check",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-extensions", "--mute-audio", "--force-color-profile=srgb",
         "--remote-debugging-pipe")

# How many charts of a page are drawn.
CHARTS_DRAWN = "document.querySelectorAll('.chart:not([hidden]) .plot canvas').length"


class BrowserError(AssertionError):
    """Unexpected behavior of the page or the browser."""


def find():
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def need():
    """Exits the test as skipped when no browser is installed."""
    if not find():
        print("skipped: chromium is not installed")
        sys.exit(77)


class Pipe:
    """Sends commands, receives responses and events."""

    def __init__(self, to_browser, from_browser):
        self.to_browser, self.from_browser = to_browser, from_browser
        self.buffer = b""
        self.count = 0
        self.events = []

    def read(self, bound):
        """The next message, or None when none arrives within `bound` seconds."""
        end = time.monotonic() + bound
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.from_browser], [], [], left)[0]:
                return None
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise BrowserError("the browser has ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        """Sends a command and waits for its response; earlier messages are kept as events."""
        self.count += 1
        command = {"id": self.count, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        while True:
            message = self.read(BOUND)
            if message is None:
                raise BrowserError(f"no response to {method} within {BOUND:.0f} s")
            if message.get("id") == self.count:
                break
            self.events.append(message)
        if "error" in message:
            raise BrowserError(f"{method}: {message['error']['message']}")
        return message["result"]


class Page:
    """One browser tab."""

    def __init__(self, pipe, session):
        self.pipe, self.session = pipe, session
        self.errors, self.requests = [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Sends a command of the DevTools protocol."""
        result = self.pipe.call(method, self.session, **parameters)
        self.take_events()
        return result

    def take_events(self):
        """Records the errors and requests of the page so far."""
        events, self.pipe.events = self.pipe.events, []
        for event in events:
            self.record(event.get("method"), event.get("params", {}))

    def record(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            description = details.get("exception", {}).get("description")
            self.errors.append(description or details["text"])
        bad = ("error", "warning", "assert")
        if method == "Runtime.consoleAPICalled" and params["type"] in bad:
            self.errors.append(" ".join(str(a.get("value", a)) for a in params["args"]))
        if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            entry = params["entry"]
            self.errors.append(f"{entry['text']} {entry.get('url', '')}".strip())
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def visit(self, address):
        """Loads a page and waits until it is complete."""
        response = self.call("Page.navigate", url=str(address))
        if "errorText" in response:
            raise BrowserError(f"{address}: {response['errorText']}")
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, expression):
        """The value of a JavaScript expression; promises are awaited."""
        response = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                             awaitPromise=True)
        if "exceptionDetails" in response:
            details = response["exceptionDetails"]
            description = details.get("exception", {}).get("description", details["text"])
            raise BrowserError(f"{expression}: {description}")
        return response["result"].get("value")

    def wait_for(self, expression, bound=BOUND):
        """Waits until the expression is true and returns its value."""
        end = time.monotonic() + bound
        while time.monotonic() < end:
            value = self.evaluate(expression)
            if value:
                return value
            message = self.pipe.read(0.02)  # a pause that still receives events
            if message:
                self.pipe.events.append(message)
        raise BrowserError(f"not true within {bound:.0f} s: {expression}")

    def settle(self):
        """Waits until everything that is to be drawn has been drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame("
                      "() => requestAnimationFrame(() => done(1))))")

    def resize(self, width, height, mobile=False):
        """Resizes the page; `mobile` emulates a phone."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if mobile else 1, mobile=mobile)

    def prefer(self, scheme, motion="no-preference"):
        """Sets the preferred color scheme, 'light' or 'dark', and amount of motion."""
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme},
                            {"name": "prefers-reduced-motion", "value": motion}])

    def press(self, key):
        """Presses and releases a key: 'Tab', 'ArrowLeft', '+', .."""
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        code = {"Tab": 9, "Enter": 13, " ": 32, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38,
                "ArrowRight": 39, "ArrowDown": 40}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                      **(text if kind == "keyDown" else {}))

    def screenshot(self, path, whole=True):
        """Writes a screenshot of the window, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                           **({"clip": self.whole_clip()} if whole else {}))
        pathlib.Path(path).write_bytes(base64.b64decode(answer["data"]))

    def whole_clip(self):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000),
                "scale": 1}

    def check_quiet(self, hosts=()):
        """Checks that no error was logged and only these hosts were contacted."""
        self.take_events()
        if self.errors:
            raise BrowserError("the page logged: " + "; ".join(self.errors))
        for address in self.requests:
            parts = urllib.parse.urlsplit(address)
            if parts.scheme in ("file", "data", "blob", "about"):
                continue
            if parts.netloc not in hosts and parts.hostname not in hosts:
                raise BrowserError(f"the page requested {address}")


def start(home, log):
    """Starts a browser process connected by two pipes."""
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()

    def connect_pipes():
        # Duplicate both ends first, so that neither is overwritten before it is moved.
        high_in, high_out = os.dup(their_in), os.dup(their_out)
        os.dup2(high_in, 3)
        os.dup2(high_out, 4)

    process = subprocess.Popen(
        [find(), *FLAGS, f"--user-data-dir={home}", "about:blank"], stdin=subprocess.DEVNULL,
        stdout=log, stderr=log, preexec_fn=connect_pipes, close_fds=False, start_new_session=True,
        env={**os.environ, "HOME": home, "LANG": "C.UTF-8"})
    os.close(their_in)
    os.close(their_out)
    return process, Pipe(our_out, our_in)


@contextlib.contextmanager
def open(width=1360, height=900):  # pylint: disable=redefined-builtin
    """A page of a new browser, which is closed at the end of the block."""
    home = tempfile.mkdtemp(prefix="anytime-browser-")
    with tempfile.TemporaryFile() as log:
        process, pipe = start(home, log)
        try:
            target = pipe.call("Target.createTarget", url="about:blank")["targetId"]
            session = pipe.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            page = Page(pipe, session)
            page.resize(width, height)
            page.prefer("light")
            yield page
        finally:
            stop(process, pipe, home)


def stop(process, pipe, home):
    """Closes the browser, kills it if necessary, and removes its folder."""
    with contextlib.suppress(BrowserError, OSError):
        pipe.call("Browser.close")
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    os.close(pipe.to_browser)
    os.close(pipe.from_browser)
    shutil.rmtree(home, ignore_errors=True)
