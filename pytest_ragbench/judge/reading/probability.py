"""P(yes) from the log probabilities of a reply of one word.

``P(yes) = p(yes) / (p(yes) + p(no))`` over the top tokens at the place where the two words part, in the
language's own words.
"""

from __future__ import annotations

from math import exp

from pytest_ragbench.clean import one_line
from pytest_ragbench.judge.chat import NO_LOGPROBS_HINT
from pytest_ragbench.judge.completions import RawReply, Token
from pytest_ragbench.judge.rendering import yes_and_no
from pytest_ragbench.judge.tasks.one_word import YesChance
from pytest_ragbench.languages import language
from pytest_ragbench.model.errors import JudgeError

MIN_MASS = 0.1
"""What yes and no must have together, of 1: below it the model was about to say something else."""


def verdict_tokens(lang: str) -> int:
    """To how many tokens a reply in one word is limited, in the language of the prompt."""
    return language(lang).script.verdict_tokens


def read_word(reply: RawReply, lang: str) -> YesChance:
    """What a reply's log probabilities say.

    Raises
    ------
    JudgeError
        There are none (code ``"no_logprobs"``), they are not those of the answer (``"only_reasoning"``,
        ``"empty"``), or not about yes and no (``"no_verdict"``).
    """
    content = (reply["content"] or "").strip()
    if where := reply.get("thought_in"):
        # Servers that split thoughts from the answer still list the tokens of both.
        raise JudgeError(
            f"the judge's model thinks before it answers ({where}), and the log probabilities are of its reasoning: "
            'turn its thinking off, or set verdicts = "json" for the metric',
            code="only_reasoning",
            raw=reply["content"],
        )
    positions = reply.get("logprobs")
    if not positions:
        raise JudgeError(
            f"the judge's reply has no log probabilities, so there is no P(yes). {NO_LOGPROBS_HINT}",
            code="no_logprobs",
            raw=reply["content"],
        )
    if not content or not _is_written(positions, content):
        raise JudgeError(
            f"the log probabilities are not those of the judge's answer, which is {one_line(content, 40)!r}. "
            f"{NO_LOGPROBS_HINT}",
            code="no_logprobs" if content else "empty",
            raw=reply["content"],
        )
    yes_word, no_word = yes_and_no(lang)
    written = b""  # what was written before this position, with which the tokens go on
    for place, tokens in enumerate(positions):
        # A token that begins both words decides nothing yet.
        yes = no = both = 0.0
        for token in tokens:
            text = written + _bytes(token)
            is_yes, is_no = _begins(text, yes_word), _begins(text, no_word)
            chance = min(exp(min(token["logprob"], 0.0)), 1.0)
            yes += chance if is_yes and not is_no else 0.0
            no += chance if is_no and not is_yes else 0.0
            both += chance if is_yes and is_no else 0.0
        if place + 1 < len(positions) and both > yes + no:
            written += _bytes(tokens[0])
            continue
        # Of such a remainder the ratio would be noise with two decimals.
        if yes + no < MIN_MASS:
            said = ", ".join(repr(one_line(token["token"], 20)) for token in tokens[:5])
            raise JudgeError(
                f"the judge was asked for {yes_word} or {no_word} and gave the two {yes + no:.2g} of its probability; "
                f'its first choices: {said or "none"}. Ask another model, or set verdicts = "json" for the metric',
                code="no_verdict",
                raw=reply["content"],
            )
        return YesChance(probability=yes / (yes + no), mass=min(yes + no, 1.0))
    raise AssertionError("unreachable: the last position is read or refused")


def _is_written(positions: list[list[Token]], content: str) -> bool:
    """Whether the tokens are those that the content begins with, as far as they are whole letters."""
    told = b"".join(_bytes(tokens[0]) for tokens in positions if tokens)
    try:
        text = told.decode("utf-8").strip()
    except UnicodeDecodeError:
        return True
    return content.startswith(text) or text.startswith(content)


def _bytes(token: Token) -> bytes:
    raw = token["bytes"]
    if raw is not None:
        return bytes(raw)
    # Tokenizers' own marks of a space (SentencePiece, GPT-2).
    return token["token"].replace("\u2581", " ").replace("\u0120", " ").encode("utf-8", "surrogatepass")


def _begins(text: bytes, word: str) -> bool:
    """Whether ``text`` is the word, a beginning of it (or nothing but space before it), or the word and no letter
    after it. In any case; cut within a letter, too.
    """
    bare = text.lstrip(b" \t\r\n").lstrip(b"\xe2\x96\x81").replace(b"\xe3\x80\x80", b"")
    if not bare:
        return True
    for form in (word, word.lower(), word.upper()):
        whole = form.encode()
        if whole.startswith(bare):
            return True
        if bare.startswith(whole):
            rest = bare[len(whole) :].decode("utf-8", "replace")
            return not rest[:1].isalnum()
    return False
