"""What the end-to-end tests share: where the program and the default model are, and how to run a command."""
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("ASSAY_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BINARY = os.environ.get("ASSAY_BINARY", str(SOURCE / "build/dev/assay"))
HOME = pathlib.Path(os.environ.get("ASSAY_HOME") or pathlib.Path.home() / ".cache/assay")
MODEL = HOME / "models/SmolLM2-135M-Instruct.Q4_1.gguf"


def require_model():
    if not MODEL.exists():
        print(f"skipped: {MODEL} is not there; run: assay pull smollm2-135m")
        sys.exit(77)


def run(*arguments, cwd=None, timeout=600, env=None):
    """Runs the program; returns (exit code, standard output, standard error)."""
    done = subprocess.run([BINARY, *map(str, arguments)], cwd=cwd, timeout=timeout, capture_output=True,
                          env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def expect(condition, what):
    if not condition:
        print(f"FAILED: {what}")
        sys.exit(1)


def start_server(*more):
    """`assay serve` with the default model on a free port; returns (process, address, what it printed) once it is ready."""
    server = subprocess.Popen([BINARY, "serve", "--model", str(MODEL), "--port", "0", *map(str, more)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in server.stdout:
        lines.append(line)
        if line.startswith("ready"):
            break
    text = "".join(lines)
    address = re.search(r"https?://[0-9.]+:\d+", text)
    expect(address and lines[-1].startswith("ready"), f"the server did not start:\n{text}")
    return server, address.group(0), text
