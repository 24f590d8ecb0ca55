#!/usr/bin/env python3
"""Reads [{"schema", "texts"}] from a file and says which texts are not valid JSON documents of their schema, by the
Python package jsonschema. Exit code: 0 all are valid, 1 some are not, 77 jsonschema is not there."""
import json
import sys

try:
    import jsonschema
except ImportError:
    print("the Python package jsonschema is not installed")
    sys.exit(77)

failed = 0
for case in json.load(open(sys.argv[1], encoding="utf-8")):
    validator = jsonschema.Draft202012Validator(case["schema"], format_checker=jsonschema.FormatChecker())
    for text in case["texts"]:
        errors = [error.message for error in validator.iter_errors(json.loads(text))]
        if errors:
            failed += 1
            print(f"schema {json.dumps(case['schema'])}\ntext {text}\nsays {errors[0]}\n")
print(f"{failed} invalid")
sys.exit(1 if failed else 0)
