#!/usr/bin/env python3
"""lm-eval, unmodified, against `assay serve`: local-completions (log-likelihoods by echoed prompts, generation) and
local-chat-completions, on small tasks made here. The tokenizer is the server's own, asked over HTTP.

Installing lm-eval takes more than a minute and 760 MB, so this runs only with ASSAY_TEST_LM_EVAL=1, then from an
environment that is kept under the assay home. Run alone:
ASSAY_TEST_LM_EVAL=1 ASSAY_BINARY=build/dev/assay python3 tests/e2e/lm_eval_test.py
"""
import json
import math
import os
import pathlib
import sys
import tempfile
import urllib.request

from assay_program import expect, require_model, start_server
from python_packages import require_packages

KEY = "sk-lm-eval-test"
FACTS = [("The capital of France is", " Paris", " Berlin"), ("Two plus two equals", " four", " banana"),
         ("The opposite of hot is", " cold", " seven"), ("A week has seven", " days", " moons"),
         ("Cows give us", " milk", " iron")]
CHOICES = """task: tiny_choices
dataset_path: json
dataset_kwargs: {data_files: {test: %s}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{choices}}"
doc_to_target: 0
target_delimiter: ""
metric_list: [{metric: acc}]
"""
ANSWERS = """task: tiny_answers
dataset_path: json
dataset_kwargs: {data_files: {test: %s}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{choices[0]}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 8, do_sample: false}
metric_list: [{metric: exact_match}]
"""


def make_tasks(folder):
    data = folder / "facts.jsonl"
    data.write_text("".join(json.dumps({"question": q, "choices": [right, wrong]}) + "\n" for q, right, wrong in FACTS))
    (folder / "tiny_choices.yaml").write_text(CHOICES % data)
    (folder / "tiny_answers.yaml").write_text(ANSWERS % data)


def post(address, path, body):
    request = urllib.request.Request(address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))


def own_loglikelihood(address, context, continuation):
    """The same number by another way: the distribution of the first token of an answer, one token after the other. None
    where a token is not among the 20 that an answer can list."""
    def ids(text):
        return post(address, "/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]

    known, total = ids(context), 0.0
    for token in ids(continuation):
        made = post(address, "/v1/completions", {"model": "default", "prompt": known, "max_tokens": 1, "logprobs": 20,
                                                 "temperature": 0, "ignore_eos": True})
        name = post(address, "/detokenize", {"tokens": [token]})["prompt"]
        top = made["choices"][0]["logprobs"]["top_logprobs"][0]
        if name not in top:
            return None
        total += top[name]
        known.append(token)
    return total


def evaluate(lm_eval, model, address, path, task, folder, **more):
    from lm_eval.tasks import TaskManager
    arguments = {"model": "smollm2-135m", "base_url": address + path, "num_concurrent": 2, "max_retries": 1, "timeout": 120,
                 "auth_token": KEY}
    result = lm_eval.simple_evaluate(model=model, model_args=arguments, tasks=[task], log_samples=True, bootstrap_iters=0,
                                     task_manager=TaskManager(include_path=str(folder), include_defaults=False), **more)
    return result["results"][task], result["samples"][task]


def main():
    if os.environ.get("ASSAY_TEST_LM_EVAL") != "1":
        print("skipped: installing lm-eval takes more than a minute; set ASSAY_TEST_LM_EVAL=1 to run this")
        sys.exit(77)
    require_model()
    require_packages("lm_eval[api]==0.4.13", timeout=600)
    os.environ["HF_DATASETS_OFFLINE"] = os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["OPENAI_API_KEY"] = os.environ["ASSAY_API_KEY"] = KEY
    import lm_eval
    server, address, _ = start_server("--context", "1024")
    try:
        opener = urllib.request.build_opener()
        opener.addheaders = [("Authorization", f"Bearer {KEY}")]
        urllib.request.install_opener(opener)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            os.environ["HF_HOME"] = str(folder / "cache")
            make_tasks(folder)
            scores, samples = evaluate(lm_eval, "local-completions", address, "/v1/completions", "tiny_choices", folder)
            expect(scores["acc,none"] >= 0.8, f"a model that knows little still knows these: {scores}")
            compared = 0
            for sample in samples:
                question, right, wrong = FACTS[sample["doc_id"]]
                for text, response in zip((right, wrong), sample["filtered_resps"]):
                    own = own_loglikelihood(address, question, text)
                    if own is None:
                        continue
                    compared += 1
                    expect(math.isclose(float(response[0]), own, rel_tol=0, abs_tol=1e-4),
                           f"{question!r}{text!r}: lm-eval has {response[0]}, token by token gives {own}")
            expect(compared >= 3, f"only {compared} log-likelihoods could be compared")
            _, samples = evaluate(lm_eval, "local-completions", address, "/v1/completions", "tiny_answers", folder)
            expect(any("Paris" in sample["resps"][0][0] for sample in samples), f"an answer names Paris: {samples}")
            _, samples = evaluate(lm_eval, "local-chat-completions", address, "/v1/chat/completions", "tiny_answers", folder,
                                  apply_chat_template=True)
            expect(all(sample["resps"][0][0] for sample in samples), f"every question has an answer: {samples}")
    finally:
        server.kill()
        server.wait()
    print(f"passed with lm-eval {lm_eval.__version__}")


if __name__ == "__main__":
    main()
