"""Sentences, tokens and word forms for English, Russian, Japanese and, plainly, any script.

Pure functions, no data to download, nothing heavy to import.
"""

from pytest_ragbench.text.languages import detect_language, is_cjk
from pytest_ragbench.text.splitter import sentences
from pytest_ragbench.text.stems import stem
from pytest_ragbench.text.tokenizer import tokens

__all__ = ["detect_language", "is_cjk", "sentences", "stem", "tokens"]
