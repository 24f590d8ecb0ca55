#!/usr/bin/env python3
"""Writes ../data/documents.json: schemas with documents and the verdict of the Python package jsonschema on each.

    python3 tests/grammar/oracle/make_documents.py     # needs jsonschema (python3-jsonschema)

Documents marked "drawn" are made from the schema within what the grammar promises to allow (properties in the order
of the schema, no undeclared ones): when valid, they must be accepted. The others are those with random changes: when
invalid, they must be rejected.
"""
import copy
import json
import pathlib
import random

import jsonschema

HERE = pathlib.Path(__file__).resolve().parent

SCHEMAS = [
    {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "tags": {"type": "array",
     "items": {"type": "string"}}}, "required": ["name", "age", "tags"], "additionalProperties": False},
    {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}, "c": {"type": "number"}},
     "required": ["b"], "additionalProperties": False},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 20}},
    {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number", "exclusiveMinimum": 0}},
     "required": ["kind", "r"], "additionalProperties": False},
    {"type": "array", "items": {"type": "integer", "minimum": -12, "maximum": 340}, "minItems": 2, "maxItems": 5},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "boolean"},
     "minItems": 1, "maxItems": 4},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}], "items": False, "minItems": 2},
    {"type": "string", "minLength": 2, "maxLength": 4},
    {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{2,3}$"},
    {"type": "string", "pattern": "b+c", "maxLength": 6},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "ipv4"},
    {"type": "string", "format": "date-time"},
    {"enum": ["red", "green", 3, None, True, {"a": [1, 2]}, "é\"\\\n"]},
    {"type": "string", "enum": ["red", "green", 3]},
    {"const": "x/y"},
    {"type": ["string", "null", "integer"]},
    {"type": "integer", "minimum": 95, "maximum": 1204},
    {"type": "integer", "exclusiveMinimum": -3, "exclusiveMaximum": 3},
    {"type": "integer", "maximum": -7},
    {"type": "number", "minimum": -1.25, "maximum": 3.5},
    {"type": "number", "exclusiveMinimum": 0.1, "exclusiveMaximum": 0.30000000000000004},
    {"type": "number", "minimum": 99.5, "maximum": 1000.25},
    {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "integer"}, {"type": "array", "items": {"type": "null"}}]},
    {"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}, "v": {"type": "integer"}}, "required": ["k", "v"],
                "additionalProperties": False},
               {"type": "object", "properties": {"k": {"const": "b"}, "w": {"type": "string"}}, "required": ["k", "w"],
                "additionalProperties": False}]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]},
               {"properties": {"a": {"maximum": 9}, "b": {"type": "string"}}, "required": ["b"]}],
     "additionalProperties": True},
    {"allOf": [{"type": "string", "minLength": 2}, {"maxLength": 3}, {"pattern": "^[ab]*$"}]},
    {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {
        "anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["v", "next"], "additionalProperties": False}}},
    {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}, "id": {"type": "integer"}},
     "required": ["id"], "additionalProperties": False},
    {"type": "object", "properties": {"q\"uote": {"type": "integer"}, "ü": {"type": "string"}, "": {"type": "null"}},
     "required": ["ü"], "additionalProperties": False},
    {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x", "y"],
     "additionalProperties": {"type": "boolean"}},
    {"type": "object", "properties": {"p": {"type": "object", "properties": {"q": {"type": "array", "items": {
        "enum": [1, 2.5, "z"]}, "maxItems": 3}}, "additionalProperties": False}}, "additionalProperties": False},
    {},
    {"type": "object"},
    {"type": "array"},
    {"type": ["object", "array"], "properties": {"a": True}, "items": {"type": "integer"}},
]

WORDS = ["", "a", "ab", "abc", "red", "bbc", "abbcd", "é", "日本", "\"", "\\", "\n", "\u0001", "😀", "AB-12", "XY-999", "AB-1",
         "2024-02-28", "2024-02-30", "2023-13-01", "2024-12-31T23:59:59Z", "2024-01-01T00:00:00.5+02:00", "24:00:00",
         "1.2.3.4", "256.1.1.1", "x/y", "aa", "bb", "aba", "abab", "0", "null"]


def number(r):
    return r.choice([0, 1, -1, 2, 3, 5, 9, 10, 12, 20, 21, 95, 94, 99, 340, 341, 1000, 1204, 1205, -12, -13, -7, -8, -6, 0.1, 0.2,
                     0.30000000000000004, 0.29, 3.5, 3.51, -1.25, -1.26, 99.5, 99.49, 1000.25, 1000.3, 2.5, 0.5, 1e-7, 123456,
                     r.randint(-2000, 2000), round(r.uniform(-5, 1200), r.randint(0, 4))])


