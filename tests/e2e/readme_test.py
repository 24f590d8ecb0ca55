"""Runs the commands that README.md shows, as written, with this build's program. ./quickstart, ./check and the default tune
take minutes and are run by hand and by CI; here they must exist and parse."""
import os
import pathlib
import re
import shlex
import socket
import subprocess
import tempfile
import time
import urllib.request

from assay_program import BINARY, SOURCE, expect, require_model, run


def shell_lines():
    text = (SOURCE / "README.md").read_text()
    for block in re.findall(r"```sh\n(.*?)```", text, re.S):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            line = line.strip()
            if line and not line.startswith("#"):
                yield line


def wait_until_ready(port, process):
    for _ in range(300):
        expect(process.poll() is None, "the server ended")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=5).read()
            return
        except OSError:
            time.sleep(0.1)
    expect(False, "the server did not become ready in 30 s")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_server_and_curl(serve_line, curl_line, folder):
    port = free_port()
    arguments = shlex.split(serve_line.replace("8080", str(port)), comments=True)[1:]
    process = subprocess.Popen([BINARY, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_ready(port, process)
        command = curl_line.replace("8080", str(port))
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
        expect(done.returncode == 0 and '"assistant"' in done.stdout, f"{command}: {done.stdout} {done.stderr}")
    finally:
        process.terminate()
        process.wait(timeout=60)


def main():
    require_model()
    lines = list(shell_lines())
    for script in ("./quickstart", "./check"):
        expect(any(line.startswith(script) for line in lines), f"README shows {script}")
        expect(subprocess.run(["bash", "-n", str(SOURCE / script)]).returncode == 0, f"{script} parses")
    serve_line = curl_line = None
    ran = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.symlink(SOURCE / "contracts", folder / "contracts")
        os.symlink(SOURCE / "README.md", folder / "README.md")
        for line in lines:
            arguments = shlex.split(line, comments=True)
            if line.startswith("curl"):
                curl_line = line
            elif not line.startswith("build/release/assay") or "tune" in arguments or "--plan" in arguments:
                continue
            elif "serve" in arguments:
                serve_line = line
            elif arguments[1:] == ["run", "smollm2-135m"]:
                code, out, err = run("run", "smollm2-135m", cwd=folder)  # chat; standard input ends at once
                expect(code == 0, f"{line}: {code} {err}")
                ran += 1
            else:
                code, out, err = run(*arguments[1:], cwd=folder)
                expect(code == 0, f"{line}: {code} {err}")
                expect(out.strip(), f"{line} prints something")
                ran += 1
        expect(serve_line and curl_line, "README shows how to serve and how to ask")
        run_server_and_curl(serve_line, curl_line, folder)
    print(f"readme: {ran + 2} commands passed")


if __name__ == "__main__":
    main()
