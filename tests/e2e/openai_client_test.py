#!/usr/bin/env python3
"""The official OpenAI client against `assay serve` with the default model: listing, chat, streams, errors, a drain.

Needs the package `openai` (pip install openai, in an environment of your own) and the default model; skips (77) with
a message where either is absent. Run alone: ASSAY_BINARY=build/dev/assay python3 tests/e2e/openai_client_test.py
"""
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import urllib.request

SOURCE = pathlib.Path(os.environ.get("ASSAY_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BINARY = os.environ.get("ASSAY_BINARY", str(SOURCE / "build/dev/assay"))
HOME = pathlib.Path(os.environ.get("ASSAY_HOME") or pathlib.Path.home() / ".cache/assay")
MODEL = HOME / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
NAME = "smollm2-135m"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def expect(condition, what):
    if not condition:
        print(f"FAILED: {what}")
        sys.exit(1)


def start_server():
    server = subprocess.Popen([BINARY, "serve", "--model", str(MODEL), "--port", "0", "--context", "1024",
                               "--max-sequences", "8"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in server.stdout:
        lines.append(line)
        if line.startswith("ready"):
            break
    text = "".join(lines)
    address = re.search(r"http://[0-9.]+:\d+", text)
    expect(address and lines[-1].startswith("ready"), f"the server did not start:\n{text}")
    for word in ("model", "precision", "memory", "batch", "address"):
        expect(f"\n{word}" in "\n" + text, f"no line '{word}' in:\n{text}")
    return server, address.group(0)


def check_chat(client):
    ask = {"model": NAME, "temperature": 0, "max_tokens": 24,
           "messages": [{"role": "user", "content": "What is the capital of France?"}]}
    whole = client.chat.completions.create(**ask)
    text = whole.choices[0].message.content
    expect(len(text) > 10, f"expected an answer, found {text!r}")
    expect(whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens, "usage adds up")
    pieces, usage, reason = [], None, None
    for chunk in client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            pieces.append(choice.delta.content or "")
            reason = choice.finish_reason or reason
    expect("".join(pieces) == text, f"stream {''.join(pieces)!r} differs from whole {text!r}")
    expect(usage is not None and usage.completion_tokens == whole.usage.completion_tokens, "usage of the stream")
    expect(reason == whole.choices[0].finish_reason, "finish reason of the stream")
    again = client.chat.completions.create(**ask)
    expect(again.usage.prompt_tokens_details.cached_tokens > 0, "a repeated prompt is cached")
    history = ask["messages"] + [again.choices[0].message.model_dump(), {"role": "user", "content": "And of Italy?"}]
    expect(client.chat.completions.create(**{**ask, "messages": history}).choices[0].message.content, "a second turn")


def check_completions(client):
    fact = client.completions.create(model=NAME, prompt="The capital of France is", max_tokens=2, temperature=0)
    expect("Paris" in fact.choices[0].text, f"expected Paris, found {fact.choices[0].text!r}")
    made = client.completions.create(model=NAME, prompt=["One, two, three,", "Red, green,"], max_tokens=5, temperature=0,
                                     logprobs=2)
    expect([c.index for c in made.choices] == [0, 1], "two prompts give two choices")
    expect("four" in made.choices[0].text, f"expected four, found {made.choices[0].text!r}")
    expect(len(made.choices[0].logprobs.tokens) == len(made.choices[0].logprobs.token_logprobs), "log-probabilities")
    sampled = client.completions.create(model=NAME, prompt="Once", max_tokens=8, n=3, seed=5, temperature=1.2)
    expect(len(sampled.choices) == 3, "three choices")


def check_errors(client, openai):
    def refused(kind, code, **request):
        try:
            client.chat.completions.create(**{"model": NAME, "messages": [{"role": "user", "content": "x"}], **request})
        except kind as error:
            expect(error.code == code, f"expected {code}, found {error.code}")
        else:
            expect(False, f"{code} was not raised")

    refused(openai.NotFoundError, "model_not_found", model="gpt-4")
    refused(openai.BadRequestError, "invalid_value", temperature=-1)
    refused(openai.BadRequestError, "context_length_exceeded", max_tokens=100000)
    refused(openai.BadRequestError, "unsupported_parameter", store=True)
    refused(openai.BadRequestError, "unknown_parameter", extra_body={"colour": "red"})


def check_concurrency(client):
    def ask(number):
        return client.chat.completions.create(model=NAME, temperature=0, max_tokens=12, messages=[
            {"role": "user", "content": f"What is {number} plus {number}?"}]).choices[0].message.content

    solo = [ask(number) for number in range(6)]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        together = list(pool.map(ask, range(6)))
    expect(solo == together, f"concurrent answers differ: {solo} and {together}")


def check_drain(client, server, address):
    stream = client.chat.completions.create(model=NAME, temperature=0, max_tokens=60, stream=True,
                                            messages=[{"role": "user", "content": "Tell a story."}])
    first = next(stream)
    expect(first.choices, "a first chunk")
    server.send_signal(signal.SIGTERM)
    reason = None
    for chunk in stream:
        for choice in chunk.choices:
            reason = choice.finish_reason or reason
    expect(reason in ("stop", "length"), f"the stream was cut by the drain: {reason}")
    rest = server.communicate(timeout=60)[0]
    expect(server.returncode == 0, f"exit code {server.returncode} after SIGTERM:\n{rest}")
    expect("stopped" in rest, f"no word of the end:\n{rest}")


def main():
    try:
        import openai
    except ImportError:
        skip("the Python package openai is not installed")
    if not MODEL.exists():
        skip(f"{MODEL} is not there; run: assay pull {NAME}")
    server, address = start_server()
    try:
        client = openai.OpenAI(base_url=address + "/v1", api_key="none", max_retries=0, timeout=120)
        expect([model.id for model in client.models.list()] == [NAME], "the model is listed")
        expect(client.models.retrieve(NAME).id == NAME, "the model is shown")
        check_chat(client)
        check_completions(client)
        check_errors(client, openai)
        check_concurrency(client)
        metrics = urllib.request.urlopen(address + "/metrics").read().decode()
        expect("assay_generated_tokens_total" in metrics, "metrics")
        check_drain(client, server, address)
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    print(f"passed with openai {openai.__version__}")


if __name__ == "__main__":
    main()