def anything(r, depth=0):
    kind = r.randrange(7 if depth < 3 else 5)
    if kind == 0:
        return None
    if kind == 1:
        return r.random() < 0.5
    if kind in (2, 3):
        return number(r)
    if kind == 4:
        return r.choice(WORDS)
    if kind == 5:
        return [anything(r, depth + 1) for _ in range(r.randrange(4))]
    return {r.choice(WORDS): anything(r, depth + 1) for _ in range(r.randrange(4))}


def resolve(schema, root):
    while isinstance(schema, dict) and "$ref" in schema:
        target = root
        for part in schema["$ref"][2:].split("/") if len(schema["$ref"]) > 1 else []:
            target = target[part]
        schema = target
    return schema


def draw(schema, root, r, depth=0):
    """A document near the schema; jsonschema says whether it is valid."""
    schema = resolve(schema, root)
    if schema is True or schema == {}:
        return anything(r, depth)
    if schema is False:
        return None
    if "enum" in schema:
        return copy.deepcopy(r.choice(schema["enum"]))
    if "const" in schema:
        return schema["const"]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            options = schema[key]
            return draw(options[-1] if depth > 5 else r.choice(options), root, r, depth + 1)
    if "allOf" in schema:
        merged = {"properties": {}, "required": []}
        for part in schema["allOf"]:
            for key, value in resolve(part, root).items():
                if key == "properties":
                    for name, child in value.items():
                        merged["properties"][name] = {**merged["properties"].get(name, {}), **child}
                elif key == "required":
                    merged["required"] += value
                else:
                    merged[key] = value
        return draw(merged, root, r, depth)
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        kind = r.choice(kind)
    if kind == "object":
        result = {}
        names = list(schema.get("properties", {}))
        names += [name for name in schema.get("required", []) if name not in names]
        extra = schema.get("additionalProperties", not schema.get("properties"))
        for name in names:
            if name in schema.get("required", []) or (r.random() < 0.6 and depth < 6):
                result[name] = draw(schema.get("properties", {}).get(name, extra), root, r, depth + 1)
        if extra is not False:
            for _ in range(r.randrange(3)):
                name = r.choice(WORDS)
                if name not in names:
                    result[name] = draw(extra, root, r, depth + 1)
        return result
    if kind == "array":
        count = r.randint(max(0, schema.get("minItems", 0)), schema.get("maxItems", 3 if depth < 4 else 0))
        prefix = schema.get("prefixItems", [])
        if schema.get("items") is False:
            count = min(count, len(prefix))
        return [draw(prefix[i] if i < len(prefix) else schema.get("items", True), root, r, depth + 1) for i in range(count)]
    if kind == "string":
        return r.choice(WORDS)
    if kind == "integer":
        return int(number(r))
    if kind == "number":
        return number(r)
    if kind == "boolean":
        return r.random() < 0.5
    if kind == "null":
        return None
    return anything(r, depth)


def change(document, r):
    document = copy.deepcopy(document)
    if r.random() < 0.3 or not isinstance(document, (dict, list)) or not document:
        return anything(r)
    keys = list(document) if isinstance(document, dict) else list(range(len(document)))
    key = r.choice(keys)
    action = r.randrange(4)
    if action == 0:
        del document[key]
    elif action == 1:
        document[key] = change(document[key], r)
    elif action == 2 and isinstance(document, dict):
        document[r.choice(WORDS + ["a", "b", "v", "x"])] = anything(r, 2)
    elif action == 2:
        document.append(anything(r, 2))
    else:
        document[key] = anything(r, 2)
    return document


def main():
    r = random.Random(20261201)
    out = []
    for schema in SCHEMAS:
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
        seen, documents = set(), []
        for i in range(240):
            drawn = i % 2 == 0
            document = draw(schema, schema, r)
            if not drawn:
                document = change(document, r)
            text = json.dumps(document, ensure_ascii=False, separators=r.choice([(",", ":"), (", ", ": ")]))
            if (text in seen) or "e-" in text.lower():
                continue
            seen.add(text)
            documents.append({"text": text, "valid": validator.is_valid(document), "drawn": drawn})
            if len(documents) == 60:
                break
        out.append({"schema": schema, "documents": documents})
    lines = []
    for case in out:
        documents = ",\n    ".join(json.dumps(d, ensure_ascii=False) for d in case["documents"])
        lines.append('  {"schema": %s,\n   "documents": [\n    %s]}' % (json.dumps(case["schema"], ensure_ascii=False), documents))
    path = HERE.parent / "data/documents.json"
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    total = [d for case in out for d in case["documents"]]
    print(f"{len(out)} schemas, {len(total)} documents, {sum(d['valid'] for d in total)} valid, "
          f"{sum(d['valid'] and d['drawn'] for d in total)} of them drawn")


if __name__ == "__main__":
    main()
