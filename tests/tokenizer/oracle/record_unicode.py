#!/usr/bin/env python3
"""Prints what jinja_unicode_test.cpp compares: FNV-1a over Python's answers for every character (Python 3.11)."""
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def fnv(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


for name in ("upper", "lower", "title", "capitalize", "swapcase"):
    print(name, hex(fnv("".join(getattr(c, name)() for c in CHARACTERS))))
for name in ("isspace", "isalpha", "isdigit", "isdecimal", "isnumeric", "isalnum", "islower", "isupper", "isprintable"):
    print(name, hex(fnv("".join("1" if getattr(c, name)() else "0" for c in CHARACTERS))))
