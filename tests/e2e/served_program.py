"""`assay serve` as a process for a test: started on a free port, asked, ended."""
import contextlib
import json
import re
import signal
import subprocess
import urllib.error
import urllib.request

from assay_program import BINARY, MODEL, expect, require_model


class Server:
    def __init__(self, process, address):
        self.process = process
        self.address = address

    def ask(self, path, body=None, headers=None, timeout=120):
        """Returns (status, headers, body as text); POST when there is a body."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data,
                                         {**({"Content-Type": "application/json"} if data else {}), **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.headers, answer.read().decode()

    def chat(self, text, headers=None, **more):
        return self.ask("/v1/chat/completions", {"model": "default", "temperature": 0, "max_tokens": 16,
                                                 "messages": [{"role": "user", "content": text}], **more}, headers)

    def stop(self):
        """SIGTERM; returns the exit code and what was printed since the start."""
        self.process.send_signal(signal.SIGTERM)
        rest = self.process.communicate(timeout=60)[0]
        return self.process.returncode, rest


@contextlib.contextmanager
def serving(*flags, context=1024, env=None):
    """The default model, ready to answer; skips the test where it is absent."""
    require_model()
    process = subprocess.Popen([BINARY, "serve", "--model", str(MODEL), "--port", "0", "--context", str(context),
                                "--max-sequences", "8", *map(str, flags)],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("ready"):
                break
        address = re.search(r"https?://[0-9.]+:\d+", "".join(lines))
        expect(address and lines[-1].startswith("ready"), "the server did not start:\n" + "".join(lines))
        yield Server(process, address.group(0))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
