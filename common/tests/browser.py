"""Chromium without a window, driven over a pipe by its DevTools protocol."""

import json
import os
import shutil
import subprocess
import tempfile

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KEYS = {"Tab": 9, "Enter": 13, "ArrowRight": 39}


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
        # The browser reads commands from its descriptor 3 and answers on 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{results}', "-", program(),
             "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
             "--no-first-run", "--hide-scrollbars", "--disable-background-networking",
             f"--user-data-dir={self.folder}", "about:blank"],
            pass_fds=(commands, results), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(results)
        self.buffer, self.number, self.session, self.errors, self.requested = b"", 0, {}, [], []
        target, = [one["targetId"] for one in self.send("Target.getTargets")["targetInfos"]
                   if one["type"] == "page"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = {"sessionId": attached["sessionId"]}
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
        if (event == "Runtime.exceptionThrown"
                or event == "Log.entryAdded" and about["entry"]["level"] == "error"
                or event == "Runtime.consoleAPICalled" and about["type"] in ("error", "assert")):
            self.errors.append(str(about))
        elif event == "Network.requestWillBeSent":
            self.requested.append(about["request"]["url"][:80])
        return message

    def send(self, method, **parameters):
        """The command's result. Raises RuntimeError where the browser refuses it."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **self.session}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        answer = {}
        while answer.get("id") != self.number:
            answer = self._message()
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(self, path, width=1280, height=900, dark=False):
        """Loads the file, and waits until it has."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.send("Page.navigate", url="file://" + os.path.abspath(path))
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def run(self, script):
        """The value of the expression, which must be one that JSON has."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def press(self, key):
        text = {"text": "\r"} if key == "Enter" else {}
        for kind, more in (("keyDown", text), ("keyUp", {})):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=KEYS[key], **more)

    def point(self, x, y):
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
