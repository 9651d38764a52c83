"""Pairs (premise, claim, label) to train a reader on: public sources under licences that allow it, and none of the
rows it is measured on.

    python benchmarks/reader/pairs.py SOURCES DATA OUT

SOURCES
    a folder with a git directory for each repository of ``LICENCES``, named ``owner+name`` (or ``owner+name/repo``)
DATA
    a folder with ``calibration_*.jsonl``: a pair that shares text with one of these rows is left out
OUT
    ``pairs.jsonl`` and ``development.jsonl`` are written here; no document is in both

A pair is a JSON object: ``premise``, ``claim``, ``label`` (1: the premise says so), ``lang``, ``source``,
``document``. Besides labelled pairs there are some made from documents: a sentence of a passage as it stands or
shortened, against one with a number, a name or the negation changed, or from elsewhere in the document.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import random
import re
import subprocess
import unicodedata
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LICENCES = {
    "verypluming+JSICK": "CC BY-SA 4.0",
    "verypluming+JaNLI": "CC BY-SA 4.0",
    "tomo-vv+temporalNLI_dataset": "CC BY-SA 4.0",
    "DaisukeBekki+JSeM": "BSD 3-clause",
    "yuliya1324+ru_attacker": "MIT",
    "RussianNLP+RussianSuperGLUE": "MIT",
    "google-research+fool-me-twice": "Apache-2.0, texts CC BY-SA (Wikipedia)",
    "ryokamoi+wice": "ODC-BY, texts CC BY-SA (Wikipedia)",
    "swarnaHub+ConjNLI": "MIT",
    "TalSchuster+FeverSymmetric": "MIT, texts CC BY-SA (Wikipedia)",
    "verypluming+HELP": "CC BY-SA 4.0",
    "verypluming+MED": "CC BY-SA 4.0",
    "BIU-NLP+Breaking_NLI": "CC BY-SA 4.0",
    "nerel-ds+NEREL": "CC BY 2.5 (Wikinews)",
    "yahoojapan+JGLUE": "CC BY-SA 4.0; of it the passages of JSQuAD's test set",
}
SEED = 20261129
MOST = {"janli": 2000, "jamp": 1500, "jsem": 4000, "conjnli": 4000, "help": 800, "breaking-nli": 2500}
"""Sources made from templates, of which more would teach the template."""


@dataclass(frozen=True)
class Pair:
    premise: str
    claim: str
    label: int
    lang: str
    source: str
    document: str


class Sources:
    """Files of the repositories, as they are at the head of their git directories."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _git(self, repository: str, *command: str) -> bytes:
        for place in (f"{repository}/repo/.git", f"{repository}/repo", f"{repository}/.git", repository):
            if (self._folder / place / "HEAD").exists():
                git = ["git", f"--git-dir={self._folder / place}", *command]
                return subprocess.run(git, check=True, capture_output=True).stdout
        raise SystemExit(f"{self._folder}: no git directory of {repository}")

    def text(self, repository: str, path: str, member: str = "") -> str:
        """A file's text; of an archive the ``member``'s."""
        found = self._git(repository, "show", f"HEAD:{path}")
        if member:
            found = zipfile.ZipFile(io.BytesIO(found)).read(member)
        return found.decode("utf-8-sig", "replace")

    def paths(self, repository: str) -> list[str]:
        return self._git(repository, "ls-tree", "-r", "-z", "--name-only", "HEAD").decode().split("\0")[:-1]

    def table(self, repository: str, path: str, delimiter: str = "\t") -> list[dict[str, str]]:
        quoting = csv.QUOTE_MINIMAL if delimiter == ";" else csv.QUOTE_NONE
        lines = io.StringIO(self.text(repository, path), newline="")
        return list(csv.DictReader(lines, delimiter=delimiter, quoting=quoting))

    def lines(self, repository: str, path: str, member: str = "") -> list[dict[str, Any]]:
        text = self.text(repository, path, member)
        return [json.loads(line) for line in text.split("\n") if line.strip()]


# Labelled pairs


def japanese(sources: Sources) -> Iterator[Pair]:
    for part in ("train", "test"):
        for row in sources.table("verypluming+JSICK", f"jsick/{part}.tsv"):
            yield _nli(row["sentence_A_Ja"], row["sentence_B_Ja"], row["entailment_label_Ja"], "ja", "jsick")
    for row in sources.table("verypluming+JaNLI", "janli.tsv"):
        yield _nli(row["sentence_A_Ja"], row["sentence_B_Ja"], row["entailment_label_Ja"], "ja", "janli")
    for row in sources.table("tomo-vv+temporalNLI_dataset", "dataset/train_all.tsv"):
        yield _nli(row["premise"], row["hypothesis"], row["gold_label"], "ja", "jamp")
    for path in sources.paths("DaisukeBekki+JSeM"):
        if re.fullmatch(r"data/v1\.0/\w+\.xml", path):
            yield from _jsem(sources.text("DaisukeBekki+JSeM", path))


