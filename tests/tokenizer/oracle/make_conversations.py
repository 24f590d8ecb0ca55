#!/usr/bin/env python3
"""Writes ../data/conversations.json: what the template tests render. python3 make_conversations.py > ../data/conversations.json"""
import json
import sys

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather of a place.",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "City & country, e.g. \"Zürich, CH\""},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["location"],
        },
    },
}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds two numbers.",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "number", "description": "first", "minimum": -1.5},
                "b": {"type": "number", "description": "second", "default": 0, "maximum": 18446744073709551615},
                "options": {"type": "array", "items": {"type": "string"}, "nullable": True},
            },
            "required": ["a", "b"],
        },
    },
}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


def call(name, arguments, identifier):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


TOOL_USE = [
    user("What is the weather in Zürich?"),
    assistant("", tool_calls=[call("get_weather", {"location": "Zürich", "unit": "celsius"}, "abcdef123")]),
    {"role": "tool", "name": "get_weather", "tool_call_id": "abcdef123", "content": "{\"degrees\": 21.5}"},
    assistant("It is 21.5 °C."),
    user("Thanks. And 2 + 40?"),
]
CONVERSATIONS = {
    "single": ([user("Hello, who are you?")], {}),
    "no_generation_prompt": ([user("Hi"), assistant("Hello!")], {"add_generation_prompt": False}),
    "system": ([system("You are terse."), user("Name a prime.")], {}),
    "multi_turn": (
        [system("Be kind."), user("One?"), assistant("1."), user("Two?"), assistant("2."), user("Three?")], {}),
    "unicode": ([system("Sois bref — ‘oui’."), user("日本語とemoji 👩‍💻 \"quoted\" <b>&amp;</b>\t\\n"),
                 assistant("Ελληνικά\u00a0ß"), user("  spaces around  \n\n")], {}),
    "empty_content": ([system(""), user(""), assistant(""), user("x")], {}),
    "parts": ([{"role": "user", "content": [{"type": "text", "text": "Describe "}, {"type": "text", "text": "this."}]},
               assistant("Done."), {"role": "user", "content": [{"type": "text", "text": "Again"}]}], {}),
    "assistant_last": ([user("Write on"), assistant("Once upon")], {"continue_final_message": True,
                                                                    "add_generation_prompt": False}),
    "thinking": ([user("2+2?"), assistant("<think>\nadd them\n</think>\n\n4", reasoning_content="add them"),
                  user("3+3?")], {"enable_thinking": True}),
    "no_thinking": ([user("2+2?")], {"enable_thinking": False}),
    "tools": ([system("Use tools."), user("What is the weather in Zürich?")], {"tools": [WEATHER, ADD]}),
    "tool_use": (TOOL_USE, {"tools": [WEATHER, ADD]}),
    "tool_use_in_parallel": ([user("Add twice"), assistant(None, tool_calls=[
        call("add", {"a": 1, "b": 2.5}, "aaaaaaaaa"), call("add", {"a": -1, "b": 1e20}, "bbbbbbbbb")]),
        {"role": "tool", "name": "add", "tool_call_id": "aaaaaaaaa", "content": "3.5"},
        {"role": "tool", "name": "add", "tool_call_id": "bbbbbbbbb", "content": "1e20"}],
        {"tools": [ADD], "date_string": "01 Jan 2026"}),
    "tool_arguments_as_text": ([user("Add"), assistant("Let me see.", tool_calls=[
        call("add", "{\"a\": 1}", "ccccccccc")])], {"tools": [ADD], "add_generation_prompt": False}),
    "wrong_order": ([user("a"), user("b"), assistant("c"), assistant("d")], {}),
    "unknown_role": ([{"role": "critic", "content": "hm"}, user("x")], {}),
    "no_messages": ([], {}),
    "documents": ([user("What does it say?")],
                  {"documents": [{"doc_id": 1, "title": "A title", "text": "Some text.", "content": "Some text."}]}),
}


def main():
    contexts = {}
    for name, (messages, more) in CONVERSATIONS.items():
        contexts[name] = {"messages": messages, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>",
                          "unk_token": "<unk>"} | more
    json.dump(contexts, sys.stdout, ensure_ascii=False, indent=1)
    print()


main()
