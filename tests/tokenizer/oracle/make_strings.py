#!/usr/bin/env python3
"""Writes data/strings.json: the strings over which tokenizers are compared with their reference.

    python3 make_strings.py > ../data/strings.json

Seeded; every kind of text that has broken a tokenizer somewhere: all scripts, emoji with joiners and modifiers,
combining marks, white space of every sort in runs, digits of every script, code, contractions, control characters,
special tokens spelled out, and mixtures of these. Written with Python 3.11 (Unicode 14); random characters are of
Unicode 3.2, so that the references, which carry later tables, agree on what they are.
"""
import json
import random
import sys
import unicodedata

RANDOM = random.Random(20240607)

SENTENCES = """
The quick brown fox jumps over the lazy dog, doesn't it?
I'm sure they've said we'll go; he'd rather she'd stayed. It's John's.
Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.
Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis.
El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia y frío.
À noite, vovô Kowalsky vê o ímã cair no pé do pinguim queixoso.
Pchnąć w tę łódź jeża lub ośm skrzyń fig.
Příliš žluťoučký kůň úpěl ďábelské ódy.
Árvíztűrő tükörfúrógép.
Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul ISPARTA ılık
Съешь же ещё этих мягких французских булок, да выпей чаю.
Чуєш їх, доцю, га? Кумедна ж ти, прощайся без ґольфів!
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.
דג סקרן שט בים מאוכזב ולפתע מצא חברה
نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر
یک روباه قهوه‌ای سریع از روی سگ تنبل می‌پرد
ٹھنڈ میں، ایک قحط زدہ گاؤں سے گذرتے وقت
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश
আমি বাংলায় গান গাই, আমি বাংলার গান গাই।
யாமறிந்த மொழிகளிலே தமிழ்மொழி போல் இனிதாவது எங்கும் காணோம்
మాయ మీద మాయ, తెలుగు లెస్స
ಕನ್ನಡ ಭಾಷೆ ಬಹಳ ಸುಂದರ
മലയാളം ഒരു ദ്രാവിഡ ഭാഷയാണ്
ਪੰਜਾਬੀ ਮਾਂ ਬੋਲੀ
ગુજરાતી ભાષા
ශ්‍රී ලංකාව සුන්දර දිවයිනකි
เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน
ຂ້ອຍກິນແກ້ວໄດ້ໂດຍທີ່ມັນບໍ່ໄດ້ເຮັດໃຫ້ຂ້ອຍເຈັບ
ကျွန်တော် မှန်စားနိုင်တယ်။
ខ្ញុំអាចញុំកញ្ចក់បាន
ང་ཚོ་བོད་ཡིག་འབྲི་ཤེས།
色は匂へど散りぬるを 我が世誰ぞ常ならむ
いろはにほへと ちりぬるを カタカナ ｶﾀｶﾅ 、。「」
키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.
視野無限廣,窗外有藍天。微風迎客,軟語伴茶。
我能吞下玻璃而不伤身体。你好，世界！２０２４年１０月３日
მინას ვჭამ და არა მტკივა.
Կրնամ ապակի ուտել և ինծի անհանգիստ չըներ։
እኔ መስታወት መብላት እችላለሁ።
ᚠᛇᚻ ᛒᛦᚦ ᚠᚱᚩᚠᚢᚱ ᚠᛁᚱᚪ ᚷᛖᚻᚹᛦᛚᚳᚢᛗ
ᐊᐃᓐᓇᓂᐊᕐᒪᖅ ᐃᓄᒃᑎᑐᑦ
ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ
Tôi có thể ăn thủy tinh mà không hại gì. Việt Nam tiếng
Hawaiʻi ʻOkina Māori ŋ ɓ ɗ ʃ ʒ θ
𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒮𝒸𝓇𝒾𝓅𝓉 𝟘𝟙𝟚 𐌰𐌱𐌲 𐐀𐐨 𓀀𓂀
""".strip().split("\n")

CODE = [
    "def f(x: int) -> int:\n    \"\"\"Doc.\"\"\"\n    return x**2 if x else -1\n",
    "for (size_t i = 0; i < n; ++i) {\n\tsum += a[i]*b[i];\r\n}",
    "{\"key\": [1, 2.5e-3, null, true], \"näme\": \"\\u00e9\"}",
    "<div class=\"a-b\">&nbsp;<!-- x --></div>",
    "SELECT * FROM t WHERE a<>'it''s' AND b>=10;",
    "^(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]+)@\\w+\\.com$",
    "https://example.org/a/b?c=d&e=%20#frag",
    "C:\\Users\\x\\file.txt; rm -rf /tmp/*.log && echo $HOME",
    "let mut v: Vec<&'static str> = vec![\"a\"];",
    "x=1;y=2;z=x+y//comment\n\n\n    return z",
    "#include <cstdio>\nint main(){return 0;}",
    "\\begin{equation}\\frac{1}{2}\\sum_{i=0}^{n}x_i\\end{equation}",
    "a==b!=c===d<=e>=f<<g>>h&&i||j!k~l^m|n&o",
    "snake_case CamelCase kebab-case SCREAMING_CASE mixedCase123abc HTMLParser iPhone",
    "0x1F 0b1010 1_000_000 3.14159 -1e10 12:34:56 2024-01-31",
]

EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "❤️‍🔥", "1️⃣", "☎️", "🙂‍↕️", "🧑🏻‍🦰", "©️™", "→⇒∑√∞≠", "♠♣♥♦", "🀄🃏"]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'LL", "'D", "’s", "’re", "'ſ", "'x",
                "''s", "'", "n't", "'llama", "'dog", "'reve"]
DIGITS = ["0", "7", "42", "123", "1234", "12345", "1234567", "1000000000", "٣٤٥٦", "१२३४", "２０２４", "Ⅻⅷ", "½¾", "²³⁴", "①②",
          "〇一二三", "1,234.56", "12½", "3rd", "v2", "0007", "๑๒๓", "𝟏𝟐𝟑𝟒"]
SPACES = [" ", " ", " ", "  ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u2003", "\u3000", "\u0085", "\u2028", "\u2029", "\u180e",
          "\u200b", "\u202f", "\ufeff", "\v", "\f", "\u1680", "\n\n", "    "]
MARKS = ["e\u0301", "n\u0303o", "a\u0308\u0323", "\u0301", "Z\u0351\u036b\u0343a\u0321", "\u0915\u094d\u0937", "\u0e01\u0e33", "\u1100\u1161\u11a8", "\u05d1\u05bc",
         "\u00e9", "\u212b", "\ufb01", "\u01c5", "\u0130i\u0307", "\u0344", "\u0958", "\u1e9b\u0323", "\ud55c", "\uff76\uff9e"]
CONTROLS = ["\x00", "\x01", "\x07", "\x08", "\x1b[0m", "\x1f", "\x7f", "\x80", "\x9f", "\u200d", "\u200e", "\u2060", "\ufffd", "\ue000",
            "\ufffe", "\uffff", "\U0010ffff", "\u0378", "\u00ad", "\U000e0001", "\u061c"]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<unk>", "<0x0A>", "[INST]", "<|begin_of_text|>", "<pad>",
            "<bos>", "<think>", "\u2581", "\u2581\u2581", "<|", "|>", "<｜User｜>"]
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["...", "--", "!!!", "??", "¿", "«", "»", "„", "…", "—", "、", "。", "！", "।", "۔", "،"]


def old_characters():
    """Assigned in Unicode 3.2 and of the same category since, by category."""
    table = {}
    for code in range(0x110000):
        char = chr(code)
        category = unicodedata.ucd_3_2_0.category(char)
        if category not in ("Cn", "Cs", "Co") and category == unicodedata.category(char):
            table.setdefault(category, []).append(char)
    return table


BY_CATEGORY = old_characters()
CATEGORIES = sorted(BY_CATEGORY)
WORDS = [word for sentence in SENTENCES for word in sentence.split(" ")]


def random_characters(count):
    return "".join(RANDOM.choice(BY_CATEGORY[RANDOM.choice(CATEGORIES)]) for _ in range(count))


def random_piece():
    source = RANDOM.choice([WORDS, WORDS, WORDS, EMOJI, CONTRACTIONS, DIGITS, DIGITS, SPACES, SPACES, SPACES, MARKS, CONTROLS,
                            PUNCTUATION, PUNCTUATION, SPECIALS, None])
    return random_characters(RANDOM.randint(1, 3)) if source is None else RANDOM.choice(source)


def random_ascii(length):
    alphabet = "aAbZ09 '\n\t.,_-(s)tre" + "".join(chr(RANDOM.randrange(0x20, 0x7f)) for _ in range(6))
    return "".join(RANDOM.choice(alphabet) for _ in range(length))


def fragment(text):
    start = RANDOM.randrange(len(text))
    return text[start:start + RANDOM.randint(1, 12)]


def make_strings():
    strings = SENTENCES + CODE
    for pieces in (EMOJI, CONTRACTIONS, DIGITS, SPACES, MARKS, CONTROLS, SPECIALS, PUNCTUATION):
        for piece in pieces:
            strings += [piece, "a" + piece + "b", piece + piece + " " + piece]
    strings += [chr(code) for code in range(0x180)]
    strings += [unicodedata.normalize("NFD", sentence) for sentence in SENTENCES if not sentence.isascii()]
    for unit, count in [("a", 60), (" ", 40), ("\n", 30), ("7", 31), ("ab", 50), ("=", 64), ("\t", 17), ("哈", 40), ("😀", 20), ("e\u0301", 25),
                        (" a", 30), ("\u0301", 20), ("A", 49), ("\r\n", 9), ("\u3000", 12), (" 1", 20), ("'s", 15), ("aB", 24)]:
        strings += [unit * count, unit * count + "x", "x" + unit * count]
    kinds = [lambda: "".join(random_piece() for _ in range(RANDOM.randint(2, 9))),
             lambda: RANDOM.choice(["", " "]).join(RANDOM.choice(WORDS) for _ in range(RANDOM.randint(2, 5))),
             lambda: random_characters(RANDOM.randint(1, 12)),
             lambda: random_ascii(RANDOM.randint(1, 30)),
             lambda: "".join(RANDOM.choice(SPACES) for _ in range(RANDOM.randint(1, 7))) + RANDOM.choice(WORDS),
             lambda: fragment(RANDOM.choice(CODE)) + fragment(RANDOM.choice(SENTENCES))]
    seen = dict.fromkeys(strings)
    while len(seen) < 2500:
        seen.setdefault(RANDOM.choice(kinds)())
    return [string for string in seen if string]


if __name__ == "__main__":
    json.dump(make_strings(), sys.stdout, ensure_ascii=False, indent=0)
    sys.stdout.write("\n")