def _jsem(text: str) -> Iterator[Pair]:
    # The files name a document type and a style sheet that the parser need not see.
    for problem in re.findall(r"<problem .*?</problem>", text, re.DOTALL):
        try:
            root = ET.fromstring(problem)
        except ET.ParseError:
            continue
        answer = {"yes": "entailment", "no": "contradiction", "unknown": "neutral"}.get(
            root.get("answer", "")
        )
        premises = ["".join(each.itertext()).strip() for each in root.findall("p/script")]
        claim = (
            "".join(each.strip() for each in root.findall("h/script")[0].itertext())
            if root.find("h/script") is not None
            else ""
        )
        if answer:
            yield _nli("".join(premises), claim, answer, "ja", "jsem")


def russian(sources: Sources) -> Iterator[Pair]:
    for part in ("train", "val"):
        for row in sources.lines("yuliya1324+ru_attacker", f"data/TERRa/{part}.jsonl"):
            yield _nli(row["premise"], row["hypothesis"], row.get("label", ""), "ru", "terra")
    votes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in sources.table("RussianNLP+RussianSuperGLUE", "HumanBenchmark/RCB/assign_RCB.tsv", ";"):
        votes[row["premise"], row["hypothesis"]][re.sub(r"\d", "", (row["result"] or "").lower())] += 1
    for (premise, claim), counted in votes.items():
        label, most = counted.most_common(1)[0]
        if 2 * most > counted.total():
            yield _nli(premise, claim, label, "ru", "rcb")


def english(sources: Sources) -> Iterator[Pair]:
    draw = random.Random(SEED)
    for part in ("dev", "test"):
        for row in sources.lines(
            "TalSchuster+FeverSymmetric", f"symmetric_v0.2/fever_symmetric_{part}.jsonl"
        ):
            yield _fact(row["evidence"], row["claim"], row["label"] == "SUPPORTS", "fever-symmetric")
        for row in sources.lines("google-research+fool-me-twice", f"dataset/{part}.jsonl"):
            gold = [each["text"] for each in row["gold_evidence"]]
            others = [each["text"] for each in row["retrieved_evidence"] if each["text"] not in gold][:2]
            shown = [*gold, *others]
            draw.shuffle(shown)
            yield _fact(" ".join(shown), row["text"], row["label"] == "SUPPORTS", "fool-me-twice")
            if others and draw.random() < 0.3:
                yield _fact(" ".join(others), row["text"], False, "fool-me-twice")
        for row in sources.lines(
            "ryokamoi+wice", f"code_and_resources/entailment_inputs/oracle_chunks/claim/{part}.jsonl"
        ):
            evidence = " ".join(row["evidence"])
            if len(evidence) <= 900 and row["label"] != "partially_supported":
                yield _fact(evidence, row["claim"], row["label"] == "supported", "wice")
    for row in sources.table("swarnaHub+ConjNLI", "data/NLI/adversarial_train_15k.tsv"):
        yield _nli(row["Premise"], row["Hypothesis"], row["Label"], "en", "conjnli")
    for row in sources.table("verypluming+HELP", "output_en/leskexppmb_and.tsv"):
        yield _nli(row["ori_sentence"], row["new_sentence"], row["gold_label"], "en", "help")
    for row in sources.table("verypluming+MED", "MED.tsv"):
        # Some of the others are of GLUE's diagnostic set, whose Russian translation is measured.
        if row["genre"].startswith("crowd"):
            yield _nli(row["sentence1"], row["sentence2"], row["gold_label"], "en", "med")
    rows = sources.lines("BIU-NLP+Breaking_NLI", "breaking_nli_dataset.zip", "data/dataset.jsonl")
    # Nine of ten are contradictions.
    for row in rows:
        if row["gold_label"] != "contradiction" or draw.random() < 0.2:
            yield _nli(row["sentence1"], row["sentence2"], row["gold_label"], "en", "breaking-nli")


def _nli(premise: str | None, claim: str | None, label: str | None, lang: str, source: str) -> Pair:
    # An unknown label is no pair; `cleaned` drops it with the empty ones.
    known = {"entailment": 1, "neutral": 0, "contradiction": 0, "not_entailment": 0, "non-entailment": 0}
    verdict = known.get((label or "").strip().lower(), -1)
    return Pair(premise or "", claim or "", verdict, lang, source, premise or "")


