#!/usr/bin/env python3
"""Renders chat templates over the conversations of data/conversations.json with python3-jinja2.

    python3 record_templates.py ../data/templates/*.jinja > ../data/template_outputs.json
    python3 record_templates.py --whole DIR/*.jinja tokenizer_config.json > anywhere.json

The first form makes the recorded data of the tests. The second takes templates that cannot be part of this repository
(*.jinja, or tokenizer_config.json files) and puts template and context into each case, so that the file stands alone:
ASSAY_TEMPLATE_CASES=anywhere.json makes the test compare it as well.
"""
import json
import pathlib
import sys

import jinja_oracle

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


def load(path):
    """Pairs of name and source."""
    path = pathlib.Path(path)
    if path.suffix != ".json":
        return [(path.stem, path.read_text())]
    template = json.loads(path.read_text()).get("chat_template", "")
    name = f"{path.parent.parent.parent.name}/{path.stem}"
    if isinstance(template, list):
        return [(f"{name}:{entry['name']}", entry["template"]) for entry in template]
    return [(name, template)] if template else []


def main():
    paths = sys.argv[1:]
    whole = bool(paths) and paths[0] == "--whole"
    environment = jinja_oracle.make_environment()
    contexts = json.loads((DATA / "conversations.json").read_text())
    cases = []
    for path in paths[whole:]:
        for name, source in load(path):
            for conversation, context in contexts.items():
                case = {"name": name, "conversation": conversation}
                if whole:
                    case |= {"template": source, "context": context}
                cases.append(case | jinja_oracle.render(environment, source, context))
    document = {"recorded_with": "python3-jinja2 " + jinja_oracle.jinja2.__version__, "cases": cases}
    json.dump(document, sys.stdout, ensure_ascii=False, indent=1)
    print()


main()
