#!/usr/bin/env python3
"""`assay inspect` end to end: facts of real and hand-made checkpoints, and one clear line for everything that is none.
The numbers of the real model were read with gguf-py 0.19 (gguf_dump: 272 tensors, shapes and types) and summed."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ASSAY = os.environ.get("ASSAY_BINARY", "")
SOURCE = pathlib.Path(os.environ.get("ASSAY_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
SAMPLE = SOURCE / "tests" / "modelfile" / "data" / "gguf_py.gguf"
HOME = pathlib.Path(os.environ.get("ASSAY_HOME") or pathlib.Path.home() / ".cache" / "assay")
MODEL = HOME / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def safetensors(tensors):
    """name -> list of float32 values, one dimension each."""
    header, data = {}, b""
    for name, values in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [1, len(values)], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


CONFIG = {"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1,
          "intermediate_size": 16, "vocab_size": 4, "max_position_embeddings": 32, "rms_norm_eps": 1e-5}


class Inspect(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-inspect-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def inspect(self, *arguments):
        done = subprocess.run([ASSAY, "inspect", *map(str, arguments)], capture_output=True, timeout=120)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def expect_line(self, argument, *texts):
        code, out, err = self.inspect(argument)
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertTrue(err.startswith("assay: error: "), err)
        for text in texts:
            self.assertIn(text, err)

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    def test_what_is_no_checkpoint_gets_one_line(self):
        self.expect_line(self.folder / "none", "no such file, nor a known model (smollm2-135m)")
        self.expect_line(self.write("a.gguf", b"Dear reader, this is a letter."), "a.gguf", "is not a checkpoint",
                         "'Dear reader, this is a l'")
        self.expect_line(self.write("b.gguf", b""), "b.gguf: is not a checkpoint: the file is empty")
        self.expect_line(self.write("c.gguf", SAMPLE.read_bytes()[:1200]), "c.gguf: truncated: ", "the file ends after 1200")
        self.expect_line(self.write("d.bin", b"PK\x03\x04zip"), "is a Python pickle or zip")
        self.expect_line(self.folder, "the folder has no config.json")
        self.expect_line("/dev/null", "/dev/null: is not a regular file")

    def test_json_of_a_small_file(self):
        code, out, err = self.inspect(SAMPLE, "--json")
        self.assertEqual((code, err), (0, ""))
        facts = json.loads(out)
        self.assertEqual((facts["container"], facts["architecture"], facts["name"]), ("GGUF v3", "llama", "tiny"))
        self.assertEqual((facts["tensors"], facts["parameters"]), (4, 3 * 64 + 24))
        formats = {share["stored"]: share for share in facts["formats"]}
        self.assertEqual(formats["Q8_0"]["executed"], "int8, groups of 32, lossless")
        self.assertEqual((formats["Q8_0"]["bytes"], formats["Q8_0"]["bits_per_weight"]), (68, 8.5))
        self.assertEqual(formats["F16"]["executed"], "f16")
        self.assertEqual(facts["hyperparameters"]["layers"], "2")
        self.assertNotIn("tokenizer", facts)
        self.assertEqual(facts["warnings"], ["assay cannot run it: metadata llama.embedding_length is missing",
                                             "no tokenizer: the file carries no tokenizer (tokenizer.ggml.model is missing)"])

    def test_nan_and_infinity_are_found(self):
        values = [0.5] * 20
        values[3], values[7], values[11] = float("nan"), float("inf"), float("-inf")
        self.write("config.json", CONFIG)
        self.write("model.safetensors", safetensors({"model.norm.weight": values, "lm_head.weight": [1.0, 2.0]}))
        code, out, _ = self.inspect(self.folder)
        self.assertEqual(code, 0)
        code, out, _ = self.inspect(self.folder, "--check-values")
        self.assertEqual(code, 1)
        self.assertIn("2 tensors decoded, 1 with NaN or infinite values", out)
        self.assertIn("output_norm.weight: 1 NaN and 2 infinite values, the first at index 3", out)

    def test_warnings(self):
        self.write("config.json", CONFIG | {"model_type": "mamba"})
        self.write("model.safetensors", safetensors({"model.embed_tokens.weight": [1.0] * 8, "x.y": [1.0]}))
        self.write("tokenizer.json", {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
                                      "pre_tokenizer": {"type": "ByteLevel"}})
        code, out, _ = self.inspect(self.folder)
        self.assertEqual(code, 0)
        for warning in ("model_type 'mamba' is not known to assay", "1 tensors have names that assay does not know, such as 'x.y'",
                        "the vocabulary has 2 tokens, the embedding 1 rows: some tokens cannot be used", "no chat template"):
            self.assertIn(warning, out)

    def test_names_of_hostile_files_do_not_reach_the_terminal(self):
        self.write("config.json", CONFIG | {"model_type": "\x1b[31mred"})
        self.write("model.safetensors", safetensors({"x": [1.0]}))
        _, out, err = self.inspect(self.folder)
        self.assertNotIn("\x1b", out + err)
        self.assertIn("\\x1b[31mred", out)

    def test_default_model(self):
        if not MODEL.exists():
            self.skipTest(f"{MODEL} is absent")
        code, out, err = self.inspect(MODEL, "--json", "--check-values")
        self.assertEqual((code, err), (0, ""))
        facts = json.loads(out)
        self.assertEqual((facts["architecture"], facts["tensors"], facts["parameters"]), ("llama", 272, 134515008))
        self.assertEqual([(share["stored"], share["tensors"], share["executed"]) for share in facts["formats"]],
                         [("Q4_1", 210, "int4, groups of 32, lossless"), ("Q8_0", 1, "int8, groups of 32, lossless"),
                          ("F32", 61, "f32")])
        self.assertEqual(facts["formats"][0]["bits_per_weight"], 5.0)
        self.assertEqual(facts["tokenizer"]["pre_tokenizer"], "smollm")
        self.assertEqual(facts["tokenizer"]["end_of_generation"], [0, 2, 4])
        self.assertEqual(facts["hyperparameters"]["KV cache per token"], "23040 B in bf16")
        self.assertIn("<|im_start|>", facts["chat_template"])
        self.assertEqual((facts["warnings"], facts["broken_tensors"]), ([], []))


if __name__ == "__main__":
    if not ASSAY:
        print("ASSAY_BINARY is not set")
        sys.exit(77)
    unittest.main(verbosity=2)
