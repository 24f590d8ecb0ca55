#!/usr/bin/env python3
"""What `assay serve` says of itself, read by other people's parsers: /metrics by Prometheus' client library (and
promtool, where there is one), traces by OpenTelemetry's own protobuf definitions, the access log as JSON lines.

Skips (77) where the default model or the Python package registry is out of reach.
"""
import base64
import http.server
import json
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from assay_program import expect
from python_packages import require_packages
from served_program import serving

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"


class Collector(http.server.BaseHTTPRequestHandler):
    bodies = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        ok = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
        if ok:
            self.bodies.append(body.decode())
        self.send_response(200 if ok else 404)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def check_metrics(text):
    from prometheus_client.parser import text_string_to_metric_families
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for name, kind in {"assay_time_to_first_token_seconds": "histogram", "assay_inter_token_latency_seconds": "histogram",
                       "assay_time_per_output_token_seconds": "histogram", "assay_request_seconds": "histogram",
                       "assay_queue_seconds": "histogram", "assay_request_prompt_tokens": "histogram",
                       "assay_request_output_tokens": "histogram", "assay_running_requests": "gauge",
                       "assay_waiting_requests": "gauge", "assay_kv_blocks": "gauge",
                       "assay_kv_fragmentation_ratio": "gauge", "assay_prefix_hit_ratio": "gauge",
                       "assay_batch_sequences": "gauge", "assay_step_seconds": "counter",
                       "assay_generation_requests": "counter", "assay_precision_info": "gauge"}.items():
        expect(name in families, f"no {name} in:\n{text}")
        expect(families[name].type == kind, f"{name} is a {families[name].type}, expected a {kind}")
        expect(families[name].documentation.endswith("."), f"{name} has no help text")
    for family in families.values():
        expect(re.fullmatch(r"assay_[a-z0-9_]+", family.name), f"name {family.name}")
        if family.type == "histogram":
            check_histogram(family)
    blocks = {s.labels["state"]: s.value for s in families["assay_kv_blocks"].samples}
    expect(set(blocks) == {"used", "cached", "free"} and sum(blocks.values()) > 0, f"blocks: {blocks}")
    outcomes = {s.labels["outcome"]: s.value for s in families["assay_generation_requests"].samples
                if s.name.endswith("_total")}
    expect(outcomes == {"length": 2.0, "invalid": 1.0}, f"outcomes: {outcomes}")
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        expect(done.returncode == 0, f"promtool: {done.stdout}{done.stderr}")
        print("promtool agrees")


def check_histogram(family):
    buckets = [(float(s.labels["le"]), s.value) for s in family.samples if s.name.endswith("_bucket")]
    count = next(s.value for s in family.samples if s.name.endswith("_count"))
    expect(buckets == sorted(buckets) and all(a[1] <= b[1] for a, b in zip(buckets, buckets[1:])),
           f"buckets of {family.name}: {buckets}")
    expect(buckets[-1][0] == float("inf") and buckets[-1][1] == count, f"+Inf of {family.name} is the count")


def spans_of(bodies):
    """Parsed strictly by the protocol's own definitions; unknown fields would raise."""
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    def to_base64(value):  # OTLP's JSON writes ids in hexadecimal, protobuf's JSON reads base64
        if isinstance(value, dict):
            return {key: base64.b64encode(bytes.fromhex(inner)).decode()
                    if key in ("traceId", "spanId", "parentSpanId") else to_base64(inner) for key, inner in value.items()}
        return [to_base64(inner) for inner in value] if isinstance(value, list) else value

    spans, resources = [], []
    for body in bodies:
        request = json_format.ParseDict(to_base64(json.loads(body)), ExportTraceServiceRequest())
        for resource in request.resource_spans:
            resources.append({a.key: a.value.string_value for a in resource.resource.attributes})
            for scope in resource.scope_spans:
                spans.extend(scope.spans)
    return spans, resources


