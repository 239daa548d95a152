"""Chromium without a window, driven over a pipe by its DevTools protocol."""

import json
import os
import shutil
import subprocess
import tempfile

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def program():
    """The browser's path; None where there is none. CONVLADDER_BROWSER=FILE names another."""
    names = [os.environ["CONVLADDER_BROWSER"]] if "CONVLADDER_BROWSER" in os.environ else PROGRAMS
    return next(filter(None, map(shutil.which, names)), None)


class Browser:
    """One page in one browser; `errors` are those of its console, and what a script threw."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        commands, self.to = os.pipe()
        self.answers, results = os.pipe()
        for end in (commands, results):
            os.set_inheritable(end, True)
        # The browser reads commands from its descriptor 3 and answers on 4.
        self.process = subprocess.Popen(
            [
                "bash",
                "-c",
                f'exec "$@" 3<&{commands} 4>&{results}',
                "-",
                program(),
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--hide-scrollbars",
                "--disable-background-networking",
                f"--user-data-dir={self.folder}",
                "about:blank",
            ],
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(results)
        self.buffer, self.number, self.session, self.errors, self.requested = b"", 0, None, [], []
        target = next(
            one for one in self.send("Target.getTargets")["targetInfos"] if one["type"] == "page"
        )
        self.session = self.send(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.to)
        os.close(self.answers)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _message(self):
        while b"\0" not in self.buffer:
            more = os.read(self.answers, 1 << 16)
            if not more:
                raise RuntimeError("the browser has ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        event, about = message.get("method"), message.get("params", {})
        if event == "Runtime.exceptionThrown":
            self.errors.append(
                about["exceptionDetails"].get("exception", {}).get("description", "?")
            )
        elif event == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(about["entry"]["text"])
        elif event == "Runtime.consoleAPICalled" and about["type"] in ("error", "assert"):
            self.errors.append(str(about["args"]))
        elif event == "Network.requestWillBeSent":
            self.requested.append(about["request"]["url"][:80])
        return message

    def send(self, method, **parameters):
        """The command's result. Raises RuntimeError where the browser refuses it."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data) :]
        while True:
            answer = self._message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path, width=1280, height=900, dark=False):
        """Loads the file, and waits until it has."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.send("Page.navigate", url="file://" + os.path.abspath(path))
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def run(self, script):
        """The value of the expression, which must be one that JSON has."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode={
                    "Tab": 9,
                    "Enter": 13,
                    "ArrowRight": 39,
                    "ArrowLeft": 37,
                    "ArrowDown": 40,
                    "ArrowUp": 38,
                }[key],
                **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}),
            )

    def point(self, x, y):
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
