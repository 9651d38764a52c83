"""The names that people have for the columns of a question file, and ours.

Names are compared without case, spaces, underscores, hyphens and dots, so ``userInput``, ``user_input`` and
``User Input`` are one.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from typing import Any

NAMES: dict[str, tuple[str, ...]] = {
    "id": (
        "id", "question_id", "qid", "query_id", "sample_id", "case_id", "test_id", "test_case_id",
        "uid", "uuid",
        "ид", "идентификатор", "номер", "№", "номер вопроса", "id вопроса",
        "番号", "質問番号", "質問ID", "識別子",
    ),
    "question": (
        "question", "query", "user_input", "input", "inputs", "prompt", "user_query", "user_question",
        "question_text", "query_text", "search_query",
        "вопрос", "запрос", "текст вопроса", "вопрос пользователя",
        "質問", "質問文", "問い", "問合せ", "問い合わせ", "クエリ", "ユーザー入力", "入力",
    ),
    "answer": (
        "answer", "response", "actual_output", "output", "completion", "prediction", "generated_answer",
        "model_answer", "actual_answer", "actual_response", "predicted_answer", "generated_response",
        "rag_answer", "bot_answer", "llm_answer",
        "ответ", "ответ модели", "ответ бота", "ответ системы", "ответ ассистента",
        "回答", "応答", "出力", "生成回答", "実際の回答",
    ),
    "reference": (
        "reference", "ground_truth", "ground_truths", "expected_message", "ground_truth_answer",
        "expected_output", "expected_answer", "expected_response", "expected", "reference_answer",
        "reference_output", "gold", "golden", "gold_answer", "golden_answer", "ideal", "ideal_answer",
        "correct_answer", "right_answer", "target", "target_answer",
        "эталон", "эталонный ответ", "правильный ответ", "верный ответ", "ожидаемый ответ",
        "образец ответа",
        "正解", "正答", "模範回答", "期待回答", "期待する回答", "期待される回答", "参照回答",
        "正解回答", "期待値",
    ),
    "contexts": (
        "contexts", "retrieved_contexts", "retrieved_context", "retrieval_context", "retrieval_contexts",
        "chunks", "chunk", "retrieved_chunks", "documents", "docs", "retrieved_documents", "retrieved_docs",
        "passages", "passage", "retrieved_passages",
        "контекст", "контексты", "найденный контекст", "чанки", "фрагменты", "найденные фрагменты",
        "文脈", "コンテキスト", "検索結果", "検索文脈", "取得文書", "取得コンテキスト", "チャンク",
    ),
    "reference_contexts": (
        "reference_contexts", "reference_context", "ground_truth_contexts", "ground_truth_context",
        "gold_contexts", "gold_context", "golden_contexts", "expected_contexts", "expected_context",
        "relevant_contexts", "source_contexts",
        "эталонный контекст", "эталонные контексты", "эталонные фрагменты",
        "正解文脈", "参照文脈", "正解コンテキスト", "参照コンテキスト",
    ),
    "context_ids": (
        "context_ids", "retrieved_context_ids", "retrieved_ids", "retrieved_doc_ids",
        "retrieved_document_ids", "retrieved_chunk_ids", "chunk_ids",
        "id фрагментов", "id чанков", "найденные id", "文脈ID", "取得ID", "検索結果ID",
    ),
    "relevant_ids": (
        "relevant_ids", "reference_context_ids", "reference_ids", "relevant_doc_ids", "relevant_document_ids",
        "relevant_chunk_ids", "relevant_context_ids", "gold_ids", "gold_doc_ids", "expected_ids",
        "expected_doc_ids", "ground_truth_ids", "ground_truth_context_ids", "qrels",
        "релевантные id", "релевантные документы", "эталонные id", "id релевантных документов",
        "正解ID", "関連ID", "関連文書ID", "正解文書ID",
    ),
    "context_urls": ("context_urls", "retrieved_urls", "chunk_urls"),
    "relevant_urls": (
        "relevant_urls", "relevant_url", "shown_url", "shown_urls", "confluence_url", "document_url", "doc_url",
        "page_url", "article_url", "expected_url", "expected_urls", "gold_url", "gold_urls", "ground_truth_url",
        "url документа", "ссылка на документ", "показанная ссылка",
        "表示URL", "文書URL", "正解URL",
    ),
    "lang": ("lang", "language", "locale", "язык", "言語"),
    "must_pass": ("must_pass", "critical", "обязательный", "обязательно", "критичный", "必須", "必須合格"),
    "should_abstain": (
        "should_abstain", "must_abstain", "unanswerable", "is_unanswerable", "is_impossible",
        "без ответа", "нет ответа", "回答不可", "回答不能",
    ),
    # Read into should_abstain, turned round.
    "answerable": ("answerable", "is_answerable", "has_answer", "есть ответ", "回答可能"),
    "thresholds": ("thresholds", "threshold", "пороги", "порог", "閾値", "しきい値"),
    "tags": ("tags", "tag", "теги", "тег", "метки", "タグ"),
    "session": (
        "session", "session_id", "conversation_id", "dialog_id", "dialogue_id", "thread_id", "chat_id",
        "сессия", "диалог", "セッション", "会話ID",
    ),
    "cluster": ("cluster", "cluster_id", "кластер", "クラスタ", "クラスター"),
    "metadata": ("metadata", "meta", "additional_metadata", "метаданные", "メタデータ"),
}  # fmt: skip

FIELDS = tuple(name for name in NAMES if name not in ("answerable", "metadata"))
"""The fields of a Question that a column can be mapped to; ``metadata.NAME`` is possible, too."""

_INPUTS = {"vars", "inputs", "input"}  # promptfoo, LangSmith
_OUTPUTS = {"outputs", "output"}
_REFERENCE_OUTPUTS = {"referenceoutputs", "referenceoutput"}
_OPENED = _INPUTS | _OUTPUTS | _REFERENCE_OUTPUTS
# Beside these names of deepeval's, ``context`` is the ideal context; elsewhere it is what was retrieved.
_DEEPEVAL = {"retrievalcontext", "actualoutput", "expectedoutput"}
_SAVED_BY_DEEPEVAL = {"input", "expectedoutput", "sourcefile", "toolscalled"}
# Words of their own that merely look like ours.
_NOT_MISSPELT = {"content", "contents", "document", "contest", "references_url", "label"}
_OUTPUT = re.compile(r"\[[^\]]+\] .*", re.DOTALL)
"""``[provider] prompt``: the header of the outputs in a CSV of promptfoo's."""
_THRESHOLD = re.compile(r"(?:thresholds?|порог|閾値|しきい値)[\s_.:\-]+(\S.*)", re.IGNORECASE)


