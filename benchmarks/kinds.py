"""Make ``kinds.toml`` of English, Russian and Japanese: which words mean the same, and which a kind of another.

    python benchmarks/kinds.py WORDNET OMW

WORDNET    the folder with data.noun, index.noun, cntlist.rev of Princeton WordNet 3.0 (Debian: wordnet-base)
OMW        a clone of github.com/omwn/omw-data; its wns/wikt/*.tab gives words of Wiktionary for WordNet's meanings

A word gets those of its first two meanings that make up half of its occurrences in SemCor (WordNet's counts) or
more; one that was never counted there is left out. In Russian and Japanese, whose words are not counted, the English
counts of the meanings stand for theirs. The tree follows the first hypernym of each meaning; meanings
without words and the roots (entity, act, state), of which everything is a kind, are left out.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

LANGUAGES = Path(__file__).parent.parent / "pytest_ragbench" / "languages"
PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
SHARE = 0.5
"""Of a word's occurrences that a meaning must make up."""
FROM_ROOT = 3
"""Meanings nearer to the root than this are too wide: entity, abstraction, artifact."""
Meaning = tuple[str, str]
"""(offset in WordNet's data file, part of speech)."""


class WordNet:
    """Meanings, their first hypernyms, and how often they occur."""

    def __init__(self, folder: Path) -> None:
        self.parents: dict[Meaning, Meaning] = {}
        self.senses: dict[tuple[str, str], list[Meaning]] = {}
        self.counts: Counter[Meaning] = Counter()
        self.of_word: Counter[tuple[str, Meaning]] = Counter()
        for part, code in PARTS.items():
            for line in _lines(folder / f"data.{part}"):
                fields = line.split(" | ")[0].split()
                start = 4 + 2 * int(fields[3], 16) + 1
                for i in range(start, start + 4 * int(fields[start - 1]), 4):
                    if fields[i] in ("@", "@i"):
                        self.parents.setdefault((fields[0], code), (fields[i + 1], fields[i + 2]))
            for line in _lines(folder / f"index.{part}"):
                fields = line.split()
                self.senses[fields[0], code] = [(offset, code) for offset in fields[-int(fields[2]) :]]
        for line in _lines(folder / "cntlist.rev"):
            key, sense, count = line.split()
            word, _, rest = key.partition("%")
            code = "nvara"[int(rest[0]) - 1]
            meanings = self.senses.get((word, code), [])
            if int(sense) <= len(meanings):
                self.counts[meanings[int(sense) - 1]] += int(count)
                self.of_word[word, meanings[int(sense) - 1]] += int(count)

    def way(self, meaning: Meaning) -> list[Meaning]:
        """From the root down to the meaning; of adjectives and adverbs only themselves."""
        found = [meaning]
        while found[-1] in self.parents and self.parents[found[-1]] not in found:
            found.append(self.parents[found[-1]])
        return found[::-1]

    def english(self) -> dict[Meaning, list[str]]:
        """Words by meaning."""
        words: dict[Meaning, list[str]] = defaultdict(list)
        by_word: dict[str, list[Meaning]] = defaultdict(list)
        for (word, _), meanings in self.senses.items():
            if word.isascii() and word.isalpha() and len(word) > 2:
                by_word[word] += meanings[:2]
        for word, meanings in by_word.items():
            total = sum(self.of_word[word, meaning] for code in PARTS.values()
                        for meaning in self.senses.get((word, code), []))  # fmt: skip
            for meaning in meanings:
                if total and self.of_word[word, meaning] / total >= SHARE:
                    words[meaning].append(word)
        return words


