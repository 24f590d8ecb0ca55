#!/usr/bin/env python3
"""The official OpenAI client against `assay serve` with the default model: listing, chat, streams, errors, a drain.

Needs the default model, and the package `openai`, which it installs into an environment under the assay home; skips (77)
with a message where either cannot be had. Run alone: ASSAY_BINARY=build/dev/assay python3 tests/e2e/openai_client_test.py
"""
import concurrent.futures
import signal
import tempfile
import urllib.request

from assay_program import expect, require_model, start_server
from python_packages import require_packages

NAME = "smollm2-135m"
KEYS = """
[[tenant]]
name = "app"
keys = ["sk-app-key"]
admin = true

[[tenant]]
name = "limited"
keys = ["sk-limited-key"]
requests_per_minute = 2
"""


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


def check_embeddings(client):
    texts = ["A cat sleeps on the sofa.", "A kitten naps on the couch.", "Interest rates rose by two percent."]
    made = client.embeddings.create(model=NAME, input=texts)  # the client asks for base64
    vectors = [entry.embedding for entry in made.data]
    expect([entry.index for entry in made.data] == [0, 1, 2], "in order")
    expect(all(abs(sum(x * x for x in v) - 1) < 1e-4 for v in vectors), "vectors have length 1")
    near, far = (sum(a * b for a, b in zip(vectors[0], other)) for other in vectors[1:])
    expect(near > far, f"cats are nearer to kittens ({near}) than to interest rates ({far})")
    plain = client.embeddings.create(model=NAME, input=texts[0], encoding_format="float").data[0].embedding
    expect(max(abs(a - b) for a, b in zip(plain, vectors[0])) < 1e-6, "the same numbers in both encodings")


def check_echo(client):
    ask = {"model": NAME, "prompt": "The capital of France is Paris", "echo": True, "logprobs": 1, "temperature": 0}
    scored = client.completions.create(**ask, max_tokens=0).choices[0]
    more = client.completions.create(**ask, max_tokens=1).choices[0]
    expect(scored.text == ask["prompt"], f"expected the prompt, found {scored.text!r}")
    values = scored.logprobs.token_logprobs
    expect(values[0] is None and values[-1] > -3, f"Paris is no surprise: {values}")
    expect(more.logprobs.token_logprobs[:-1] == values, "the same prompt, the same log-probabilities")
    streamed = [chunk.choices[0].text for chunk in client.completions.create(**ask, max_tokens=4, stream=True) if chunk.choices]
    expect("".join(streamed).startswith(ask["prompt"]), f"a stream begins with the prompt: {streamed}")


def check_keys(client, openai, address):
    ask = {"model": NAME, "prompt": "x", "max_tokens": 1}
    try:
        client.with_options(api_key="sk-wrong-key").completions.create(**ask)
        expect(False, "a wrong key is refused")
    except openai.AuthenticationError as error:
        expect(error.code == "invalid_api_key", f"found {error.code}")
    limited = client.with_options(api_key="sk-limited-key")
    first = limited.completions.with_raw_response.create(**ask)
    expect(first.headers["x-ratelimit-remaining-requests"] == "1", f"headers: {dict(first.headers)}")
    limited.completions.create(**ask)
    try:
        limited.completions.create(**ask)
        expect(False, "the third request of a minute is refused")
    except openai.RateLimitError as error:
        expect(error.code == "rate_limit_exceeded", f"found {error.code}")
        expect(1 <= int(error.response.headers["retry-after"]) <= 30, "time to wait")
    usage = client.get("/usage", cast_to=object, options={"params": {"tenants": "all"}})
    counted = {entry["tenant"]: entry["requests"] for entry in usage["data"]}
    expect(counted["limited"] == 2 and counted["app"] > 0, f"usage: {counted}")


def check_request_id(client):
    raw = client.completions.with_raw_response.create(model=NAME, prompt="x", max_tokens=1,
                                                      extra_headers={"X-Request-Id": "my-request.1"})
    expect(raw.headers["x-request-id"] == "my-request.1", "the request's own id comes back")
    expect(client.completions.create(model=NAME, prompt="x", max_tokens=1)._request_id.startswith("req-"), "an id is made")


def main():
    require_model()
    require_packages("openai==3.57.0")
    import openai
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as keys:
        keys.write(KEYS)
        keys.flush()
        server, address, text = start_server("--context", 1024, "--max-sequences", 8, "--api-keys", keys.name)
    for word in ("model", "precision", "memory", "batch", "address"):
        expect(f"\n{word}" in "\n" + text, f"no line '{word}' in:\n{text}")
    try:
        client = openai.OpenAI(base_url=address + "/v1", api_key="sk-app-key", max_retries=0, timeout=120)
        expect([model.id for model in client.models.list()] == [NAME], "the model is listed")
        expect(client.models.retrieve(NAME).id == NAME, "the model is shown")
        check_chat(client)
        check_completions(client)
        check_embeddings(client)
        check_echo(client)
        check_errors(client, openai)
        check_keys(client, openai, address)
        check_request_id(client)
        check_concurrency(client)
        metrics = urllib.request.Request(address + "/metrics", headers={"Authorization": "Bearer sk-app-key"})
        expect("assay_generated_tokens_total" in urllib.request.urlopen(metrics).read().decode(), "metrics")
        check_drain(client, server, address)
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    print(f"passed with openai {openai.__version__}")


if __name__ == "__main__":
    main()
