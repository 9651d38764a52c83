"""Languages as folders of data: how sentences end, what words mean, prompts, explanations.

A language is a folder named by its code, with a ``language.toml`` and whatever else it can bring; see
docs/languages.md. Those in this package are found by listing it, those of other packages by the entry
point group ``ragbench.languages`` (name: the code; value: the package that holds the folder's files). The code
asks for data by topic and names no language but the default.
"""

from pytest_ragbench.languages.catalog import (
    DEFAULT,
    Catalog,
    Language,
    LanguageError,
    Script,
    catalog,
    known_languages,
    language,
    rules,
    short_code,
)

__all__ = [
    "DEFAULT",
    "Catalog",
    "Language",
    "LanguageError",
    "Script",
    "catalog",
    "known_languages",
    "language",
    "rules",
    "short_code",
]
