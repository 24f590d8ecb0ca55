"""Python packages that a test needs, installed into a folder of their own under the assay home and kept there."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HOME = pathlib.Path(os.environ.get("ASSAY_HOME") or pathlib.Path.home() / ".cache/assay")


def require_packages(*requirements, timeout=240):
    """Makes exactly these (name==version) importable; ends the test as skipped (77) where they cannot be had."""
    key = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()[:16]
    folder = HOME / "test-packages" / key
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile",
                       "--retries", "1", "--timeout", "20", "--target", str(pathlib.Path(fresh) / "done"), *requirements]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
                reason = done.stderr.strip().splitlines()[-1:] if done.returncode else None
            except subprocess.TimeoutExpired:
                reason = ["timed out"]
            if reason is not None:
                print(f"skipped: {', '.join(requirements)} cannot be installed: {' '.join(reason)}")
                sys.exit(77)
            try:
                (pathlib.Path(fresh) / "done").rename(folder)
            except OSError:  # another test was faster
                shutil.rmtree(pathlib.Path(fresh) / "done", ignore_errors=True)
    sys.path.insert(0, str(folder))