@lru_cache(maxsize=4096)  # the same few names in every row
def normal(name: str) -> str:
    """A column name without case, spaces and separators."""
    return re.sub(r"[\s_.\-\u200b\ufeff]+", "", unicodedata.normalize("NFKC", name).casefold())


_FIELD_OF = {normal(name): target for target, names in NAMES.items() for name in names}


@dataclass(frozen=True, slots=True)
class Resolution:
    """What each column of a row is, by the file's own names.

    ``fields`` maps a column to our field, ``thresholds.METRIC`` or ``metadata.NAME``;
    ``problems`` says what is wrong with the names.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def flatten(cells: Mapping[str, Any], mapped: Mapping[str, str]) -> dict[str, Any]:
    """Cells with promptfoo's ``vars`` and LangSmith's ``inputs`` and ``outputs`` opened: ``inputs.question``.

    Objects that the caller's mapping reaches into by a dotted name are opened, too.
    """
    roots = {name.partition(".")[0] for name in mapped.values() if "." in name}
    known = _OPENED
    flat: dict[str, Any] = {}
    for name, value in cells.items():
        if isinstance(value, str) and value.startswith("{") and normal(name) in known:
            value = _opened(value)  # noqa: PLW2901 - LangSmith's CSV has its objects as JSON
        if isinstance(value, Mapping) and (normal(name) in known or name in roots):
            flat.update({f"{name}.{inner}": item for inner, item in value.items()})
        else:
            flat[name] = value
    return flat


def _opened(text: str) -> Any:
    """The object that a cell holds as JSON; the text itself where it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, dict) else text


def saved_by_deepeval(names: Sequence[str]) -> bool:
    """Whether these are the columns that ``EvaluationDataset.save_as`` of DeepEval writes."""
    return {normal(name) for name in names} >= _SAVED_BY_DEEPEVAL


def has_question(names: Sequence[str], mapped: Mapping[str, str]) -> bool:
    """Whether one of the names is the question's."""
    wanted = mapped.get("question")
    stripped = [name.strip() for name in names]
    if wanted is not None:
        return _find(wanted, stripped) is not None
    return any(_known(name, stripped) == "question" for name in stripped)


def resolve(names: Sequence[str], mapped: Mapping[str, str]) -> Resolution:
    """What the columns are; an explicit mapping wins over the table of names."""
    fields: dict[str, str] = {}
    problems: list[str] = []
    for ours, theirs in mapped.items():
        column = _find(theirs, names)
        if column is not None:
            fields[column] = ours
    taken = {*fields.values()}
    for name in names:
        if name in fields:
            continue
        target = _known(name, names)
        if target is None:
            likely = near_miss(name)
            if likely is not None:
                problems.append(
                    f"unknown column {name!r}: did you mean {likely!r}? "
                    f"Or map it: columns={{{_target(likely)!r}: {name!r}}}, "
                    f"or columns={{'metadata.{name}': {name!r}}} to keep it as it is"
                )
            target = f"metadata.{_inner(name)}"
        elif target in taken or (target == "answerable" and "should_abstain" in taken):
            target = f"metadata.{name}"
        fields[name] = target
    problems += _doubles(fields)
    return Resolution(fields, tuple(problems))


