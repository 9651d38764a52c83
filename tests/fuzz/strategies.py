"""What judges, services and question files may hold: mostly almost right."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from hypothesis import strategies as st

# Letters that break naive code: quotes, braces, separators, line ends of all kinds, marks, other scripts.
NASTY = st.sampled_from(
    [
        *"{}[]\"'`\\,:;|\t\n\r\x00\x1b\x85\ufeff\u2028\u202e\u200b\u0301\ufffd<>&=+-@#%0123456789.eE",
        "да",
        "はい",
        "ё",
        "É",
        "😀",
        "NaN",
        "null",
        "true",
        "```json\n",
        "```",
        "<think>",
        "</think>",
        "{}",
        '"verdict": ',
    ]
)
texts = st.one_of(st.text(max_size=40), st.lists(NASTY, max_size=30).map("".join))
words = st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=20)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 100),
    st.floats(),
    texts,
    st.sampled_from(["0.8", "80%", "yes", "1e400"]),
)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)


def dumped(value: Any) -> str:
    """JSON, or what Python calls so: NaN and Infinity are let through."""
    return json.dumps(value, ensure_ascii=False)


# Replies of a judge with two grades

KEYS = ("answer_correctness", "groundedness")
grades = st.one_of(st.floats(0, 1), st.sampled_from([0, 1, 0.0, 1.0, 0.7, -0.0]))


@st.composite
def verdicts(draw: st.DrawFn, values: st.SearchStrategy[Any] = grades) -> dict[str, Any]:
    """The object that is asked for."""
    found = {key: draw(values) for key in KEYS}
    if draw(st.booleans()):
        found["error_message"] = draw(texts)
    return found


@st.composite
def wrapped(draw: st.DrawFn, inner: str) -> str:
    """The object as models send it."""
    match draw(st.integers(0, 7)):
        case 0:
            return inner
        case 1:
            return f"```json\n{inner}\n```"
        case 2:
            return f"{draw(texts)}\n{inner}\n{draw(texts)}"
        case 3:
            return f"<think>{draw(texts)}</think>{inner}"
        case 4:
            return f"{draw(texts)}</think>\n{inner}"
        case 5:
            return f'{{"result": {inner}}}'
        case 6:
            return f"[{inner}]"
        case _:
            return dumped(inner)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """Cut, with letters taken out, put in, or a part said twice."""
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(text)))
        match draw(st.integers(0, 3)):
            case 0:
                text = text[:place]
            case 1:
                text = text[:place] + text[place + 1 :]
            case 2:
                text = text[:place] + draw(NASTY) + text[place:]
            case _:
                text = text[:place] + text
    return text


@st.composite
def replies(draw: st.DrawFn) -> str:
    """Anything from the right object to noise."""
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return draw(texts)
    values = grades if kind == 1 else scalars
    first = draw(wrapped(dumped(draw(verdicts(values)))))
    if kind == 4:
        first += draw(texts) + draw(wrapped(dumped(draw(verdicts(values)))))
    return draw(damaged(first))


# Question files

names = st.sampled_from(
    ["question", "Question", "вопрос", "質問", "user_input", "reference", "answer", "contexts", "relevant_ids", "id",
     "tags", "must_pass", "thresholds", "metadata", "qeustion", "extra", ""]
)  # fmt: skip
rows = st.lists(st.dictionaries(names, st.one_of(json_values, texts, words), max_size=5), max_size=5)


@st.composite
def question_files(draw: st.DrawFn) -> tuple[str, bytes]:
    """A file name and its bytes: right, almost right, or noise."""
    suffix = draw(st.sampled_from(["csv", "tsv", "jsonl", "json", "yaml"]))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return f"q.{suffix}", draw(st.binary(max_size=80))
    table = draw(rows)
    if suffix in ("csv", "tsv"):
        text = _csv(table, draw(st.sampled_from([",", ";", "\t", "|"])))
    elif suffix == "jsonl":
        text = "\n".join(map(dumped, table))
    else:
        text = dumped(table)
    if kind == 1:
        text = draw(damaged(text))
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1251", "cp932"]))
    return f"q.{suffix}", text.encode(
        encoding, "replace" if not encoding.startswith("utf") else "surrogatepass"
    )


def _csv(table: list[dict[str, Any]], delimiter: str) -> str:
    columns = list(dict.fromkeys(name for row in table for name in row)) or ["question"]
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(columns)
    writer.writerows(
        [value if isinstance(value := row.get(name, ""), str) else dumped(value) for name in columns]
        for row in table
    )
    return file.getvalue()


# Samples

samples_columns = st.fixed_dictionaries(
    {"question": texts},
    optional={
        "answer": texts,
        "reference": texts,
        "contexts": st.lists(texts, max_size=4),
        "reference_contexts": st.lists(texts, max_size=3),
        "relevant_ids": st.one_of(
            st.lists(st.sampled_from("abcde"), max_size=4),
            st.dictionaries(st.sampled_from("abcde"), st.one_of(st.integers(-1, 3), st.floats()), max_size=4),
        ),
        "lang": st.sampled_from(["en", "ru", "ja", "zh", "th", "xx"]),
    },
)
