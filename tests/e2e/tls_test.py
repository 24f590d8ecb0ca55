#!/usr/bin/env python3
"""`assay serve` over TLS and for pages of other origins, asked by Python's ssl and by curl.

Skips (77) where the default model or openssl's command is absent.
"""
import json
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from assay_program import BINARY, MODEL, expect, require_model, run

ORIGIN = "https://chat.example.org"


def make_certificate(folder, name):
    certificate, key = folder / "server.crt", folder / "server.key"
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                           "-keyout", key, "-out", certificate, "-days", "2", "-subj", f"/CN={name}", "-addext",
                           "subjectAltName=DNS:localhost,IP:127.0.0.1"], capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)
    return certificate, key


def check_refusals(folder, certificate, key):
    other = folder / "other"
    other.mkdir()
    _, other_key = make_certificate(other, "other")
    text = folder / "text"
    text.write_text("nothing\n")
    for files, words in (((certificate, other_key), ["other", "not the private key"]),
                         ((text, key), [str(text), "no PEM certificate"]),
                         ((folder / "none", key), ["none"])):
        code, _, err = run("serve", "--model", MODEL, "--port", "0", "--tls-cert", files[0], "--tls-key", files[1])
        expect(code == 1 and len(err.strip().splitlines()) == 1, f"{files}: {code} {err}")
        expect(all(word in err for word in words), f"{files}: {err}")
    code, _, err = run("serve", "--model", MODEL, "--tls-cert", certificate)
    expect(code == 2 and "--tls-key" in err, err)
    code, _, err = run("serve", "--model", MODEL, "--cors-origin", "chat.example.org/x")
    expect(code == 1 and "--cors-origin" in err, err)


def start(certificate, key):
    server = subprocess.Popen([BINARY, "serve", "--model", MODEL, "--port", "0", "--context", "1024", "--max-sequences",
                               "4", "--tls-cert", certificate, "--tls-key", key, "--cors-origin", ORIGIN],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    seen = ""
    for line in server.stdout:
        seen += line
        if line.startswith("ready"):
            break
    address = re.search(r"https://127\.0\.0\.1:(\d+)", seen)
    expect(address is not None, "the server did not start:\n" + seen)
    return server, int(address.group(1))


def ask(port, context, path, body=None, headers=None, method=None):
    request = urllib.request.Request(f"https://localhost:{port}{path}", method=method, headers=headers or {},
                                     data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.headers, refusal.read()


def peer_name(port, context):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as secure:
            expect(secure.version() in ("TLSv1.2", "TLSv1.3"), secure.version())
            expect(secure.selected_alpn_protocol() == "http/1.1", f"ALPN: {secure.selected_alpn_protocol()}")
            return dict(pair for group in secure.getpeercert()["subject"] for pair in group)["commonName"]


def trusting(certificate):
    context = ssl.create_default_context(cafile=str(certificate))
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def check_tls(port, certificate):
    context = trusting(certificate)
    expect(peer_name(port, context) == "first", "the certificate's name")
    status, _, body = ask(port, context, "/v1/completions",
                          {"model": "default", "prompt": "One, two,", "max_tokens": 4, "stream": True},
                          {"Content-Type": "application/json"})
    expect(status == 200 and body.rstrip().endswith(b"data: [DONE]"), body)
    try:
        ask(port, ssl.create_default_context(), "/health")
        expect(False, "a client that does not know the certificate was satisfied")
    except urllib.error.URLError as refusal:
        expect("CERTIFICATE_VERIFY_FAILED" in str(refusal), str(refusal))
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    try:
        peer_name(port, old)
        expect(False, "TLS 1.1 was accepted")
    except (ssl.SSLError, ConnectionError):
        pass
    with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = plain.recv(4096)
        expect(answer.startswith(b"HTTP/1.1 400 ") and b"https" in answer, f"plain HTTP: {answer}")


def check_cors(port, certificate):
    context = trusting(certificate)
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}
    status, headers, _ = ask(port, context, "/v1/chat/completions", method="OPTIONS",
                             headers={"Origin": ORIGIN, **preflight})
    expect(status == 204 and headers["Access-Control-Allow-Origin"] == ORIGIN, f"{status} {headers}")
    expect("Authorization" in headers["Access-Control-Allow-Headers"] and headers["Vary"] == "Origin", str(headers))
    expect(headers["Access-Control-Allow-Credentials"] is None, "credentials are allowed")
    chat = {"model": "default", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
    status, headers, _ = ask(port, context, "/v1/chat/completions", chat,
                             {"Origin": ORIGIN, "Content-Type": "application/json"})
    expect(status == 200 and headers["Access-Control-Allow-Origin"] == ORIGIN, f"{status} {headers}")
    for method, body in (("OPTIONS", None), ("POST", chat)):
        status, headers, body = ask(port, context, "/v1/chat/completions", body, method=method, headers={
            "Origin": "https://evil.example", "Content-Type": "application/json", **preflight})
        expect(status == 403 and b"origin_not_allowed" in body, f"{method}: {status} {body}")
        expect(headers["Access-Control-Allow-Origin"] is None, str(headers))


def check_reload(server, port, folder, certificate):
    old = trusting(certificate)
    make_certificate(folder, "second")
    server.send_signal(signal.SIGHUP)
    for line in server.stdout:
        if line.startswith("TLS"):
            break
    expect(peer_name(port, trusting(certificate)) == "second", "the certificate after SIGHUP")
    try:
        peer_name(port, old)
        expect(False, "the old certificate is still served")
    except ssl.SSLError:
        pass
    certificate.write_text("broken\n")
    server.send_signal(signal.SIGHUP)
    for line in server.stdout:
        if "stays as it was" in line:
            break
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    expect(ask(port, context, "/health")[0] == 200, "the server goes on after a bad reload")


def main():
    require_model()
    if shutil.which("openssl") is None:
        print("skipped: no openssl command")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        certificate, key = make_certificate(folder, "first")
        check_refusals(folder, certificate, key)
        server, port = start(certificate, key)
        try:
            check_tls(port, certificate)
            if shutil.which("curl"):
                done = subprocess.run(["curl", "-sS", "--cacert", certificate, f"https://localhost:{port}/v1/models"],
                                      capture_output=True, text=True, timeout=60)
                expect(done.returncode == 0 and '"object":"list"' in done.stdout, done.stdout + done.stderr)
            check_cors(port, certificate)
            check_reload(server, port, folder, certificate)
        finally:
            server.send_signal(signal.SIGTERM)
            begin = time.monotonic()
            server.wait(timeout=60)
        expect(server.returncode == 0 and time.monotonic() - begin < 40, f"the end: {server.returncode}")
    print("ok")


if __name__ == "__main__":
    main()
