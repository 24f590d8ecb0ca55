#!/usr/bin/env python3
"""Writes data/reference.json: logits of whole models, computed in plain float64 numpy, for the tests to compare with.

    PYTHONPATH=<llama.cpp>/gguf-py python3 tests/model/record_reference.py <shared data> <SmolLM2 Q4_1 GGUF>

Nothing here shares code with assay: checkpoints are read by gguf-py (safetensors by the ten lines below) and the formulas
are written from the papers. Three kinds of models:
  files      stories260K (GGUF), tinystories-656k (safetensors) and SmolLM2-135M-Instruct (GGUF, Q4_1)
  synthetic  small models with every feature that the files lack; their weights come from a generator that
             synthetic_model.h repeats bit for bit
`f32_error` is the largest difference between this code run in float32 and in float64: the unit of the tests' tolerance.
numpy 2.3, gguf-py of llama.cpp 0.5.0.
"""
import json
import math
import pathlib
import struct
import sys

import numpy as np

MASK = (1 << 64) - 1


def generate(seed, name, n):
    """splitmix64 started at FNV-1a(name) ^ seed; the top 24 bits, as a value in [-1, 1)."""
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = ((state ^ byte) * 0x100000001B3) & MASK
    state ^= seed
    out = np.empty(n)
    for i in range(n):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        out[i] = ((z >> 40) - 2**23) / 2**23
    return out


def synthetic_weights(c):
    e, f, v = c["n_embedding"], c["n_feed_forward"], c["n_vocab"]
    q, k = c["n_heads"] * c["head_dim"], c["n_kv_heads"] * c["head_dim"]
    shapes = {"token_embd.weight": (v, e), "output_norm.weight": (e,)}
    if not c["tied"]:
        shapes["output.weight"] = (v, e)
    if c["scaling"] == "factors":
        shapes["rope_freqs.weight"] = (c["rope_dim"] // 2,)
    for i in range(c["n_layers"]):
        for name, rows, cols in (("attn_q", q, e), ("attn_k", k, e), ("attn_v", k, e), ("attn_output", e, q),
                                 ("ffn_gate", f, e), ("ffn_up", f, e), ("ffn_down", e, f)):
            shapes[f"blk.{i}.{name}.weight"] = (rows, cols)
            if name in c["biases"]:
                shapes[f"blk.{i}.{name}.bias"] = (rows,)
        shapes[f"blk.{i}.attn_norm.weight"] = shapes[f"blk.{i}.ffn_norm.weight"] = (e,)
    weights = {}
    for name, shape in shapes.items():
        u = generate(c["seed"], name, math.prod(shape))
        if "norm" in name:
            u = 1 + u / 4
        elif "rope_freqs" in name:
            u = 2 + u
        elif name.endswith(".weight") and "token_embd" not in name:
            u = u / 2
        weights[name] = u.astype(np.float32).reshape(shape)
    return weights


def frequencies(c):
    d, theta, s = c["rope_dim"], c["rope_theta"], c["scaling"]
    pairs = np.arange(d // 2)
    factor, original = c.get("factor", 1.0), c.get("original_context", c["context_length"])
    if s == "dynamic":
        length = c["max_context"]
        if length > original:
            theta = theta * ((factor * length / original) - (factor - 1)) ** (d / (d - 2))
    f = 1.0 / theta ** (2 * pairs / d)
    if s == "linear":
        f = f / factor
    if s == "llama3":
        low, high = c["low_freq_factor"], c["high_freq_factor"]
        wavelength = 2 * np.pi / f
        smooth = (original / wavelength - low) / (high - low)
        mixed = (1 - smooth) * f / factor + smooth * f
        f = np.where(wavelength > original / low, f / factor, np.where(wavelength < original / high, f, mixed))
    if s == "yarn":
        def pair_of(turns):
            return d * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))
        first = max(math.floor(pair_of(c.get("beta_fast", 32))), 0)
        last = min(math.ceil(pair_of(c.get("beta_slow", 1))), d - 1)
        ramp = np.clip((pairs - first) / max(last - first, 0.001), 0, 1)
        f = f / factor * ramp + f * (1 - ramp)
    return f


