"""A language that another package brings: a folder of data and an entry point, no Python.

Its files are in ``german/`` beside this test. A process of its own finds it as it would find any installed package.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def evaluated(expressions: Sequence[str], *paths: Path) -> list[Any]:
    """Values of Python expressions in a new process that also imports from ``paths``."""
    code = f"""
import json
from pytest_ragbench import RagSample
from pytest_ragbench.judge.base import in_language
from pytest_ragbench.judge.local import addresses, is_abstention, split_claims, verify
from pytest_ragbench.judge.local.numbers import numbers
from pytest_ragbench.judge.reading.fields import yes_no
from pytest_ragbench.judge.rendering import prompt_version, prompt_versions, render
from pytest_ragbench.judge.tasks import VerifyClaims
from pytest_ragbench.languages import known_languages
from pytest_ragbench.mutation.rules import variants
from pytest_ragbench.report.explanations import explanation
from pytest_ragbench.settings import load_settings
from pytest_ragbench.text import detect_language, sentences, stem
print(json.dumps([eval(each) for each in {list(expressions)!r}], default=str))
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [ROOT, *paths])), "PYTHONUTF8": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", env=env, check=False
    )
    assert run.returncode == 0, run.stderr
    values: list[Any] = json.loads(run.stdout)
    return values


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with the German words in it, as pip would leave them."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(Path(__file__).with_name("german"), site / "words_of_german")
    about = site / "words_of_german-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: words-of-german\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[ragbench.languages]\nde = words_of_german\n")
    return site


CHUNK = (
    "Die Frist für die Rückgabe beträgt vierzehn Tage. Die Lieferung ist kostenlos. Akkus sind nicht dabei."
)

EXPECTED: dict[str, Any] = {
    "known_languages()": ["en", "ru", "ja", "de"],
    # Text
    f"detect_language({CHUNK!r})": "de",
    "detect_language('The return period is two weeks.')": "en",
    "sentences('Das gilt z.B. Für Bücher. Hr. Braun hilft.')": [
        "Das gilt z.B. Für Bücher.",
        "Hr. Braun hilft.",
    ],
    "stem('lieferungen', 'de') == stem('lieferung', 'de')": True,
    "[(sorted(n.readings), n.unit) for n in numbers('nach dreißig Tagen', 'de')]": [[[30.0], "day"]],
    # The local judge
    f"verify('Die Frist beträgt 14 Tage.', ({CHUNK!r},)).value >= 0.5": True,
    f"verify('Die Frist beträgt drei Tage.', ({CHUNK!r},)).value >= 0.5": False,
    f"verify('Die Lieferung ist kostenpflichtig.', ({CHUNK!r},)).value >= 0.5": False,
    f"verify('Die Lieferung ist nicht kostenlos.', ({CHUNK!r},)).value >= 0.5": False,
    "is_abstention('Das weiß ich leider nicht.')": True,
    "split_claims('Laut Dokument gilt die Garantie nicht für den Akku.')": [
        "Gilt die Garantie nicht für den Akku."
    ],
    "addresses('Wie lange ist die Frist für die Rückgabe?', 'Sie ist ein Geschenk für alle.').reason": (
        "the question asks for a duration, the answer has none"
    ),
    # Words, prompts, explanations
    "[yes_no('Stimmt.'), yes_no('stimmt nicht'), yes_no('да')]": [True, False, True],
    "prompt_version(VerifyClaims(('Das ist nicht so.',), ('Es ist so.',)))[-3:]": "-de",
    "render(VerifyClaims(('Das ist nicht so.',), ('Es ist so.',)))[0]['content'].splitlines()[0]": (
        "Du bist ein unparteiischer Prüfer."
    ),
    "explanation('faithfulness', 'de')": (
        "Anteil der Aussagen der Antwort, die von den gefundenen Abschnitten gestützt werden."
    ),
    "load_settings(options={'lang': 'de'}, environ={}).lang": "de",
    "[v.change for v in variants(RagSample(question='Wie lange?', answer='Die Frist ist 14 Tage lang.'))]": [
        "14 -> 21",
        "Tage -> Monate",
        "ist -> ist nicht",
        "added: Das hat eine Prüfung in Laibach am 12. März 1987 bestätigt.",
    ],
}


def test_a_folder_and_an_entry_point_are_enough(installed: Path) -> None:
    assert dict(zip(EXPECTED, evaluated(list(EXPECTED), installed), strict=True)) == EXPECTED


def test_other_languages_are_read_as_before(installed: Path) -> None:
    expressions = [
        "verify('The price is not 30 euros.', ('The price is 30 euros.',)).value",
        "verify('Гарантия — три года.', ('Гарантия на товар — два года.',)).value",
        "verify('保証は3年間です。', ('保証期間は2年間です。',)).value",
        "split_claims('Well, the shop is open on Monday; it closes at nine.')",
        "prompt_version(VerifyClaims(('Это так.',), ('Так.',)))",
        "[yes_no('yes'), yes_no('нет'), yes_no('はい')]",
    ]
    assert evaluated(expressions, installed) == evaluated(expressions)
