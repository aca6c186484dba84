"""A page in Debian's Chromium, driven through its debugging pipe: nothing but the standard library is needed."""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--remote-debugging-pipe",
]
# Chromium reads commands from file descriptor 3 and answers on 4; a small Python puts the pipes there.
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


def find_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Page:
    """One page: `open`, `run` JavaScript, take a picture; `requests` are the addresses that it asked for."""

    def __init__(self, profile: Path, width: int = 1280, height: int = 1600, dark: bool = False):
        commands, self.send_to = os.pipe()
        self.read_from, answers = os.pipe()
        argv = [sys.executable, "-c", LAUNCH, str(commands), str(answers), find_chromium(), *FLAGS]
        self.process = subprocess.Popen(
            [*argv, f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        if dark:
            self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.close(self.send_to)  # Chromium ends when its pipe does
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_from)

    def call(self, method: str, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.send_to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _read(self) -> dict:
        while b"\0" not in self.buffer:
            data = os.read(self.read_from, 1 << 16)
            assert data, "Chromium has ended"
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, address: Path | str) -> None:
        """A file, or an address on this machine."""
        url = address if isinstance(address, str) else address.resolve().as_uri()
        self.call("Page.navigate", url=url)
        self.wait(f"document.readyState === 'complete' && location.protocol === {json.dumps(url.split('/')[0])}")

    def wait(self, script: str, seconds: float = 60):
        """The value of a JavaScript expression as soon as it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.run(script):
                return value
            time.sleep(0.05)
        raise AssertionError(f"Not within {seconds} seconds: {script}")

    def size(self, width: int, height: int) -> None:
        """The window's, also where it is narrower than Chromium's own windows can be."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, script: str):
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def type(self, selector: str, text: str) -> None:
        """Put a text into a field, as if it was pasted."""
        self.run(
            f"""((box, value) => {{
                const kind = box instanceof HTMLTextAreaElement ? HTMLTextAreaElement : HTMLInputElement;
                Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(box, value);
                box.dispatchEvent(new Event('input', {{bubbles: true}}));
            }})(document.querySelector({json.dumps(selector)}), {json.dumps(text)})"""
        )

    @property
    def requests(self) -> list[str]:
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    @property
    def complaints(self) -> list[str]:
        """Errors that the console shows, such as a script that failed or a request that was refused."""
        found = [e["params"]["entry"]["text"] for e in self.events if e.get("method") == "Log.entryAdded"]
        return found + [str(e["params"]) for e in self.events if e.get("method") == "Runtime.exceptionThrown"]

    def picture(self, file: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        file.write_bytes(base64.b64decode(data))
