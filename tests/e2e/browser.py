"""A headless Chromium over its DevTools protocol: open a page, run scripts in it, see its errors and requests."""
import base64
import contextlib
import itertools
import json
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from python_packages import require_packages

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
WAIT_SECONDS = 60


class Page:
    """Not thread safe. `errors` are what the console and the page's scripts complained of, `requests` what was asked."""

    def __init__(self, socket):
        self.errors, self.requests = [], []
        self._socket, self._numbers, self._answers = socket, itertools.count(1), queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _listen(self):
        try:
            while True:
                message = json.loads(self._socket.recv())
                if "id" in message:
                    self._answers.put(message)
                else:
                    self._notice(message["method"], message["params"])
        except Exception as failure:  # the browser has gone
            self._answers.put({"error": str(failure)})

    def _notice(self, method, params):
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str([a.get("value", a.get("description")) for a in params["args"]]))
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def call(self, method, **params):
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        answer = self._answers.get(timeout=WAIT_SECONDS)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def run(self, script):
        """The value of a JavaScript expression; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:500])
        return result["result"].get("value")

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")

    def wait_for(self, script, seconds=WAIT_SECONDS):
        """The first truthy value of the expression; None when there is none in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run(script)
            if value:
                return value
            time.sleep(0.1)
        return None

    def open(self, url, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def screenshot(self, path, whole=False):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def browser_page():
    """A page of a fresh browser; ends the test as skipped (77) where there is no Chromium."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        print(f"skipped: no Chromium here ({', '.join(PROGRAMS)})")
        sys.exit(77)
    require_packages("websocket-client==1.8.0")
    import websocket
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen([program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                                    "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port_file = pathlib.Path(profile) / "DevToolsActivePort"
            end = time.monotonic() + WAIT_SECONDS
            while not (port_file.exists() and port_file.read_text().strip()):
                if process.poll() is not None or time.monotonic() > end:
                    print(f"skipped: {program} does not start")
                    sys.exit(77)
                time.sleep(0.1)
            port = port_file.read_text().splitlines()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                target = next(t for t in json.load(answer) if t["type"] == "page")
            socket = websocket.create_connection(target["webSocketDebuggerUrl"], suppress_origin=True, timeout=WAIT_SECONDS)
            yield Page(socket)
        finally:
            process.terminate()
            process.wait()
