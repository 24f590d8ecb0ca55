#!/usr/bin/env python3
"""The live page in headless Chromium while the server works: no error, no request to anywhere else, numbers that move,
charts that are drawn, a chat that answers, a key that is asked for. Writes live-page.png (and, dark and narrow,
live-page-dark.png) into the folder ASSAY_SCREENSHOTS names, when it does.

Skips (77) where the default model or a browser is missing.
"""
import os
import pathlib
import tempfile
import threading
import time

from assay_program import expect
from browser import browser_page
from served_program import serving

QUESTIONS = ["Tell a story about a lighthouse.", "What is the capital of France?", "Count from one to thirty.",
             "Explain how bread is made.", "Write a poem about rain."]


class Load:
    """Chats in several threads until it is ended."""

    def __init__(self, server, threads, headers=None):
        self._stop = threading.Event()
        self._server, self._headers = server, headers or {}
        self._threads = [threading.Thread(target=self._work, args=(i,)) for i in range(threads)]
        for thread in self._threads:
            thread.start()

    def _work(self, number):
        while not self._stop.is_set():
            self._server.chat(QUESTIONS[number % len(QUESTIONS)] + f" ({number})", self._headers, max_tokens=96, temperature=1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def number_in(page, selector):
    text = (page.text(selector) or "").replace(",", "")
    try:
        return float(text)
    except ValueError:
        return None


def check_moving(page):
    seen = page.wait_for("document.querySelector('#status').innerText === 'ok'", 20)
    expect(seen, f"the page does not reach the server: {page.text('#status')}")
    expect(page.wait_for("parseFloat(document.querySelector('#f-output').innerText) > 0", 30), "output tokens/s stay 0")
    expect(page.wait_for("parseFloat(document.querySelector('#f-ttft').innerText) > 0", 30), "no TTFT")
    expect(page.wait_for("parseInt(document.querySelector('#n-used').innerText) > 0", 30), "no KV page in use")
    expect(page.wait_for("document.querySelectorAll('#tenants tr').length > 0", 10), "no tenant")
    values = set()
    for _ in range(8):
        values.add((page.text("#f-output"), page.text("#tenants"), page.text("#uptime")))
        time.sleep(0.7)
    expect(len(values) >= 3, f"the numbers stand still: {values}")


def check_drawn(page):
    if page.run("!document.querySelector('#no-charts').hidden"):
        print("note: this build has no charts")
        return
    drawn = page.run("""[...document.querySelectorAll('.chart canvas')].map((canvas) => {
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        const colours = new Set();
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) colours.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
        return colours.size; })""")
    expect(len(drawn) == 6 and all(colours > 2 for colours in drawn), f"charts are not drawn: {drawn}")


def check_layout(page, width):
    wide = page.run("document.documentElement.scrollWidth")
    expect(wide <= width, f"the page is {wide} pixels wide on a screen of {width}")


def check_chat(page):
    page.run("document.querySelector('#ask').value = 'What is the capital of France?'")
    page.run("document.querySelector('#max-tokens').value = 24")
    page.run("document.querySelector('#chat-form').requestSubmit()")
    note = page.wait_for("[...document.querySelectorAll('.turn.assistant .note')].at(-1)?.innerText")
    expect(note and "tokens" in note, f"the chat gave no answer: {note}")
    answer = page.run("[...document.querySelectorAll('.turn.assistant > span')][0].innerText")
    expect(len(answer) > 10, f"the chat answered {answer!r}")


def check_clean(page, address):
    outside = [url for url in page.requests if not url.startswith((address + "/", "data:", "about:"))]
    expect(not outside, f"requests to elsewhere: {outside}")
    expect(not page.errors, f"errors in the page: {page.errors}")


def check_without_charts(page, address):
    """As a build without ECharts is: its file is not there."""
    page.call("Network.setBlockedURLs", urls=["*/web/echarts.js"])
    page.open(address + "/", 900, 800)
    expect(page.wait_for("!document.querySelector('#no-charts').hidden", 20), "missing charts are not said")
    check_moving(page)
    page.call("Network.setBlockedURLs", urls=[])
    page.errors.clear()  # of the file that was held back


def check_key(page):
    """A server with keys: the page asks for one, and works with it."""
    with serving(env={**os.environ, "ASSAY_API_KEY": "sk-of-the-test"}) as server:
        page.open(server.address + "/", 900, 800)
        expect(page.wait_for("!document.querySelector('#key-form').hidden", 20), "the page does not ask for the key")
        expect(page.text("#model") == "–", "data without a key")
        page.run("document.querySelector('#key').value = 'sk-of-the-test'")
        page.run("document.querySelector('#key-form').requestSubmit()")
        expect(page.wait_for("document.querySelector('#status').innerText === 'ok'", 20), "the key does not help")
        page.errors.clear()  # of the refusals before, which the browser reports
        page.requests.clear()
        check_chat(page)
        check_clean(page, server.address)
        code, rest = server.stop()
        expect(code == 0, f"exit code {code}:\n{rest}")


def main():
    with browser_page() as page, tempfile.TemporaryDirectory() as folder:
        shots = pathlib.Path(os.environ.get("ASSAY_SCREENSHOTS", folder))
        shots.mkdir(parents=True, exist_ok=True)
        with serving() as server:
            page.open(server.address + "/", 1600, 1240)
            with Load(server, 5):
                check_moving(page)
                check_chat(page)
                time.sleep(float(os.environ.get("ASSAY_SCREENSHOT_AFTER", "4")))
                check_drawn(page)
                check_layout(page, 1600)
                page.screenshot(shots / "live-page.png")
                check_clean(page, server.address)
                page.open(server.address + "/", 400, 860, dark=True)
                check_moving(page)
                check_layout(page, 400)
                page.screenshot(shots / "live-page-dark.png", whole=True)
                check_clean(page, server.address)
                check_without_charts(page, server.address)
            expect((shots / "live-page.png").stat().st_size > 20000, "the screenshot is empty")
        check_key(page)
    print("passed")


if __name__ == "__main__":
    main()