def _fact(premise: str, claim: str, supported: bool, source: str) -> Pair:
    return Pair(premise, claim, int(supported), "en", source, premise)


# Pairs made from documents

ENDS = {"ja": r"(?<=[。！？])", "ru": r"(?<=[.!?])\s+(?=[А-ЯЁA-Z«\"])", "en": r"(?<=[.!?])\s+(?=[A-Z\"])"}
NEGATIONS = {
    "en": [(" is ", " is not "), (" was ", " was not "), (" are ", " are not "), (" were ", " were not "),
           (" has ", " has never "), (" can ", " cannot "), (" will ", " will not ")],
    "ru": [(" был ", " не был "), (" была ", " не была "), (" были ", " не были "), (" является ", " не является "),
           (" может ", " не может "), (" стал ", " не стал "), (" стала ", " не стала "), (" будет ", " не будет ")],
    "ja": [("である。", "ではない。"), ("であった。", "ではなかった。"), ("だった。", "ではなかった。"),
           ("している。", "していない。"), ("された。", "されなかった。"), ("した。", "しなかった。"),
           ("する。", "しない。"), ("いる。", "いない。"), ("れる。", "れない。"), ("なった。", "ならなかった。")],
}  # fmt: skip
NAMES = {
    "en": re.compile(r"(?<!^)(?<![.!?] )\b[A-Z][a-z]+(?: [A-Z][a-z]+)*"),
    "ru": re.compile(r"(?<!^)(?<![.!?] )\b[А-ЯЁ][а-яё]{2,}(?: [А-ЯЁ][а-яё]{2,})*"),
    "ja": re.compile(r"[ァ-ヴー]{3,}|[一-龥]{2,4}(?:市|県|国|大学|会社|郡|駅|王|年)"),
}
BEGINNINGS = {
    "en": ["I think that ", "Well, ", "Yes, ", "According to the text, "],
    "ru": ["Да, ", "Согласно тексту, ", "Насколько известно, ", "Конечно, "],
    "ja": ["はい、", "文章によると、", "資料によれば、"],
}
POLITE = {"である。": "です。", "した。": "しました。", "だった。": "でした。", "する。": "します。"}
MADE = {"ja": 6000, "ru": 12000, "en": 5000}


def documents(sources: Sources) -> Iterator[tuple[str, str, str]]:
    """(language, source, text)."""
    squad = json.loads(sources.text("yahoojapan+JGLUE", "datasets/jsquad-v1.3/test-v1.3.json"))
    for article in squad["data"]:
        for paragraph in article["paragraphs"]:
            yield "ja", "jsquad", paragraph["context"].split("[SEP]")[-1]
    for path in sources.paths("nerel-ds+NEREL"):
        if path.startswith("NEREL-v1.1/train/") and path.endswith(".txt"):
            yield "ru", "nerel", sources.text("nerel-ds+NEREL", path)
    for part in ("dev", "test"):
        for row in sources.lines("google-research+fool-me-twice", f"dataset/{part}.jsonl"):
            yield "en", "fool-me-twice", " ".join(each["text"] for each in row["retrieved_evidence"][:8])


def made(sources: Sources) -> Iterator[Pair]:
    """Sentences of passages, right and made wrong; both are rephrased alike, so that the claim alone tells nothing."""
    draw = random.Random(SEED)
    texts = list(documents(sources))
    names = {
        lang: sorted({n for at, _, text in texts if at == lang for n in NAMES[lang].findall(text)})
        for lang in ENDS
    }
    counted: Counter[str] = Counter()
    for _ in range(6):
        draw.shuffle(texts)
        for lang, source, text in texts:
            sentences = [s.strip() for s in re.split(ENDS[lang], " ".join(text.split()))]
            sentences = [s for s in sentences if 18 <= len(s) <= 240]
            if len(sentences) < 4 or counted[lang] >= MADE[lang]:
                continue
            at = draw.randrange(len(sentences))
            start = max(0, at - draw.randrange(3))
            passage = sentences[start : max(start + 3, at + 1)]
            premise = ("" if lang == "ja" else " ").join(passage)
            outside = [s for s in sentences if s not in passage]
            less = _lessened(sentences[at], lang, draw)
            if less and draw.random() < 0.6:
                counted[lang] += 2
                shorter = premise.replace(sentences[at], less)
                for shown, claim, label in ((premise, less, 1), (shorter, sentences[at], 0)):
                    yield Pair(
                        shown, _rephrased(claim, lang, draw), label, lang, f"made-{source}", text[:200]
                    )
                continue
            for label in (1, 0):
                claim = _shortened(sentences[at], lang) if draw.random() < 0.5 else sentences[at]
                if label == 0:
                    claim = _falsified(claim, lang, names[lang], outside, draw)
                if claim and not (label == 0 and claim in premise):
                    counted[lang] += 1
                    yield Pair(
                        premise, _rephrased(claim, lang, draw), label, lang, f"made-{source}", text[:200]
                    )