def check_traces(bodies):
    spans, resources = spans_of(bodies)
    expect(all(resource["service.name"] == "assay" for resource in resources), f"resources: {resources}")
    mine = [span for span in spans if span.trace_id.hex() == TRACE]
    expect([span.name for span in mine] == ["chat default", "queue", "prefill", "decode"],
           f"spans: {[span.name for span in mine]}")
    root = mine[0]
    expect(root.parent_span_id.hex() == CALLER, "the caller's span is the parent")
    expect(all(span.parent_span_id == root.span_id for span in mine[1:]), "children of the request")
    ends = [root.start_time_unix_nano]
    for span in mine[1:]:
        ends += [span.start_time_unix_nano, span.end_time_unix_nano]
    expect(ends + [root.end_time_unix_nano] == sorted(ends + [root.end_time_unix_nano]), "phases follow one another")
    age = time.time() - root.end_time_unix_nano / 1e9
    expect(0 <= age < 300, f"the span ended {age} s ago")
    attributes = {a.key: a.value for a in root.attributes}
    expect(attributes["gen_ai.usage.output_tokens"].int_value == 16, "output tokens")
    expect(attributes["gen_ai.response.finish_reasons"].array_value.values[0].string_value == "length", "reasons")
    expect(all("capital" not in body for body in bodies), "a prompt's text must not leave the server")
    return root


def check_log(lines, root):
    entries = [json.loads(line) for line in lines]
    by_id = {entry["request_id"]: entry for entry in entries}
    mine = by_id["req-of-mine"]
    expect(mine["trace_id"] == TRACE and mine["span_id"] == root.span_id.hex(), f"ids of log and trace: {mine}")
    expect(mine["outcome"] == "length" and mine["output_tokens"] == 16 and mine["status"] == 200, f"line: {mine}")
    parts = mine["queue_seconds"] + mine["prefill_seconds"] + mine["decode_seconds"]
    expect(0 < parts <= mine["seconds"] + 1e-5, f"phases add up to {parts} of {mine['seconds']} s")
    expect(all("capital" not in line for line in lines), "a prompt's text must not be in the log")


def check_rotation(server, log):
    """The file is moved away, SIGHUP opens it anew; returns the lines of the old one."""
    end = time.monotonic() + 20
    while "/metrics" not in log.read_text() and time.monotonic() < end:
        time.sleep(0.05)
    old = log.with_suffix(".1")
    log.rename(old)
    server.process.send_signal(signal.SIGHUP)
    for line in server.process.stdout:  # what SIGHUP reads again is said when it is done
        if line.startswith("keys"):
            break
    server.ask("/version")
    while not (log.exists() and "/version" in log.read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    expect(log.exists() and "/version" in log.read_text(), "SIGHUP does not open the access log anew")
    lines = old.read_text().splitlines()
    expect(lines and "/version" not in lines[-1], "lines go on to the file that was moved away")
    return lines


def main():
    require_packages("prometheus_client==0.21.1", "opentelemetry-proto==1.30.0")
    collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "access.log"
        with serving("--access-log", log, "--otlp-endpoint", f"http://127.0.0.1:{collector.server_port}",
                     "--trace-rate", "0") as server:
            headers = {"traceparent": f"00-{TRACE}-{CALLER}-01", "X-Request-Id": "req-of-mine"}
            status, answer_headers, _ = server.chat("What is the capital of France?", headers, stream=True)
            expect(status == 200, f"status {status}")
            expect(answer_headers["traceresponse"].startswith(f"00-{TRACE}-"), "traceresponse")
            expect(server.chat("What is the capital of Italy?")[0] == 200, "a second answer")
            expect(server.chat("?", temperature=-1)[0] == 400, "a refusal")
            check_metrics(server.ask("/metrics")[2])
            first_part = check_rotation(server, log)
            code, rest = server.stop()
            expect(code == 0, f"exit code {code}:\n{rest}")
        root = check_traces(Collector.bodies)
        check_log(first_part + log.read_text().splitlines(), root)
    collector.shutdown()
    print("passed")


if __name__ == "__main__":
    main()