def rope(x, positions, f, magnitude, halves, dtype):
    """x: [tokens, heads, head_dim]; the first 2 * len(f) values of each head turn."""
    angle = positions[:, None, None] * f[None, None, :]
    cos, sin = (np.cos(angle) * magnitude).astype(dtype), (np.sin(angle) * magnitude).astype(dtype)
    n = len(f)
    y = x.copy()
    a, b = (slice(0, n), slice(n, 2 * n)) if halves else (slice(0, 2 * n, 2), slice(1, 2 * n, 2))
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., a] * sin + x[..., b] * cos
    return y


def forward(c, w, tokens, dtype):
    w = {name: tensor.astype(dtype) for name, tensor in w.items()}
    h, kv, d, eps = c["n_heads"], c["n_kv_heads"], c["head_dim"], dtype(c["epsilon"])
    n = len(tokens)
    positions = np.arange(n)
    f, magnitude = frequencies(c), 1.0
    if "rope_freqs.weight" in w:
        f = f / w["rope_freqs.weight"].astype(np.float64)
    if c["scaling"] == "yarn":
        magnitude = (0.1 * math.log(c["factor"]) + 1) * c.get("attn_factor", 1.0)
    norm = lambda x, g: x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * g
    linear = lambda x, name: x @ w[name + ".weight"].T + w.get(name + ".bias", dtype(0))
    distance = positions[:, None] - positions[None, :]
    hidden = distance < 0
    if c.get("window"):
        hidden = hidden | (distance >= c["window"])
    x = w["token_embd.weight"][tokens]
    for i in range(c["n_layers"]):
        b = f"blk.{i}."
        a = norm(x, w[b + "attn_norm.weight"])
        q = rope(linear(a, b + "attn_q").reshape(n, h, d), positions, f, magnitude, c["halves"], dtype)
        k = rope(linear(a, b + "attn_k").reshape(n, kv, d), positions, f, magnitude, c["halves"], dtype)
        v = linear(a, b + "attn_v").reshape(n, kv, d)
        k, v = np.repeat(k, h // kv, 1), np.repeat(v, h // kv, 1)
        score = np.einsum("qhd,khd->hqk", q, k) / dtype(math.sqrt(d))
        score = np.where(hidden[None], dtype(-np.inf), score)
        p = np.exp(score - score.max(-1, keepdims=True))
        p = p / p.sum(-1, keepdims=True)
        x = x + linear(np.einsum("hqk,khd->qhd", p, v).reshape(n, h * d), b + "attn_output")
        a = norm(x, w[b + "ffn_norm.weight"])
        g = linear(a, b + "ffn_gate")
        x = x + linear(g / (1 + np.exp(-g)) * linear(a, b + "ffn_up"), b + "ffn_down")
    return norm(x, w["output_norm.weight"]) @ w["token_embd.weight" if c["tied"] else "output.weight"].T


def record(c, w, tokens, n_top, every):
    exact, rounded = forward(c, w, tokens, np.float64), forward(c, w, tokens, np.float32)
    rows = []
    for position in sorted({*range(0, len(tokens), every), len(tokens) - 1}):
        best = np.argsort(-exact[position], kind="stable")[:n_top]
        rows.append({"position": position, "ids": best.tolist(), "logits": [round(float(exact[position][i]), 7) for i in best]})
    return {"tokens": tokens, "f32_error": float(np.abs(exact - rounded).max()), "rows": rows}


BASE = dict(architecture="llama", n_layers=2, n_embedding=32, n_heads=4, n_kv_heads=2, head_dim=8, n_feed_forward=56,
            n_vocab=40, context_length=64, max_context=64, epsilon=1e-5, rope_theta=10000.0, rope_dim=8, scaling="none",
            tied=False, biases=[], halves=False)
CASES = {
    "plain": {},
    "tied": dict(tied=True),
    "one_key_value_head": dict(n_kv_heads=1),
    "as_many_key_value_heads": dict(n_kv_heads=4),
    "wide_heads": dict(head_dim=24, rope_dim=24),
    "odd_sizes": dict(n_embedding=36, n_heads=3, n_kv_heads=3, head_dim=10, rope_dim=10, n_feed_forward=77, n_vocab=51),
    "partial_rope": dict(head_dim=16, rope_dim=4),
    "sliding_window": dict(window=5),
    "attention_biases": dict(biases=["attn_q", "attn_k", "attn_v"]),
    "all_biases": dict(biases=["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]),
    "qwen2": dict(architecture="qwen2", halves=True, biases=["attn_q", "attn_k", "attn_v"], rope_theta=1000000.0),
    "linear": dict(scaling="linear", factor=4.0),
    "dynamic": dict(scaling="dynamic", factor=4.0, max_context=256),
    "dynamic_within_original": dict(scaling="dynamic", factor=4.0),
    "yarn": dict(scaling="yarn", factor=4.0, original_context=64, rope_theta=100.0, beta_fast=4.0, beta_slow=1.0),
    "yarn_attention": dict(scaling="yarn", factor=8.0, original_context=32, rope_theta=50.0, attn_factor=1.25),
    "llama3": dict(scaling="llama3", factor=8.0, original_context=32, low_freq_factor=1.0, high_freq_factor=4.0,
                   rope_theta=100.0),
    "factors": dict(scaling="factors"),
}


def gguf_model(path):
    import gguf

    reader = gguf.GGUFReader(path)
    field = lambda key: reader.fields["llama." + key].contents()
    heads, width = field("attention.head_count"), field("embedding_length")
    weights = {t.name: gguf.dequantize(t.data, t.tensor_type).reshape(t.shape[::-1]) for t in reader.tensors}
    base = reader.fields.get("llama.rope.freq_base")
    return dict(n_layers=field("block_count"), n_embedding=width, n_heads=heads,
                n_kv_heads=field("attention.head_count_kv"), head_dim=width // heads,
                epsilon=float(field("attention.layer_norm_rms_epsilon")), rope_dim=width // heads, scaling="none",
                context_length=field("context_length"), rope_theta=float(base.contents()) if base else 10000.0,
                halves=False, tied="output.weight" not in weights), weights


def safetensors_model(folder):
    c = json.loads((folder / "config.json").read_text())
    raw = (folder / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    weights = {}
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32"
        begin, end = entry["data_offsets"]
        tensor = np.frombuffer(raw[8 + size + begin:8 + size + end], np.float32).reshape(entry["shape"])
        if name.startswith("model.layers."):
            _, _, layer, rest = name.split(".", 3)
            name = f"blk.{layer}.{names[rest.removesuffix('.weight')]}.weight"
        else:
            name = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
                    "lm_head.weight": "output.weight"}[name]
        weights[name] = tensor
    weights.setdefault("token_embd.weight", weights.get("output.weight"))  # tied: a file may hold either
    d = c["hidden_size"] // c["num_attention_heads"]
    return dict(n_layers=c["num_hidden_layers"], n_embedding=c["hidden_size"], n_heads=c["num_attention_heads"],
                n_kv_heads=c["num_key_value_heads"], head_dim=d, epsilon=c["rms_norm_eps"], rope_dim=d, scaling="none",
                context_length=c["max_position_embeddings"], rope_theta=c["rope_theta"], halves=True,
                tied=c["tie_word_embeddings"]), weights


def main():
    shared, smollm = pathlib.Path(sys.argv[1]), sys.argv[2]
    rng = np.random.default_rng(20261201)
    out = {"files": {}, "synthetic": []}
    for name, (config, weights), n in (
            ("stories260K", gguf_model(shared / "models/stories260K.gguf"), 120),
            ("tinystories-656k", safetensors_model(shared / "models/tinystories-656k"), 90)):
        tokens = [1] + rng.integers(3, weights["token_embd.weight"].shape[0], n - 1).tolist()
        out["files"][name] = record(config, weights, tokens, 20, 13)
    # <|im_start|>user\nWhat is gravity?<|im_end|>\n<|im_start|>assistant\n, by llama-tokenize
    prompt = [1, 4093, 198, 1780, 314, 9354, 47, 2, 198, 1, 520, 9531, 198]
    out["files"]["SmolLM2-135M-Instruct.Q4_1"] = record(*gguf_model(smollm), prompt, 20, 4)
    for seed, (name, changes) in enumerate(CASES.items()):
        c = {**BASE, **changes, "seed": seed + 1}
        tokens = rng.integers(0, c["n_vocab"], 24).tolist()
        case = {"name": name, "config": c, "frequencies": [float(f"{x:.17g}") for x in frequencies(c)]}
        out["synthetic"].append(case | record(c, synthetic_weights(c), tokens, 8, 8))
    path = pathlib.Path(__file__).parent / "data" / "reference.json"
    path.write_text(json.dumps(out, separators=(",", ":")) + "\n")


main()