def _shortened(sentence: str, lang: str) -> str:
    without = re.sub(r"\s?[（(][^）)]*[）)]", "", sentence)
    if lang == "ja":
        return without
    main, *rest = re.split(r", (?:котор|which|who|where|где|когда|when)", without)
    return main.rstrip(" ,.;") + "." if rest and len(main) > 30 else without


LESSENED = {
    "en": (
        r" (?:in|on|since|until|by) (?:[A-Z][a-z]+ )?(?:\d{1,2}, )?\d{4}\b",
        r"^In [^,]{3,30}, (?=[A-Z])",
        r", [^,]{3,40}(?= and )",
        r" and [^,.]{3,50}(?=\.$)",
        r", (?:which|who|where|when|including|such as) [^,.]{3,90},?",
        r" \w+ly\b",
    ),
    "ru": (
        r" в (?:\w+ )?\d{4} году",
        r" (?:\d{1,2}) [а-я]+ \d{4} года",
        r" \w{3,}(?:ый|ий|ая|яя|ое|ого|ому|ых|ими|ую)(?= [а-я]{4,})",
        r", [^,]{3,50}(?= и )",
        r" и [^,.]{3,60}(?=\.$)",
        r", (?:котор|включая|сообщ|в том числе)[^,.]{3,90},?",
        r", \w+(?:ший|вший|ющий|щая|щие|вшая|вшие)[^,.]{3,90},",
        r"^(?:Однако|Кроме того|Также|При этом|По его словам), ",
    ),
    "ja": (
        r"(?<![とや])[0-9０-９]{1,4}年(?:[0-9０-９]{1,2}月)?(?:[0-9０-９]{1,2}日)?(?:に|、)",
        r"^[^、。]{2,14}では、",
        r"[ァ-ヴー一-龥]{2,12}や(?=[ァ-ヴー一-龥])",
        r"、[ァ-ヴー一-龥]{2,12}(?=など)",
        r"[一-龥]{2,4}的な",
        r"非常に|特に|主に|また、|さらに、|なお、",
        r"[一-龥ァ-ヴー]{2,10}により",
    ),
}
"""What a sentence says less without: a date, an attribute, a clause, an item of a list."""


DENIALS = r"\b(?:no|not|never|all|every|only|не|нет|ни|все|каждый|только)\b|ない|すべて|全て|のみ"


def _lessened(sentence: str, lang: str, draw: random.Random) -> str:
    """The sentence without a part; empty where none can go, or where less would say more (in a denial)."""
    if re.search(DENIALS, sentence.lower()):
        return ""
    parts = [found for pattern in LESSENED[lang] for found in re.finditer(pattern, sentence)]
    if not parts:
        return ""
    part = draw.choice(parts)
    less = sentence[: part.start()] + sentence[part.end() :]
    return less[:1].upper() + less[1:] if len(less) >= 15 else ""


def _falsified(claim: str, lang: str, names: list[str], outside: list[str], draw: random.Random) -> str:
    """The claim with one thing changed, or a sentence from elsewhere; empty where nothing can be changed."""
    kinds = ["number", "name", "negation", "roles", "elsewhere"]
    draw.shuffle(kinds)
    return next(filter(None, (_changed(kind, claim, lang, names, outside, draw) for kind in kinds)), "")


