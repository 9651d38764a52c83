"""Sentences, tokens and word forms of any language that has a folder and, plainly, of any script.

Pure functions; the rules of languages are data of ``pytest_ragbench.languages``. Nothing heavy to import.
"""

from pytest_ragbench.text.blank import is_blank
from pytest_ragbench.text.languages import (
    detect_language,
    fold,
    is_spaced,
    is_unspaced,
    language_to_read,
    same_letters,
)
from pytest_ragbench.text.splitter import sentences
from pytest_ragbench.text.stems import stem
from pytest_ragbench.text.stops import is_question
from pytest_ragbench.text.tokenizer import tokens

__all__ = [
    "detect_language",
    "fold",
    "is_blank",
    "is_question",
    "is_spaced",
    "is_unspaced",
    "language_to_read",
    "same_letters",
    "sentences",
    "stem",
    "tokens",
]
