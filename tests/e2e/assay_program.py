"""What the end-to-end tests share: where the program and the default model are, and how to run a command."""
import os
import pathlib
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