def _changed(
    kind: str, claim: str, lang: str, names: list[str], outside: list[str], draw: random.Random
) -> str:
    """Empty where that kind of change can't be made."""
    match kind:
        case "number":
            numbers = list(re.finditer(r"\d+", claim))
            if not numbers:
                return ""
            found = draw.choice(numbers)
            value = int(found[0])
            other = value + draw.choice([-1, 1]) * draw.choice(
                [1, 2, 3, max(1, value // 10), max(1, value // 3)]
            )
            return claim[: found.start()] + str(abs(other) or value + 1) + claim[found.end() :]
        case "name":
            there = NAMES[lang].findall(claim)
            if not there:
                return ""
            old = draw.choice(there)
            pool = [
                n
                for n in draw.sample(names, 40)
                if n not in claim and n[-1] == old[-1] and abs(len(n) - len(old)) < 6
            ]
            return claim.replace(old, draw.choice(pool), 1) if pool else ""
        case "roles":
            there = list(dict.fromkeys(NAMES[lang].findall(claim)))
            fitting = [
                (a, b) for a in there for b in there if a < b and a[-1] == b[-1] and a not in b and b not in a
            ]
            if not fitting:
                return ""
            first, second = draw.choice(fitting)
            return claim.replace(first, "\0").replace(second, first).replace("\0", second)
        case "negation":
            both = NEGATIONS[lang] + [(changed, plain) for plain, changed in NEGATIONS[lang]]
            fitting = [(a, b) for a, b in both if (claim.endswith(a) if lang == "ja" else a in claim)]
            # The longer form first: " was not " holds " was ".
            old, new = max(fitting, key=lambda each: len(each[0]), default=("", ""))
            return claim[: claim.rindex(old)] + new + claim[claim.rindex(old) + len(old) :] if old else ""
        case _:
            return draw.choice(outside) if outside else ""


def _rephrased(claim: str, lang: str, draw: random.Random) -> str:
    chance = draw.random()
    if chance < 0.2:
        return draw.choice(BEGINNINGS[lang]) + claim
    if chance < 0.35 and lang == "en":
        return claim.lower()
    if chance < 0.5 and lang == "ja":
        for plain, polite in (
            ("である。", "です。"),
            ("した。", "しました。"),
            ("だった。", "でした。"),
            ("する。", "します。"),
        ):
            if claim.endswith(plain):
                return claim.removesuffix(plain) + polite
    return claim


# What may be used


def normal(text: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


class Measured:
    """The texts that the reader is measured on."""

    def __init__(self, folder: Path) -> None:
        self._sentences: set[str] = set()
        self._pieces: set[int] = set()
        for path in sorted(folder.glob("calibration_*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                for text in (row["answer"], *row["contexts"]):
                    self._add(text)

    def _add(self, text: str) -> None:
        self._pieces.update(_pieces(text))
        self._sentences.update(normal(part) for part in [text, *re.split(r"(?<=[.!?。！？])\s*", text)])

    def share(self, text: str) -> bool:
        """Whether ``text`` stands there, or three tenths of its character n-grams do."""
        if len(normal(text)) >= 8 and normal(text) in self._sentences:
            return True
        pieces = _pieces(text)
        return bool(pieces) and sum(piece in self._pieces for piece in pieces) / len(pieces) > 0.3


def _pieces(text: str) -> list[int]:
    size = 12 if re.search(r"[ぁ-んァ-ン一-龥]", text) else 24
    plain = normal(text)
    return [hash(plain[i : i + size]) for i in range(max(0, len(plain) - size + 1))]


def cleaned(pairs: Iterable[Pair], measured: Measured) -> list[Pair]:
    """Without repetitions, empty texts, unknown labels, and what shares text with a measured row."""
    kept: dict[tuple[str, str], Pair] = {}
    left_out: Counter[str] = Counter()
    for pair in pairs:
        key = normal(pair.premise), normal(pair.claim)
        if pair.label < 0 or min(map(len, key)) < 4 or key in kept:
            continue
        if measured.share(pair.premise) or measured.share(pair.claim):
            left_out[pair.source] += 1
            continue
        kept[key] = pair
    print("left out, since measured:", dict(left_out))
    return list(kept.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("sources", "data", "out"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    sources = Sources(given.sources)
    draw = random.Random(SEED)
    found = [*japanese(sources), *russian(sources), *english(sources), *made(sources)]
    draw.shuffle(found)
    pairs, counted = [], Counter[str]()
    for pair in cleaned(found, Measured(given.data)):
        counted[pair.source] += 1
        if counted[pair.source] <= MOST.get(pair.source, len(found)):
            pairs.append(pair)
    given.out.mkdir(parents=True, exist_ok=True)
    # One document in 16 is for development, all of its pairs.
    held = [hashlib.sha256(normal(pair.document).encode()).digest()[0] % 16 == 0 for pair in pairs]
    for name, wanted in (("pairs", False), ("development", True)):
        part = [pair for pair, out in zip(pairs, held, strict=True) if out is wanted]
        lines = (json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in part)
        (given.out / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        table = Counter((pair.lang, pair.source, pair.label) for pair in part)
        print(name, len(part))
        for (lang, source), _ in sorted(Counter((p.lang, p.source) for p in part).items()):
            print(f"  {lang} {source}: {table[lang, source, 1]} supported, {table[lang, source, 0]} not")


if __name__ == "__main__":
    main()
