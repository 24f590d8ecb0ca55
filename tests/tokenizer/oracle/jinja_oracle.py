"""The reference that the template tests are recorded from: python3-jinja2 set up as transformers does it
(transformers/utils/chat_template_utils.py): an ImmutableSandboxedEnvironment with trim_blocks and lstrip_blocks, loop
controls, the `generation` tag, a tojson without HTML escaping, raise_exception and strftime_now.

Needs Debian's python3-jinja2 (3.1.2 was used).
"""
import datetime
import json

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

# What strftime_now() shows: 2026-01-01 12:00:00 UTC. The tests give the same second, with TZ=UTC.
NOW = 1767268800


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(format):
    return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(format)


def make_environment():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment


def render(environment, source, context):
    """{"output": text} or {"error": text}"""
    try:
        return {"output": environment.from_string(source).render(**context)}
    except Exception as error:  # whatever Python raises is an error of the template
        return {"error": f"{type(error).__name__}: {error}"[:200]}
