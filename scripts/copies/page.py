"""The page of `monopour explain --html` for 500 dispatches: its size, its numbers, and in a browser its requests and its time.

    python3 scripts/copies/page.py MONOPOUR [CHROMIUM]

Exit status 1: a bound does not hold.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BYTES = 1_000_000
SECONDS = 1.0
LAYERS = 250
# Behind the frame that is drawn once all is loaded; two of them, as the first callback comes before its frame.
PROBE = """addEventListener('load', () => requestAnimationFrame(() => requestAnimationFrame(() => {
  window.drawn = performance.now() })))"""
# Waits for the probe, and looks at what there is.
LOOK = """new Promise(done => { const look = () => window.drawn === undefined ? setTimeout(look, 10) : done(JSON.stringify({
  drawn: window.drawn,
  resources: performance.getEntriesByType('resource').map(entry => entry.name),
  rows: document.querySelectorAll('tr[data-step]').length,
  inked: [...document.querySelectorAll('canvas')].map(canvas => {
    const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return data.reduce((sum, value) => sum + (value !== 0), 0) }),
  data: JSON.parse(document.getElementById('data').textContent) })); look() })"""


def program():
    """Layers of two products."""
    a, b, x, y = "tensor<64x96xf32>", "tensor<96x64xf32>", "tensor<32x64xf32>", "tensor<32x96xf32>"
    lines = [f"func.func @main(%t0: {x}, %w: {a}, %v: {b}) -> {x} {{", "  %c = arith.constant 0.0 : f32",
             f"  %e = tensor.empty() : {y}", f"  %f = tensor.empty() : {x}",
             f"  %y = linalg.fill ins(%c : f32) outs(%e : {y}) -> {y}", f"  %z = linalg.fill ins(%c : f32) outs(%f : {x}) -> {x}"]
    for i in range(LAYERS):
        lines += [f"  %m{i} = linalg.matmul ins(%t{i}, %w : {x}, {a}) outs(%y : {y}) -> {y}",
                  f"  %t{i + 1} = linalg.matmul ins(%m{i}, %v : {y}, {b}) outs(%z : {x}) -> {x}"]
    return "\n".join([*lines, f"  return %t{LAYERS} : {x}", "}", ""])


class Browser:
    """Chromium, by its protocol over two pipes."""

    def __init__(self, chromium, profile):
        ours, theirs = os.pipe(), os.pipe()
        # Away from 3 and 4, where the browser looks for them.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (ours[0], ours[1], theirs[0], theirs[1])]
        for end in (*ours, *theirs):
            os.close(end)
        reads, self.writes, self.reads, writes = ends

        def place():
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={profile}",
                 "--window-size=1400,1000", "--no-first-run"]
        log = open(os.path.join(profile, "stderr"), "w")
        self.process = subprocess.Popen([chromium, *flags, "about:blank"], preexec_fn=place, pass_fds=(3, 4), stderr=log)
        os.close(reads)
        os.close(writes)
        self.number, self.rest, self.requests = 0, b"", []

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.reads, 1 << 16)
            if not more:
                sys.exit("the browser ended")
            self.rest += more
        first, self.rest = self.rest.split(b"\0", 1)
        return json.loads(first)

    def call(self, method, session=None, **params):
        self.number += 1
        text = {"id": self.number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        data = json.dumps(text).encode() + b"\0"
        while data:
            data = data[os.write(self.writes, data):]
        while True:
            found = self.message()
            if found.get("method") == "Network.requestWillBeSent":
                self.requests.append(found["params"]["request"]["url"])
            if found.get("id") == self.number:
                if "error" in found:
                    sys.exit(f"{method}: {found['error']}")
                return found["result"]

    def close(self):
        self.process.terminate()
        self.process.wait(30)


def look(chromium, page):
    """What the browser finds, and the requests but for that of the page."""
    profile = tempfile.mkdtemp()
    browser = Browser(chromium, profile)
    try:
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            browser.call(f"{domain}.enable", session)
        browser.call("Page.addScriptToEvaluateOnNewDocument", session, source=PROBE)
        url = f"file://{page}"
        browser.call("Page.navigate", session, url=url)
        value = browser.call("Runtime.evaluate", session, expression=LOOK, awaitPromise=True, returnByValue=True)
        found = json.loads(value["result"]["value"])
        return found, [request for request in browser.requests if request != url]
    finally:
        browser.close()
        shutil.rmtree(profile, ignore_errors=True)


def main():
    monopour, chromium = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    holds = True

    def line(what, is_met):
        nonlocal holds
        holds &= is_met
        print(what + ("" if is_met else ": not met"), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        model, page = os.path.join(folder, "layers.mlir"), os.path.join(folder, "page.html")
        with open(model, "w") as file:
            file.write(program())
        explained = json.loads(subprocess.run([monopour, "explain", model, "--target", "cpu", "--json", "--html", page],
                                              check=True, stdout=subprocess.PIPE).stdout)
        with open(page) as file:
            text = file.read()
        steps = explained["variants"][0]["memory_over_time"]
        line(f"dispatches: {len(steps)}, asked 500", len(steps) == 500)
        line(f"page: {len(text.encode())} bytes, bound {BYTES}", len(text.encode()) <= BYTES)
        data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))
        line(f"numbers of the page: {'those' if data == explained else 'not those'} of --json", data == explained)
        rows = re.findall(r'<tr data-step=(\d+)>.*<td class="n">(\d+) B<td class="n">(\d+) B', text)
        of_steps = [(str(step["step"]), str(step["live_bytes"]), str(step["bound_bytes"])) for step in steps]
        line(f"rows without a script: {len(rows)}, {sum(row in of_steps for row in rows)} as in --json, asked 500",
             sorted(rows) == sorted(of_steps))
        if chromium:
            found, requests = look(chromium, page)
            line(f"requests: {len(requests) + len(found['resources'])}, bound 0", not requests and not found["resources"])
            line(f"drawn: {found['drawn'] / 1e3:.3f} s after the navigation began, bound {SECONDS}", found["drawn"] <= SECONDS * 1e3)
            line(f"charts: {len(found['inked'])}, with {found['inked']} bytes of colour", len(found["inked"]) >= 2 and all(found["inked"]))
            line(f"in the browser: {found['rows']} rows, {'the same' if found['data'] == explained else 'other'} numbers",
                 found["rows"] == 500 and found["data"] == explained)
    sys.exit(not holds)


main()
