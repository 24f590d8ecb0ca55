#!/usr/bin/env python3
"""`assay serve` as a process: what it prints, what it refuses to start with, and how it ends.

Skips (77) where the default model is absent.
"""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ.get("ASSAY_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BINARY = os.environ.get("ASSAY_BINARY", str(SOURCE / "build/dev/assay"))
HOME = pathlib.Path(os.environ.get("ASSAY_HOME") or pathlib.Path.home() / ".cache/assay")
MODEL = HOME / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
SMALL = ["--context", "1024", "--max-sequences", "4"]


def expect(condition, what):
    if not condition:
        print(f"FAILED: {what}")
        sys.exit(1)


def check_refusal(arguments, words, code=1):
    done = subprocess.run([BINARY, "serve", *arguments], capture_output=True, text=True, timeout=300)
    expect(done.returncode == code, f"{arguments}: exit code {done.returncode}, expected {code}: {done.stderr}")
    for word in words:
        expect(word in done.stderr, f"{arguments}: expected '{word}' in: {done.stderr}")
    if code == 1:
        expect(len(done.stderr.strip().splitlines()) == 1, f"{arguments}: expected one line, found: {done.stderr}")


def check_refusals():
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "text.gguf"
        text.write_text("this is no model\n" * 100)
        check_refusal(["--model", str(text)], [str(text)])
        check_refusal(["--plan", str(text)], [str(text)])
        check_refusal(["--plan", str(pathlib.Path(folder) / "none.json")], ["none.json"])
    check_refusal([], ["--plan", "--model"])
    check_refusal(["--model", str(MODEL), "--host", "not-an-address"], ["not-an-address"])
    check_refusal(["--model", str(MODEL), *SMALL, "--port", "0", "--kv-memory", "900000 GiB"], ["does not fit", "too much"])
    check_refusal(["--model", str(MODEL), *SMALL, "--port", "0", "--kv-memory", "1 MiB"], ["1.00 MiB"])
    check_refusal(["--model", str(MODEL), "--port", "70000"], ["--port"], code=2)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        started = time.monotonic()
        check_refusal(["--model", str(MODEL), "--port", str(port)], [f"127.0.0.1:{port}", "in use"])
        expect(time.monotonic() - started < 60, "a taken port is noticed before the model is loaded")


def start(*more):
    server = subprocess.Popen([BINARY, "serve", "--model", str(MODEL), "--host", "localhost", "--port", "0", *SMALL, *more],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in server.stdout:
        lines.append(line)
        if line.startswith("ready"):
            break
    address = re.search(r"http://127\.0\.0\.1:(\d+)", "".join(lines))
    expect(address and lines[-1].startswith("ready"), "the server did not start:\n" + "".join(lines))
    return server, int(address.group(1))


def begin_stream(port, max_tokens):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    client.request("POST", "/v1/completions", headers={"Content-Type": "application/json"}, body=json.dumps(
        {"model": "default", "prompt": "Once upon a time", "max_tokens": max_tokens, "stream": True,
         "logit_bias": {"0": -100, "2": -100}}))
    answer = client.getresponse()
    expect(answer.status == 200, f"status {answer.status}")
    expect(answer.readline().startswith(b"data: "), "a first event")
    return client, answer


def check_ends():
    server, port = start()
    client, answer = begin_stream(port, 40)
    server.send_signal(signal.SIGTERM)
    expect(b"[DONE]" in answer.read(), "a running stream is finished after SIGTERM")
    client.close()
    rest = server.communicate(timeout=60)[0]
    expect(server.returncode == 0 and "stopped" in rest, f"exit code {server.returncode}: {rest}")

    server, port = start()
    client, answer = begin_stream(port, 900)
    server.send_signal(signal.SIGINT)
    while "draining" not in server.stdout.readline():
        pass
    server.send_signal(signal.SIGINT)
    server.communicate(timeout=20)
    expect(server.returncode == 130, f"exit code {server.returncode} after the second SIGINT")
    client.close()


def ask(port, path, key=None):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    client.request("GET", path, headers={"Authorization": f"Bearer {key}"} if key else {})
    return client.getresponse().status


def wait_for_line(server, word):
    while line := server.stdout.readline():
        if word in line:
            return
    expect(False, f"the server ended without saying '{word}'")


def check_keys():
    with tempfile.TemporaryDirectory() as folder:
        keys = pathlib.Path(folder) / "keys.toml"
        keys.write_text('[[tenant]]\nname = "a"\nkeys = ["sk-first-key"]\n')
        keys.chmod(0o600)
        server, port = start("--api-keys", str(keys))
        expect(ask(port, "/health") == 200 and ask(port, "/v1/models") == 401, "a key is asked for")
        expect(ask(port, "/v1/models", "sk-first-key") == 200, "the key opens")
        keys.write_text('[[tenant]]\nname = "a"\nkeys = ["sk-second-key"]\n')
        server.send_signal(signal.SIGHUP)
        wait_for_line(server, "keys")
        expect(ask(port, "/v1/models", "sk-first-key") == 401, "the old key is gone")
        expect(ask(port, "/v1/models", "sk-second-key") == 200, "the new key opens")
        keys.write_text("[[tenant]]\nname = broken")
        server.send_signal(signal.SIGHUP)
        wait_for_line(server, "stay as they were")
        expect(ask(port, "/v1/models", "sk-second-key") == 200, "a broken file changes nothing")
        server.terminate()
        expect(server.wait(timeout=60) == 0, "an orderly end")
        check_refusal(["--model", str(MODEL), "--api-keys", str(keys)], ["keys.toml:2"])
    check_refusal(["--model", str(MODEL), "--api-keys", "/nonexistent/keys.toml"], ["/nonexistent/keys.toml"])


def check_dry_run():
    done = subprocess.run([BINARY, "serve", "--model", str(MODEL), *SMALL, "--dry-run", "--weights", "int8"],
                          capture_output=True, text=True, timeout=300)
    expect(done.returncode == 0, done.stderr)
    check_refusal(["--model", str(MODEL), *SMALL, "--dry-run", "--kv-memory", "900000 GiB"], ["does not fit", "too much"])
    for word in ("precision  weights", "int8", "memory     weights", "KV holds 4096 tokens", "stay free in reserve"):
        expect(word in done.stdout, f"expected '{word}' in:\n{done.stdout}")
    expect("address" not in done.stdout, "a dry run does not listen")


def main():
    if not MODEL.exists():
        print(f"skipped: {MODEL} is not there; run: assay pull smollm2-135m")
        sys.exit(77)
    check_refusals()
    check_dry_run()
    check_ends()
    check_keys()
    print("passed")


if __name__ == "__main__":
    main()
