#!/usr/bin/env python3
"""Trains small SentencePiece models on the first 60 of ../data/strings.json and records their ids for all.

    pip install sentencepiece==0.2.3 protobuf tokenizers==0.23.3
    python3 record_sentencepiece.py            # writes ../data/sentencepiece.json

The models are small enough to be recorded whole, so the test that uses them needs no other file. `ids` has 24 bits of
hash for each string, as in record_ids.py. The charsmap of `unigram_rules` is compiled by SentencePiece from RULES;
`--nfkc FILE` trains with the full NFKC rules instead, whose map is too big to commit; the test finds it as
$ASSAY_TOKENIZERS/sentencepiece_nfkc.json.
"""
import base64
import io
import json
import pathlib
import sys
import tempfile

import sentencepiece

from record_ids import DATA, hash24

RULES = [("\u00e9", "e"), ("\ufb01", "fi"), ("\u3000", " "), ("\u00a0", " "), ("\t", " "), ("\n", " "), ("\u2003", " "), ("\u200b", ""),
         ("\uff21", "A"), ("e\u0301", "e"), ("\u00bd", "1/2"), ("\u2122", "TM"), ("\u1100\u1161", "\uac00"), ("...", "\u2026"),
         ("\u1e9b\u0323", "s\u0307"), ("\U0001d7d8", "0"), ("\ufdfa", "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647")]

MODELS = {
    "unigram_rules": dict(model_type="unigram", vocab_size=1200, remove_extra_whitespaces=True, add_dummy_prefix=True,
                          byte_fallback=False),
    "unigram_bytes": dict(model_type="unigram", vocab_size=1200, remove_extra_whitespaces=False, add_dummy_prefix=False,
                          byte_fallback=True, normalization_rule_name="identity"),
    "bpe_bytes": dict(model_type="bpe", vocab_size=1200, remove_extra_whitespaces=False, add_dummy_prefix=True,
                      byte_fallback=True, normalization_rule_name="identity"),
    "bpe_unknown": dict(model_type="bpe", vocab_size=900, remove_extra_whitespaces=True, add_dummy_prefix=True,
                        byte_fallback=False, normalization_rule_name="identity"),
}


def train(strings, options):
    model = io.BytesIO()
    lines = [line for string in strings[:60] * 3 for line in string.split("\n") if line.strip() and "\0" not in line]
    with tempfile.TemporaryDirectory() as folder:
        if "normalization_rule_name" not in options:
            rules = pathlib.Path(folder) / "rules.tsv"
            rules.write_text("".join(" ".join(f"{ord(c):x}" for c in a) + "\t" + " ".join(f"{ord(c):x}" for c in b) + "\n"
                                     for a, b in RULES))
            options = options | {"normalization_rule_tsv": str(rules)}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, character_coverage=0.98,
                                                 hard_vocab_limit=False, num_threads=1, minloglevel=2, **options)
    return model.getvalue()


def describe(model, options, strings):
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    answers = [processor.encode(string) for string in strings]
    kinds = {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5}  # SentencePiece's type to TokenKind
    return {
        "unigram": options["model_type"] == "unigram",
        "tokens": [piece.piece for piece in proto.pieces],
        "scores": [piece.score for piece in proto.pieces],
        "kinds": [kinds[piece.type] for piece in proto.pieces],
        "charsmap": base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode(),
        "add_space_prefix": options["add_dummy_prefix"],
        "remove_extra_whitespaces": options["remove_extra_whitespaces"],
        "byte_fallback": options["byte_fallback"],
        "ids": "".join(hash24(ids) for ids in answers),
    }


def main():
    strings = json.loads((DATA / "strings.json").read_text())
    path, models = DATA / "sentencepiece.json", MODELS
    if sys.argv[1:2] == ["--nfkc"]:
        path = pathlib.Path(sys.argv[2])
        models = {"unigram_nfkc": MODELS["unigram_rules"] | {"normalization_rule_name": "nmt_nfkc"}}
    entries = {key: describe(train(strings, options), options, strings) for key, options in models.items()}
    path.write_text(json.dumps({"how": "oracle/record_sentencepiece.py", "models": entries}, ensure_ascii=False, indent=0) + "\n")


if __name__ == "__main__":
    main()