def translated(net: WordNet, table: str, fits: re.Pattern[str], rare: bool) -> dict[Meaning, list[str]]:
    """Words by meaning, out of a table ``offset-part TAB lang:lemma TAB word``; the first group of ``fits`` is kept.

    ``rare``: with meanings that SemCor has never.
    """
    by_word: dict[str, list[Meaning]] = defaultdict(list)
    for line in table.splitlines():
        fields = line.split("\t")
        lemma = fits.fullmatch(fields[2]) if len(fields) == 3 and fields[1].endswith(":lemma") else None
        if lemma is not None:
            offset, _, code = fields[0].partition("-")
            by_word[lemma.group(1)].append((offset, "a" if code == "s" else code))
    words: dict[Meaning, list[str]] = defaultdict(list)
    for word, found in by_word.items():
        meanings = list(dict.fromkeys(found))
        total = sum(net.counts[meaning] + 0.5 for meaning in meanings)
        for meaning in meanings:
            if (rare or net.counts[meaning]) and (net.counts[meaning] + 0.5) / total >= SHARE:
                words[meaning].append(word)
    return words


def tree(net: WordNet, words: Mapping[Meaning, list[str]]) -> str:
    """Lines of words, indented below what they are kinds of; what stands alone, and says nothing, is left out."""
    kinds: dict[Meaning | None, list[Meaning]] = defaultdict(list)
    for meaning in words:
        ways = [each for each in net.way(meaning)[:-1] if each in words]
        wide = {each for each in net.way(meaning)[:FROM_ROOT] if each[1] == "n"}
        above = [each for each in ways if each not in wide]
        kinds[above[-1] if above else None].append(meaning)
    lines: list[str] = []

    def write(meaning: Meaning, depth: int) -> None:
        lines.append(" " * depth + " ".join(sorted(words[meaning])))
        for kind in sorted(kinds[meaning], key=lambda each: sorted(words[each])):
            write(kind, depth + 1)

    for meaning in sorted(kinds[None], key=lambda each: sorted(words[each])):
        if kinds[meaning] or len(words[meaning]) > 1:
            write(meaning, 0)
    return "\n".join(lines)


def _lines(path: Path) -> Iterable[str]:
    return (line for line in path.read_text("latin-1").splitlines() if not line.startswith("  "))


def write(lang: str, source: list[str], text: str) -> None:
    """One language's file, with where it is from."""
    head = "".join(f"# {line}\n" for line in source)
    path = LANGUAGES / lang / "kinds.toml"
    path.write_text(f"{head}tree = '''\n{text}\n'''\n", encoding="utf-8")
    print(f"{path}: {len(text.split())} words, {path.stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wordnet", type=Path)
    parser.add_argument("omw", type=Path)
    options = parser.parse_args()
    net = WordNet(options.wordnet)
    about = "Words of one meaning in a line, kinds of it indented below. Made by benchmarks/kinds.py; not to be edited."
    princeton = (
        "Princeton WordNet 3.0, Copyright 2006 by Princeton University; licence: LICENSES/WordNet-3.0.txt."
    )
    write("en", [about, f"From {princeton}"], tree(net, net.english()))

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(options.omw), *arguments], check=True, capture_output=True, encoding="utf-8"
        ).stdout

    commit = git("rev-parse", "HEAD").strip()
    # Rare meanings are half of the words. They lowered no score in Japanese and raised some, and in Russian none.
    for lang, code, letters, rare in (
        ("ru", "rus", "([а-яё]{3,})", False),
        ("ja", "jpn", "([\u3005-\u3007\u3041-\u30ff\u3400-\u9fff]{1,12}?)(?:する|の|な)?", True),
    ):
        source = [
            about,
            f"From Wiktionary by github.com/omwn/omw-data, wns/wikt/wn-wikt-{code}.tab at {commit} (CC BY-SA 3.0),",
            f"by the authors of Wiktionary; chosen, and put in the order of {princeton}",
            "This file is under CC BY-SA 4.0: LICENSES/CC-BY-SA-4.0.txt.",
        ]
        table = git("show", f"HEAD:wns/wikt/wn-wikt-{code}.tab")
        write(lang, source, tree(net, translated(net, table, re.compile(letters), rare)))


if __name__ == "__main__":
    main()
