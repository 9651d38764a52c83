"""The judge's replies on their way to the page: compressed, since they are most of a large report, and
unpacked by the page's script for the question that is looked at.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_ragbench.report.rows import Row
from pytest_ragbench.report.writing import as_dict

TOGETHER = 100
"""So many questions share a pack; the script knows this number too."""


def packs(rows: Sequence[Row]) -> list[str]:
    """Base64 of deflated JSON, each of a hundred questions: a list a question, in it one a score, in it the
    replies. Empty where no score has any.
    """
    # What they replied to is not shown, and would be most of the page.
    told = [
        [[as_dict(replace(reply, prompt=())) for reply in score.replies] for _, score in row.scores]
        for row in rows
    ]
    if not any(replies for question in told for replies in question):
        return []
    return [_pack(told[place : place + TOGETHER]) for place in range(0, len(told), TOGETHER)]


def _pack(told: Sequence[Any]) -> str:
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    # Half of a surrogate pair isn't UTF-8: as elsewhere, its escape is shown.
    return base64.b64encode(zlib.compress(text.encode("utf-8", "backslashreplace"), 6)).decode()
