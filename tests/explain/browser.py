"""Headless Chromium, driven through a pipe by the DevTools protocol: no library is needed for that."""
from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--disable-background-networking", "--remote-debugging-pipe", "about:blank")


def chromium() -> str | None:
    """The browser that is installed, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One page: what it evaluates, clicks and key presses as a user makes them, pictures of it, and errors that it reported."""

    def __init__(self, to: int, back: int) -> None:
        self.to, self.back, self.number, self.buffer = to, back, 0, b""
        self.session: str | None = None
        self.errors: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> Any:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while (answer := self.next_message()).get("id") != self.number:
            self.notice(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def next_message(self, timeout: float = 60) -> Any:
        end = time.monotonic() + timeout
        while b"\0" not in self.buffer:
            assert select.select([self.back], [], [], max(end - time.monotonic(), 0))[0], "the browser does not answer"
            read = os.read(self.back, 1 << 20)
            assert read, "the browser has ended"
            self.buffer += read
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def notice(self, message: Any) -> None:
        """Errors of the page, and whatever it asks the network for."""
        method, about = message.get("method", ""), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(about["exceptionDetails"]))
        elif method == "Network.requestWillBeSent" and not about["request"]["url"].startswith(("file:", "about:", "data:")):
            self.errors.append(about["request"]["url"])

    def open(self, path: Path, width: int = 1400, height: int = 900, dark: bool = False) -> float:
        """Opens a file; returns the seconds until it has been drawn."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        began = time.monotonic()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while not self.value("document.readyState === 'complete' && (window.mutagradTrace !== undefined)"):
            assert time.monotonic() - began < 60, self.errors
            assert not self.errors, self.errors
            time.sleep(0.02)
        self.value("new Promise(done => requestAnimationFrame(() => done(1)))")
        return time.monotonic() - began

    def value(self, expression: str) -> Any:
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def move(self, x: float, y: float) -> None:
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x: float, y: float) -> None:
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def drag(self, x: float, y: float, to_x: float, to_y: float) -> None:
        self.move(x, y)
        self.ask("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
        for part in (0.3, 0.7, 1):
            self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x + (to_x - x) * part, y=y + (to_y - y) * part, button="left", buttons=1)
        self.ask("Input.dispatchMouseEvent", type="mouseReleased", x=to_x, y=to_y, button="left", clickCount=1)

    def wheel(self, x: float, y: float, by: float) -> None:
        self.ask("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=by)

    def click_on(self, selector: str, which: int = 0) -> None:
        """Clicks the middle of an element."""
        x, y = self.value(f"(e => {{ e.scrollIntoView({{block: 'nearest', inline: 'nearest'}}); const b = e.getBoundingClientRect(); "
                          f"return [b.x + b.width / 2, b.y + b.height / 2]; }})(document.querySelectorAll({json.dumps(selector)})[{which}])")
        self.click(x, y)

    def key(self, key: str) -> None:
        text = key if len(key) == 1 else "\r" if key == "Enter" else ""
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": text} if text else {}))
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        self.ask("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A browser with one page, which is gone afterwards."""
    program = chromium()
    assert program is not None
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for pair in (os.pipe(), os.pipe()) for end in _closing(pair)]
    child_reads, to, back, child_writes = ends

    def as_three_and_four() -> None:
        os.dup2(child_reads, 3)
        os.dup2(child_writes, 4)

    process = subprocess.Popen([program, f"--user-data-dir={folder}", *FLAGS], preexec_fn=as_three_and_four, pass_fds=(3, 4),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(child_reads)
    os.close(child_writes)
    try:
        yield Page(to, back)
    finally:
        os.close(to)
        process.terminate()
        process.wait(20)
        os.close(back)


def _closing(pair: tuple[int, int]) -> Iterator[int]:
    """The ends of a pipe, each closed once it has been copied."""
    for end in pair:
        yield end
        os.close(end)