def _target(known: str) -> str:
    """The field of a name that :func:`near_miss` returned."""
    return _FIELD_OF.get(normal(known)) or f"thresholds.{known.partition('_')[2]}"


def _doubles(fields: Mapping[str, str]) -> Iterator[str]:
    """A message for each field that several columns claim."""
    claims: dict[str, list[str]] = {}
    for column, target in fields.items():
        claims.setdefault("should_abstain" if target == "answerable" else target, []).append(column)
    for target, columns in claims.items():
        if len(columns) > 1:
            shown = " and ".join(map(repr, columns))
            yield (
                f"columns {shown} both hold the {target}: remove one, "
                f"or say which it is: columns={{{target!r}: {columns[0]!r}}}"
            )


def _find(wanted: str, names: Sequence[str]) -> str | None:
    """The column that the caller named: exactly, or else by its normal form."""
    if wanted in names:
        return wanted
    return next((name for name in names if normal(name) == normal(wanted)), None)


def _known(name: str, names: Sequence[str]) -> str | None:
    """The field of a name in the table, with its neighbours in view; None where it is unknown."""
    if name.startswith("__"):  # promptfoo's __expected and the like are its own business
        return None
    plain = normal(name)
    if _OUTPUT.fullmatch(name) and {"Status", "Score", "Named Scores"} <= set(names):
        return "answer" if sum(_OUTPUT.fullmatch(other) is not None for other in names) == 1 else None
    if plain == "context":
        return "reference_contexts" if _DEEPEVAL & {normal(other) for other in names} else "contexts"
    if plain in _FIELD_OF:
        return _FIELD_OF[plain]
    if plain == "expect":  # of *.rag.yaml tests
        return "metadata.expect"
    if match := _THRESHOLD.fullmatch(name.strip()):
        return f"thresholds.{match[1].strip()}"
    root, dot, inner = name.partition(".")
    return _nested(normal(root), inner, names) if dot else None


def _nested(root: str, inner: str, names: Sequence[str]) -> str | None:
    """The field of a name inside ``vars``, ``inputs``, ``outputs`` or ``reference_outputs``."""
    if root not in _INPUTS | _OUTPUTS | _REFERENCE_OUTPUTS:
        return None
    target = _known(inner, names)
    if target != "answer" or root in _INPUTS:
        return target
    # The outputs of a LangSmith example are the right ones, unless those stand beside them.
    judged = any(normal(other.partition(".")[0]) in _REFERENCE_OUTPUTS for other in names)
    return "answer" if judged and root in _OUTPUTS else "reference"


def _inner(name: str) -> str:
    root, dot, inner = name.partition(".")
    return inner if dot and normal(root) in _INPUTS | _OUTPUTS | _REFERENCE_OUTPUTS else name


@lru_cache(maxsize=4096)  # rows of JSON lines repeat their names
def near_miss(name: str) -> str | None:
    """The known name that an unknown one is most likely a misspelling of, or None.

    Compared word by word, because ``question_type`` and ``reference_url`` are names of their own, however
    close they come to ``question`` and ``reference`` in letters.
    """
    inner = _inner(name)
    if inner.startswith("__") or normal(inner) in _NOT_MISSPELT:
        return None
    words = _words(inner)
    if len(words) > 1 and _close(words[0], "threshold"):
        return f"threshold_{'_'.join(words[1:])}"
    known = [other for names in NAMES.values() for other in names]
    alike = [other for other in known if _alike(words, _words(other))]
    joined = get_close_matches(normal(inner), [normal(other) for other in alike], n=1, cutoff=0.0)
    return next((other for other in alike if joined and normal(other) == joined[0]), None)


@lru_cache(maxsize=4096)  # the known names are compared with every unknown one
def _words(name: str) -> tuple[str, ...]:
    spaced = re.sub(r"(?<=[a-zа-яё0-9])(?=[A-ZА-ЯЁ])", " ", unicodedata.normalize("NFKC", name))
    return tuple(word for word in re.split(r"[\s_.\-]+", spaced.casefold()) if word)


def _alike(words: Sequence[str], others: Sequence[str]) -> bool:
    if len(words) == len(others):
        return all(map(_close, words, others))
    # Words run together, as "groundtruht"; one of the two sides then is a single word.
    if 1 not in (len(words), len(others)):
        return False
    if others and words and len(words) > len(others) and _close(words[0], others[0]):
        return False
    return len("".join(words)) >= 8 and _close("".join(words), "".join(others))


def _close(word: str, other: str) -> bool:
    if word == other or word.rstrip("s") == other.rstrip("s"):
        return True
    if min(len(word), len(other)) < 4 or abs(len(word) - len(other)) > 2:
        return False
    return SequenceMatcher(None, word, other, autojunk=False).ratio() >= 0.8
