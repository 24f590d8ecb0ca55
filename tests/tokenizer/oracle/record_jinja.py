#!/usr/bin/env python3
"""Records what python3-jinja2 makes of small snippets, one construct each: python3 record_jinja.py > ../data/jinja_snippets.json

A snippet that Jinja refuses is recorded with its error; ours must refuse it too.
"""
import json
import sys

import jinja_oracle
from jinja_snippets import CONTEXT, SNIPPETS


def main():
    environment = jinja_oracle.make_environment()
    cases = []
    for group, snippets in SNIPPETS.items():
        for template in snippets:
            case = {"group": group, "template": template}
            cases.append(case | jinja_oracle.render(environment, template, json.loads(json.dumps(CONTEXT))))
    document = {
        "recorded_with": "python3-jinja2 " + jinja_oracle.jinja2.__version__,
        "context": CONTEXT,
        "cases": cases,
    }
    json.dump(document, sys.stdout, ensure_ascii=False, indent=0)
    print()


main()
