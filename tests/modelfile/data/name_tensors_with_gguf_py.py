"""Printed tensor_names.txt: architecture, Hugging Face name and GGUF name by gguf-py 0.19's own table.

python3 name_tensors_with_gguf_py.py > tensor_names.txt
"""
import gguf

ARCHITECTURES = {"llama": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2, "qwen3": gguf.MODEL_ARCH.QWEN3,
                 "gemma": gguf.MODEL_ARCH.GEMMA, "gemma2": gguf.MODEL_ARCH.GEMMA2, "gemma3": gguf.MODEL_ARCH.GEMMA3,
                 "phi3": gguf.MODEL_ARCH.PHI3}
OUTSIDE = ["model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"]
INSIDE = ["input_layernorm.weight", "post_attention_layernorm.weight", "pre_feedforward_layernorm.weight",
          "post_feedforward_layernorm.weight", "self_attn.q_proj.weight", "self_attn.q_proj.bias", "self_attn.k_proj.weight",
          "self_attn.k_proj.bias", "self_attn.v_proj.weight", "self_attn.v_proj.bias", "self_attn.o_proj.weight",
          "self_attn.q_norm.weight", "self_attn.k_norm.weight", "self_attn.qkv_proj.weight", "mlp.gate_proj.weight",
          "mlp.up_proj.weight", "mlp.down_proj.weight", "mlp.gate_up_proj.weight"]
PRESENT = {
    "llama": INSIDE[:2] + INSIDE[4:11] + INSIDE[14:17],
    "qwen2": INSIDE[:2] + INSIDE[4:11] + INSIDE[14:17],
    "qwen3": INSIDE[:2] + [n for n in INSIDE[4:13] if "bias" not in n] + INSIDE[14:17],
    "gemma": INSIDE[:2] + [n for n in INSIDE[4:11] if "bias" not in n] + INSIDE[14:17],
    "gemma2": INSIDE[:4] + [n for n in INSIDE[4:11] if "bias" not in n] + INSIDE[14:17],
    "gemma3": INSIDE[:4] + [n for n in INSIDE[4:13] if "bias" not in n] + INSIDE[14:17],
    "phi3": INSIDE[:2] + INSIDE[10:11] + INSIDE[13:14] + INSIDE[16:],
}
for name, architecture in ARCHITECTURES.items():
    table = gguf.get_tensor_name_map(architecture, 20)
    for tensor in OUTSIDE + [f"model.layers.{layer}.{part}" for layer in (0, 13) for part in PRESENT[name]]:
        if renamed := table.get_name(tensor, try_suffixes=(".weight", ".bias")):
            print(name, tensor, renamed)
