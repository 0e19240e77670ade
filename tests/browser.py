"""A headless Chromium, spoken to by its DevTools protocol: pages opened, asked, drawn and printed.

Needs the program (Debian's `chromium` is enough) and aiohttp, which is there anyway; see
https://chromedevtools.github.io/devtools-protocol/.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
START_S, ANSWER_S = 60.0, 60.0


def program() -> str | None:
    """The browser's path; None where none is installed."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class PageError(Exception):
    """A page's script failed, or the browser refused what was asked."""


class Page:
    """One tab.

    Attributes:
        problems: what the console was told of: errors, warnings of the policy, failed loads.
        requests: addresses that the page asked for.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._last = socket, 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._loaded = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the browser for something."""
        self._last += 1
        number = self._last
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        return await asyncio.wait_for(answer, ANSWER_S)

    async def start(self) -> None:
        """Listen to what happens on the page."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")

    async def open(self, url: str) -> None:
        """Go to an address, and wait until it is loaded."""
        self._loaded.clear()
        await self.call("Page.navigate", url=url)
        await asyncio.wait_for(self._loaded.wait(), ANSWER_S)

    async def run(self, code: str) -> Any:
        """The value of an expression on the page; a promise is waited for.

        Raises:
            PageError: it threw.
        """
        told = await self.call(
            "Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in told:
            raise PageError(str(told["exceptionDetails"].get("exception", told)))
        return told["result"].get("value")

    async def until(self, code: str, seconds: float = 60.0) -> Any:
        """Wait until an expression is true, and give its value.

        Raises:
            TimeoutError: it never was.
        """
        async with asyncio.timeout(seconds):
            while not (value := await self.run(code)):
                await asyncio.sleep(0.05)
        return value

    async def size(self, width: int, height: int, *, mobile: bool = False) -> None:
        """How large the window is, in CSS pixels."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )

    async def prefer(self, scheme: str) -> None:
        """What the system is said to prefer: ``light`` or ``dark``."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await self.call("Emulation.setEmulatedMedia", features=[feature])

    async def mouse(self, kind: str, x: float, y: float) -> None:
        """Move to a place (``mouseMoved``), or press or release there."""
        button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    async def picture(self, path: Path, *, whole: bool = False) -> None:
        """A PNG of what is seen, or of the whole page."""
        told = await self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(told["data"]))

    async def pdf(self) -> bytes:
        """The page as it is printed."""
        told = await self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return base64.b64decode(told["data"])

    async def close(self) -> None:
        """Stop listening."""
        self._reader.cancel()
        await self._socket.close()

    async def _read(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                self._answered(told)
            else:
                self._happened(told["method"], told["params"])

    def _answered(self, told: dict[str, Any]) -> None:
        answer = self._waiting.pop(told["id"])
        if answer.done():
            return
        if "error" in told:
            answer.set_exception(PageError(str(told["error"])))
        else:
            answer.set_result(told["result"])

    def _happened(self, event: str, told: dict[str, Any]) -> None:
        match event:
            case "Page.loadEventFired":
                self._loaded.set()
            case "Runtime.exceptionThrown":
                self.problems.append(str(told["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if told["type"] in {"error", "assert"}:
                self.problems.append(str([one.get("value") for one in told["args"]]))
            case "Log.entryAdded" if told["entry"]["level"] in {"error", "warning"}:
                self.problems.append(told["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])


@asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """A tab of a browser of its own, which ends with it.

    Raises:
        FileNotFoundError: none is installed.
    """
    path = program()
    if path is None:
        raise FileNotFoundError(f"no browser is installed: none of {', '.join(PROGRAMS)}")
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [path, *_FLAGS, f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            port = await _port(Path(folder) / "DevToolsActivePort", process)
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                    tabs = await answer.json()
                address = next(t["webSocketDebuggerUrl"] for t in tabs if t["type"] == "page")
                socket = await session.ws_connect(address, max_msg_size=0)
                page = Page(socket)
                await page.start()
                yield page
                await page.close()
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def _port(told: Path, process: subprocess.Popen[bytes]) -> int:
    """Where it listens, as it writes down itself."""
    async with asyncio.timeout(START_S):
        while not (told.exists() and told.read_text(encoding="utf-8").strip()):
            if process.poll() is not None:
                raise PageError(f"the browser ended at once with {process.returncode}")
            await asyncio.sleep(0.05)
    return int(told.read_text(encoding="utf-8").split()[0])
