#!/usr/bin/env python3
"""embed_web.py OUTPUT FILE...: writes the C++ source that holds the live page's files, each plain and gzipped.

A FILE may be NAME=PATH to be served under another name. The same input gives the same output.
"""
import gzip
import hashlib
import pathlib
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
PRINTABLE = set(range(0x20, 0x7F)) - set(b'"\\?')


def literal(content):
    """A C++ string literal; octal escapes have three digits, so that a digit may follow."""
    text = "".join(chr(byte) if byte in PRINTABLE else f"\\{byte:03o}" for byte in content)
    return '"' + text + '"'


def main():
    output = pathlib.Path(sys.argv[1])
    rows = []
    for argument in sys.argv[2:]:
        name, _, path = argument.rpartition("=")
        path = pathlib.Path(path)
        name = name or path.name
        content = path.read_bytes()
        packed = gzip.compress(content, 9, mtime=0)
        etag = hashlib.sha256(content).hexdigest()[:16]
        rows.append(f'    {{"{name}", "{TYPES[path.suffix]}", "{etag}",\n'
                    f"     {{{literal(content)}, {len(content)}}},\n     {{{literal(packed)}, {len(packed)}}}}},\n")
    output.write_text('// Generated from web/ by tools/embed_web.py.\n#include "serve/web_assets.h"\n\n#include <array>\n\n'
                      f"namespace assay {{\n\nstd::span<const WebAsset> web_assets() {{\n"
                      f"  static constexpr std::array<WebAsset, {len(rows)}> kAssets = {{{{\n{''.join(rows)}  }}}};\n"
                      "  return kAssets;\n}\n\n}  // namespace assay\n")


if __name__ == "__main__":
    main()
