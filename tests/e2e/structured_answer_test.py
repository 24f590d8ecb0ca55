#!/usr/bin/env python3
"""The official OpenAI client against `assay serve`: JSON by schema, tool calls whole and streamed, a round trip.

The default model's own chat template takes no tools, so a second server runs it with a Hermes template. Needs the
default model, and the package `openai`, which it installs into an environment under the assay home; skips (77) with a
message where either cannot be had. Run alone: ASSAY_BINARY=build/dev/assay python3 tests/e2e/structured_answer_test.py
"""
import json
import re

from assay_program import SOURCE, expect, require_model, start_server
from python_packages import require_packages

NAME = "smollm2-135m"
SIZES = ("--context", 2048, "--max-sequences", 8)
TEMPLATE = SOURCE / "tests/tokenizer/data/templates/hermes-format.jinja"
PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0,
          "maximum": 120}, "likes": {"type": "array", "items": {"enum": ["tea", "cake", "rain"]}, "maxItems": 3}},
          "required": ["name", "age", "likes"], "additionalProperties": False}
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 30}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city", "unit"], "additionalProperties": False}}}
TIME = {"type": "function", "function": {"name": "get_time", "description": "The time now", "parameters": {
    "type": "object", "properties": {}, "additionalProperties": False}}}


def check_person(text):
    person = json.loads(text)
    expect(set(person) == {"name", "age", "likes"}, f"wrong members: {text}")
    expect(isinstance(person["name"], str) and len(person["name"]) <= 20, f"wrong name: {text}")
    expect(isinstance(person["age"], int) and 0 <= person["age"] <= 120, f"wrong age: {text}")
    expect(len(person["likes"]) <= 3 and set(person["likes"]) <= {"tea", "cake", "rain"}, f"wrong likes: {text}")


def check_schemas(client):
    ask = {"model": NAME, "messages": [{"role": "user", "content": "Make up a person, as JSON."}], "max_tokens": 200}
    form = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": PERSON}}
    for seed in range(8):
        for temperature in (0, 1, 2):
            made = client.chat.completions.create(**ask, response_format=form, temperature=temperature, seed=seed, logprobs=True)
            expect(made.choices[0].finish_reason == "stop", f"expected an end, found {made.choices[0]}")
            check_person(made.choices[0].message.content)
            expect(all(token.logprob > -1000 for token in made.choices[0].logprobs.content), "log-probabilities")
    pieces = [choice.delta.content or "" for chunk in client.chat.completions.create(**ask, response_format=form, stream=True, seed=3)
              for choice in chunk.choices]
    check_person("".join(pieces))
    both = client.chat.completions.create(**ask, response_format=form, n=4, seed=9)
    for choice in both.choices:
        check_person(choice.message.content)
    made = client.chat.completions.create(**{**ask, "max_tokens": 300}, response_format={"type": "json_object"}, temperature=0)
    if made.choices[0].finish_reason == "stop":
        expect(isinstance(json.loads(made.choices[0].message.content), dict), "a JSON object")
    else:
        expect(made.choices[0].finish_reason == "length" and made.choices[0].message.content.startswith("{"), "a cut object")
    form["json_schema"]["schema"] = {"type": "string", "format": "date"}
    made = client.completions.create(model=NAME, prompt="The date: ", max_tokens=40, extra_body={"response_format": form})
    expect(re.fullmatch(r'"\d{4}-\d\d-\d\d"', made.choices[0].text), f"expected a date, found {made.choices[0].text}")


def check_parsed(client):
    try:
        import pydantic
    except ImportError:
        return

    class Point(pydantic.BaseModel):
        x: int
        label: str = pydantic.Field(max_length=12)

    made = client.chat.completions.parse(model=NAME, messages=[{"role": "user", "content": "A point, please."}], max_tokens=100,
                                         response_format=Point, temperature=0)
    expect(isinstance(made.choices[0].message.parsed, Point), f"expected a Point, found {made.choices[0].message}")


