"""assay tune on the real model: a choice, a rerun from stored measurements, an interrupt that loses nothing, exit code 3,
bad contracts, and a plan that serve accepts."""
import json
import pathlib
import signal
import subprocess
import tempfile
import time

from assay_program import BINARY, expect, require_model, run

# About 700 tokens: one window of 512, so that a candidate takes seconds.
TEXT = " ".join(f"The river carried boat number {n} past the mill at {n % 12 + 1} o'clock, and the miller wrote it down."
                for n in range(40))

CONTRACT = """
model = "smollm2-135m"
[quality]
text = "text.txt"
max_mean_kl = {max_mean_kl}
[workload]
prompt_tokens = 32
output_tokens = 8
[search]
candidates = ["w=file a=int8 kv=bf16", "w=int4:128 a=int8 kv=int8"]
"""


def write_contract(folder, max_mean_kl):
    (folder / "text.txt").write_text(TEXT)
    (folder / "contract.toml").write_text(CONTRACT.format(max_mean_kl=max_mean_kl))


def test_interrupt_then_rerun(folder):
    write_contract(folder, 5)
    process = subprocess.Popen([BINARY, "tune", "contract.toml"], cwd=folder, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    measured = 0
    for line in process.stdout:
        if line.startswith("measured"):
            measured += 1
            process.send_signal(signal.SIGINT)
            break
    process.stdout.read()
    code = process.wait(timeout=120)
    expect(measured == 1 and code in (0, 130), f"an interrupted run exits with 130, not {code}")
    expect(code == 0 or not (folder / "plan.json").exists(), "an interrupted run writes no plan")

    code, out, err = run("tune", "contract.toml", cwd=folder)
    expect(code == 0, f"rerun: {code} {err}")
    expect("(from an earlier run)" in out, f"the rerun takes what was measured: {out}")
    plan = json.loads((folder / "plan.json").read_text())
    expect(len(plan["candidates"]) == 2 and plan["ladder"], "two candidates and a choice")
    for candidate in plan["candidates"]:
        expect(candidate["quality"]["mean_kl"] > 0, "a lossy candidate differs from the reference")
        expect(candidate["speed"]["decode_tokens_per_second"]["n"] >= 3, "speeds are medians of several runs")
    page = (folder / "report.html").read_text()
    expect("http" not in page.replace("http-equiv", ""), "the report asks nothing from elsewhere")
    expect("w=file a=int8 kv=bf16" in page, "the report names the candidates")


def test_everything_known_is_instant(folder):
    start = time.monotonic()
    code, out, _ = run("tune", "contract.toml", cwd=folder)
    expect(code == 0 and out.count("(from an earlier run)") == 2, out)
    expect(time.monotonic() - start < 60, "nothing is measured again")


def test_serve_answers_as_the_plan_says(folder):
    server = subprocess.Popen([BINARY, "serve", "--plan", "plan.json", "--port", "0", "--context", "512"], cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in server.stdout:
        lines.append(line)
        if line.startswith("ready"):
            break
    server.terminate()
    server.communicate(timeout=60)
    expect("is the plan's" in lines[-1], f"the first answer is the measured one: {''.join(lines)}")
    text = (folder / "plan.json").read_text()
    plan = json.loads(text)
    canary = plan["candidates"][plan["ladder"][0]]["canary"]
    canary["tokens"][5] += 1
    (folder / "other.json").write_text(json.dumps(plan))
    code, out, err = run("serve", "--plan", "other.json", "--port", "0", "--context", "512", cwd=folder)
    expect(code == 1 and "token 5 of the first answer" in err and "\nready" not in out, f"another answer is refused: {code} {out} {err}")


def test_impossible_bound_exits_with_3(folder):
    write_contract(folder, 0)
    code, out, err = run("tune", "contract.toml", cwd=folder)
    expect(code == 3, f"exit code 3, not {code}: {err}")
    expect("max_mean_kl" in out and "> 0 nats" in out, f"the table names the broken bound: {out}")
    plan = json.loads((folder / "plan.json").read_text())
    expect(plan["ladder"] == [], "no rung")
    code, _, err = run("serve", "--plan", "plan.json", cwd=folder)
    expect(code == 1 and "no candidate met the contract" in err, f"serve refuses it: {code} {err}")


def test_bad_contracts(folder):
    cases = {
        "[quality]\nmax_kl = 1\n": "quality.max_kl: unknown key",
        "[latency]\nttft = 5\n": "expected a string with a unit",
        "[quality]\nmin_top1 = 2\n": "cannot hold",
        "model = \"no-such-model\"\n": "no such file, nor a known model",
        "": "names no model",
        "model = \"smollm2-135m\"\n[workload]\nprompt_tokens = 1000000\n": "the model's context is",
        "model = \"smollm2-135m\"\n[quality]\ntext = \"absent.txt\"\n": "absent.txt",
    }
    code, _, err = run("tune", "contract.toml", "--text", "elsewhere.txt", cwd=folder)
    expect(code == 1 and "elsewhere.txt" in err, f"--text overrides the contract's: {code} {err}")
    for text, message in cases.items():
        (folder / "bad.toml").write_text(text)
        code, _, err = run("tune", "bad.toml", cwd=folder)
        expect(code == 1 and message in err and err.count("\n") == 1, f"{text!r}: {code} {err}")
    code, _, err = run("tune", "absent.toml", cwd=folder)
    expect(code == 1 and "absent.toml: cannot open" in err, err)


def main():
    require_model()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        test_interrupt_then_rerun(folder)
        test_everything_known_is_instant(folder)
        test_serve_answers_as_the_plan_says(folder)
        test_impossible_bound_exits_with_3(folder)
        test_bad_contracts(folder)
    print("tune: all passed")


if __name__ == "__main__":
    main()
