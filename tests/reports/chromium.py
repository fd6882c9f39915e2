"""A real browser, spoken to through a pipe (the DevTools protocol): nothing but Chromium itself is needed."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_PATIENCE = 60.0


def find() -> str | None:
    """Where a Chromium is, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass
class Browser:
    """One browser process."""

    to: int
    back: int
    number: int = 0
    rest: bytes = b""
    events: list[dict[str, Any]] = field(default_factory=list)

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """What the browser answers to a command; events that come meanwhile are kept."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        until = monotonic() + _PATIENCE
        while True:
            answer = self._read(until)
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                result = answer["result"]
                assert isinstance(result, dict)
                return result
            self.events.append(answer)

    def wait(self, method: str) -> dict[str, Any]:
        """The first event of a kind, which is not kept."""
        until = monotonic() + _PATIENCE
        while True:
            for event in self.events:
                if event.get("method") == method:
                    self.events.remove(event)
                    return event
            self.events.append(self._read(until))

    def _read(self, until: float) -> dict[str, Any]:
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.back], [], [], max(until - monotonic(), 0))
            assert ready, "the browser does not answer"
            data = os.read(self.back, 1 << 20)
            assert data, "the browser went away"
            self.rest += data
        message, _, self.rest = self.rest.partition(b"\0")
        found = json.loads(message)
        assert isinstance(found, dict)
        return found


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser without a window, which ends with the block."""
    executable = find()
    assert executable is not None
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()

    def wire() -> None:
        """The browser reads its commands from 3 and writes answers to 4."""
        read, write = os.dup(command_read), os.dup(answer_write)
        os.dup2(read, 3)
        os.dup2(write, 4)

    args = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--hide-scrollbars",
    ]
    args += ["--remote-debugging-pipe", f"--user-data-dir={folder}", "--force-color-profile=srgb"]
    process = subprocess.Popen(
        [executable, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=wire,  # noqa: PLW1509
        pass_fds=(3, 4),
    )
    os.close(command_read)
    os.close(answer_write)
    try:
        yield Browser(command_write, answer_read)
    finally:
        process.kill()
        process.wait()
        os.close(command_write)
        os.close(answer_read)


@dataclass(frozen=True)
class Page:
    """A tab."""

    browser: Browser
    session: str

    @staticmethod
    def open(
        browser: Browser, place: Path | str, *, scripts: bool = True, width: int = 1200, height: int = 1600
    ) -> Page:
        """A new tab with a file or an address in it, loaded."""
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(browser, str(session))
        browser.events.clear()
        for domain in ("Page", "Network", "Log", "Runtime", "Accessibility"):
            page.call(f"{domain}.enable")
        page.size(width, height)
        page.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        page.call("Page.navigate", url=place if isinstance(place, str) else place.as_uri())
        browser.wait("Page.loadEventFired")
        return page

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def size(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def look(self, media: str = "", **features: str) -> None:
        """How the user wants it: on ``print``, ``prefers_color_scheme="dark"``."""
        found = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", media=media, features=found)

    def value(self, expression: str) -> Any:
        """What a piece of JavaScript gives."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """With the mouse, where the thing is."""
        self.value(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        box = self.value(
            f"(r => [r.x + r.width / 2, r.y + r.height / 2])"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        codes = {"Tab": 9, "Enter": 13}
        more: Mapping[str, Any] = {"text": "\r"} if key == "Enter" else {}
        about = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def picture(self, file: Path) -> None:
        """All of the page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(b64decode(found["data"]))

    def complaints(self) -> list[str]:
        """What the browser logged, exceptions, and everything that was asked of anybody but the file itself."""
        said: list[str] = []
        for event in self.browser.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Log.entryAdded":
                    said.append(params["entry"]["text"])
                case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Page.javascriptDialogOpening":
                    said.append(json.dumps(params))
                case "Network.requestWillBeSent" if not params["request"]["url"].startswith("file:"):
                    said.append(params["request"]["url"])
                case _:
                    pass
        return said
