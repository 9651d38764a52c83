"""Time to name questions: CPU seconds by the length of the question, which must grow with it and not with its square.

python benchmarks/question_ids.py [--characters 40000]
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from pathlib import Path

from pytest_ragbench.questions import ids, load_questions

TEXTS = {
    "en": "how many days does a customer have to return it ",
    "ru": "сколько дней есть у покупателя на возврат товара ",
    "ja": "購入した商品は何日以内であれば返品できますか、",
    "hi": "ग्राहक कितने दिनों में सामान वापस कर सकता है ",
}


def slug_seconds(text: str) -> float:
    start = time.process_time()
    ids.slug(text)
    return time.process_time() - start


def load_seconds(rows: int, characters: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "questions.csv"
        with file.open("w", encoding="utf-8", newline="") as opened:
            writer = csv.writer(opened)
            writer.writerow(["question", "reference"])
            for row in range(rows):
                writer.writerow([f"{row} {TEXTS['en'] * characters}"[:characters], "30"])
        start = time.process_time()
        load_questions(file)
        return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--characters", type=int, default=40_000)
    longest = parser.parse_args().characters
    lengths = [longest // 16, longest // 4, longest]
    print(f"| language | {' | '.join(f'{length:,} characters' for length in lengths)} |")
    print("|---|" + "---|" * len(lengths))
    for lang, text in TEXTS.items():
        cells = [f"{slug_seconds((text * length)[:length]) * 1000:.1f} ms" for length in lengths]
        print(f"| {lang} | {' | '.join(cells)} |")
    print(f"\n200 questions of 1,500 characters from a CSV file: {load_seconds(200, 1500):.2f} s")


if __name__ == "__main__":
    main()