def check_errors(client, openai):
    ask = {"model": NAME, "messages": [{"role": "user", "content": "x"}]}
    cases = [("unsupported_schema", {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"not": {}}}}}),
             ("invalid_schema", {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": 5}}}}),
             ("tools_not_supported", {"tools": [WEATHER]})]
    for code, more in cases:
        try:
            client.chat.completions.create(**ask, **more)
        except openai.BadRequestError as error:
            expect(error.code == code, f"expected {code}, found {error.code}")
        else:
            expect(False, f"{code} was not raised")


def check_weather(call):
    expect(call.function.name == "get_weather", f"wrong function: {call}")
    arguments = json.loads(call.function.arguments)
    expect(set(arguments) == {"city", "unit"} and arguments["unit"] in ("celsius", "fahrenheit"), f"wrong arguments: {arguments}")


def check_tools(client):
    messages = [{"role": "user", "content": "What is the weather in Oslo?"}]
    ask = {"model": NAME, "max_tokens": 200, "tools": [WEATHER, TIME]}
    named = {"type": "function", "function": {"name": "get_weather"}}
    for seed in range(5):
        made = client.chat.completions.create(**ask, messages=messages, tool_choice=named, seed=seed, temperature=1)
        expect(made.choices[0].finish_reason == "tool_calls", f"wrong end: {made.choices[0]}")
        check_weather(made.choices[0].message.tool_calls[0])
        made = client.chat.completions.create(**ask, messages=messages, tool_choice="required", parallel_tool_calls=False, seed=seed)
        calls = made.choices[0].message.tool_calls
        expect(len(calls) == 1 and calls[0].function.name in ("get_weather", "get_time"), f"wrong calls: {calls}")
        json.loads(calls[0].function.arguments)
    # The round trip: the call and its answer go back.
    messages += [made.choices[0].message.model_dump(exclude_none=True),
                 {"role": "tool", "tool_call_id": calls[0].id, "content": json.dumps({"degrees": 7})}]
    answer = client.chat.completions.create(**ask, messages=messages, tool_choice="none", temperature=0)
    expect(answer.choices[0].message.content and not answer.choices[0].message.tool_calls, "an answer in words")
    free = client.chat.completions.create(**ask, messages=messages[:1], temperature=0)
    expect(free.choices[0].finish_reason in ("stop", "length", "tool_calls"), "free to call or not")


def check_streamed_tools(client):
    stream = client.chat.completions.create(model=NAME, max_tokens=200, tools=[WEATHER], seed=1, stream=True,
                                            tool_choice="required", parallel_tool_calls=False,
                                            messages=[{"role": "user", "content": "What is the weather in Oslo?"}])
    calls, reason, pieces = {}, None, 0
    for chunk in stream:
        for choice in chunk.choices:
            reason = choice.finish_reason or reason
            for delta in choice.delta.tool_calls or []:
                call = calls.setdefault(delta.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += delta.id or ""
                call["name"] += delta.function.name or ""
                call["arguments"] += delta.function.arguments or ""
                pieces += 1
    expect(reason == "tool_calls" and len(calls) == 1, f"wrong stream: {reason}, {calls}")
    expect(calls[0]["id"].startswith("call_") and calls[0]["name"] == "get_weather", f"wrong call: {calls}")
    expect(pieces > 3, f"expected several pieces, found {pieces}")
    expect(set(json.loads(calls[0]["arguments"])) == {"city", "unit"}, f"wrong arguments: {calls}")
    # The client's own accumulation of a stream.
    with client.chat.completions.stream(model=NAME, max_tokens=200, tools=[WEATHER], seed=2, tool_choice="required",
                                        messages=[{"role": "user", "content": "Weather?"}]) as events:
        final = events.get_final_completion()
    check_weather(final.choices[0].message.tool_calls[0])


def main():
    require_model()
    require_packages("openai==3.57.0")
    import openai
    servers = []
    try:
        server, address, _ = start_server(*SIZES)
        servers.append(server)
        client = openai.OpenAI(base_url=address + "/v1", api_key="none", max_retries=0, timeout=120)
        check_schemas(client)
        check_parsed(client)
        check_errors(client, openai)
        server, address, _ = start_server(*SIZES, "--chat-template", TEMPLATE)
        servers.append(server)
        client = openai.OpenAI(base_url=address + "/v1", api_key="none", max_retries=0, timeout=120)
        check_tools(client)
        check_streamed_tools(client)
    finally:
        for server in servers:
            server.kill()
            server.wait()
    print(f"passed with openai {openai.__version__}")


if __name__ == "__main__":
    main()
