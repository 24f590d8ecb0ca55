"""Randomised traffic with disconnects, bad requests and overload against one server. Every answer must be one that is
expected for what was sent; afterwards nothing runs, no page is held, memory has not grown, and the server drains.

ASSAY_SOAK_SECONDS says how long (20; the full soak is 1800), ASSAY_SOAK_SEED what (1), ASSAY_BINARY which program: e.g.
one built with a sanitizer, whose reports make it fail too."""
import collections
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from assay_program import BINARY, MODEL, expect, require_model

SECONDS = float(os.environ.get("ASSAY_SOAK_SECONDS", "20"))
SEED = int(os.environ.get("ASSAY_SOAK_SEED", "1"))
CLIENTS = 12
KEYS = ["sk-soak-first-000000000000", "sk-soak-second-00000000000"]
TENANTS = f"""
[[tenant]]
name = "first"
keys = ["{KEYS[0]}"]
weight = 3
admin = true

[[tenant]]
name = "second"
keys = ["{KEYS[1]}"]
requests_in_flight = 6
"""
BUSY = {429, 503}  # overload, said as such


class Soak:
    def __init__(self, port):
        self.port = port
        self.end = time.monotonic() + SECONDS
        self.lock = threading.Lock()
        self.seen = collections.Counter()
        self.wrong = []

    def note(self, what, status, allowed, detail=""):
        with self.lock:
            self.seen[f"{what} {status}"] += 1
            if status not in allowed:
                self.wrong.append(f"{what}: {status} not in {sorted(allowed)} {str(detail)[:300]}")

    def request(self, method, path, body=None, key=KEYS[0], timeout=120):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = "Bearer " + key
        if isinstance(body, dict):
            body = json.dumps(body)
        connection.request(method, path, body, headers)
        return connection, connection.getresponse()

    def whole(self, what, path, body, allowed, key):
        connection, answer = self.request("POST", path, body, key)
        text = answer.read()
        self.note(what, answer.status, allowed, text)
        if answer.status == 200:
            json.loads(text)
        connection.close()

    def streamed(self, rng, key):
        body = {"model": "default", "stream": True, "max_tokens": rng.randint(1, 80), "temperature": rng.random(),
                "messages": [{"role": "user", "content": "word " * rng.randint(1, 300)}], "n": rng.choice([1, 1, 1, 3])}
        connection, answer = self.request("POST", "/v1/chat/completions", body, key)
        leave_after = rng.choice([None, None, 1, 200, 2000])
        slow = rng.random() < 0.1
        received = b""
        if answer.status == 200:
            while chunk := answer.read1(4096):
                received += chunk
                if leave_after is not None and len(received) >= leave_after:
                    break
                if slow:
                    time.sleep(0.05)
        else:
            answer.read()
        self.note("stream", answer.status, {200} | BUSY, received)
        if answer.status == 200 and leave_after is None:
            self.note("stream end", "[DONE]" if received.endswith(b"data: [DONE]\n\n") else "cut", {"[DONE]"},
                      received[-200:])
        connection.close()

    def bad(self, rng, key):
        deep = "[" * 100 + "]" * 100
        cases = [("/v1/chat/completions", "{", 400), ("/v1/chat/completions", b"\xff\xfe", 400),
                 ("/v1/completions", {"model": "default", "prompt": "x", "temperature": 99}, 400),
                 ("/v1/completions", {"model": "nobody", "prompt": "x"}, 404),
                 ("/v1/completions", {"model": "default", "prompt": "x", "no_such_field": 1}, 400),
                 ("/v1/completions", {"model": "default", "prompt": "word " * 20000}, 400),
                 ("/v1/completions", '{"model":"default","prompt":' + deep + "}", 400),
                 ("/v1/completions", {"model": "default", "prompt": "x", "logit_bias": {"-1": 3}}, 400),
                 ("/v1/nothing", {}, 404)]
        path, body, status = rng.choice(cases)
        self.whole("bad", path, body, {status} | BUSY, key)

    def schema(self, rng, key):
        good = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}},
                "required": ["a", "b"], "additionalProperties": False}
        bomb = {"type": "array", "items": {"type": "string", "pattern": "(a|b|ab){1,%d}c" % rng.randint(50, 4000)}}
        schema, allowed = rng.choice([(good, {200}), (bomb, {200, 400}), ({"not": {}}, {400})])
        body = {"model": "default", "max_tokens": 60, "prompt": "Give me JSON:",
                "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}}
        self.whole("schema", "/v1/completions", body, allowed | BUSY, key)

    def half(self, rng):
        """A connection that is opened, says a little or a lot of nonsense, and goes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as raw:
            raw.sendall(rng.choice([b"", b"GET / HT", b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
                                    rng.randbytes(rng.randint(1, 3000))]))
            if rng.random() < 0.5:
                raw.shutdown(socket.SHUT_WR)
                raw.settimeout(10)
                while raw.recv(4096):
                    pass
        self.note("half", "over", {"over"})

    def act(self, rng):
        key = rng.choice(KEYS)
        kind = rng.random()
        if kind < 0.45:
            self.streamed(rng, key)
        elif kind < 0.60:
            prompt = rng.choice(["Once upon a time", "word " * rng.randint(1, 1000), [1, 2, 3]])
            self.whole("whole", "/v1/completions", {"model": "default", "prompt": prompt, "max_tokens": rng.randint(1, 40),
                                                    "logprobs": rng.choice([None, 3]), "echo": rng.random() < 0.2},
                       {200} | BUSY, key)
        elif kind < 0.65:
            self.whole("embeddings", "/v1/embeddings", {"model": "default", "input": ["a", "b " * rng.randint(1, 50)]},
                       {200} | BUSY, key)
        elif kind < 0.72:
            self.schema(rng, key)
        elif kind < 0.84:
            self.bad(rng, key)
        elif kind < 0.88:
            self.whole("stranger", "/v1/completions", {"model": "default", "prompt": "x"}, {401}, rng.choice([None, "sk-wrong"]))
        elif kind < 0.94:
            self.half(rng)
        else:
            connection, answer = self.request("GET", rng.choice(["/metrics", "/v1/models", "/debug/state", "/health"]), key=KEYS[0])
            answer.read()
            self.note("look", answer.status, {200})
            connection.close()

    def client(self, number):
        rng = random.Random(SEED * 1000 + number)
        while time.monotonic() < self.end:
            try:
                self.act(rng)
            except ConnectionResetError:  # answered and closed while this side was still sending
                self.note("connection", "reset", {"reset"})
            except Exception as error:  # noqa: BLE001
                self.note("client", type(error).__name__, set(), repr(error))
                time.sleep(0.1)


def resident_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def gauge(metrics, name):
    return sum(float(line.rsplit(" ", 1)[1]) for line in metrics.splitlines() if line.startswith(name))


def main():
    require_model()
    with tempfile.TemporaryDirectory() as folder:
        keys = pathlib.Path(folder, "keys.toml")
        keys.write_text(TENANTS)
        keys.chmod(0o600)
        log = open(pathlib.Path(folder, "log"), "w+")
        server = subprocess.Popen([BINARY, "serve", "--model", MODEL, "--port", "0", "--max-sequences", "6", "--max-queue", "10",
                                   "--kv-memory", "400 MiB", "--swap-memory", "50 MiB", "--api-keys", str(keys)],
                                  stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            port = None
            for line in server.stdout:
                if line.startswith("address"):
                    port = int(line.rsplit(":", 1)[1])
                if line.startswith("ready"):
                    break
            expect(port is not None, "the server started")
            soak = Soak(port)
            threads = [threading.Thread(target=soak.client, args=(number,)) for number in range(CLIENTS)]
            for thread in threads:
                thread.start()
            # Memory when everything has been in use for a while, and from then on.
            time.sleep(SECONDS * 0.4)
            settled = resident_kib(server.pid)
            for thread in threads:
                thread.join()
            for _ in range(100):
                connection, answer = soak.request("GET", "/metrics")
                metrics = answer.read().decode()
                if gauge(metrics, "assay_running_requests") + gauge(metrics, "assay_waiting_requests") == 0:
                    break
                time.sleep(0.1)
            final = resident_kib(server.pid)
            for what, count in sorted(soak.seen.items()):
                print(f"{count:7d}  {what}")
            growth = final / settled - 1
            print(f"resident {settled} KiB after {SECONDS * 0.4:.0f} s, {final} KiB after {SECONDS:.0f} s: {growth:+.2%}")
            expect(not soak.wrong, "only expected answers: " + "; ".join(soak.wrong[:10]))
            expect(gauge(metrics, "assay_running_requests") + gauge(metrics, "assay_waiting_requests") == 0, "nothing runs")
            expect(gauge(metrics, 'assay_kv_blocks{state="used"}') == 0, "no page is held")
            expect(soak.seen["stream 200"] > 0 and soak.seen["stream end [DONE]"] > 0, "streams were answered")
            # A short run has not touched everything once: only the full soak holds memory to 2 %.
            expect(growth < (0.02 if SECONDS >= 600 else 0.15), f"memory is flat, found {growth:+.2%}")
            server.send_signal(signal.SIGTERM)
            expect(server.wait(timeout=60) == 0, "it drains and ends with 0")
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()
            log.seek(0)
            errors = log.read()
            if errors:
                print("server's log:", errors[-3000:])
        expect("Sanitizer" not in errors and "runtime error" not in errors, "no sanitizer report")
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
