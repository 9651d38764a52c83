from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.text import tokens

ASCII = st.text(st.characters(max_codepoint=127), max_size=80)


@given(ASCII)
def test_ascii_gives_the_tokens_of_rouge_score(text: str) -> None:
    from rouge_score import tokenizers

    assert tokens(text) == tokenizers.DefaultTokenizer(use_stemmer=False).tokenize(text)


@given(st.text(max_size=60))
def test_tokens_are_casefolded_and_never_empty(text: str) -> None:
    found = tokens(text)
    assert all(found)
    assert found == tokens(" ".join(found))


def test_words_of_any_alphabet_stay_whole() -> None:
    assert tokens("Naïve СЛОВО_два, Ёлка") == ["naïve", "слово", "два", "ёлка"]


def test_composed_and_decomposed_letters_are_one() -> None:
    assert tokens("йод") == tokens("и\u0306од") == ["йод"]


def test_scripts_without_spaces_give_one_token_a_character() -> None:
    assert tokens("東京タワー2号") == ["東", "京", "タ", "ワ", "ー", "2", "号"]
    assert tokens("ｶﾞｽ") == ["ガ", "ス"]
    assert tokens("ไทย") == ["ไ", "ท", "ย"]


def test_full_width_letters_are_plain_ones() -> None:
    assert tokens("ＡＢＣ１２３") == ["abc123"]
