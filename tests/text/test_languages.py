import pytest

from pytest_ragbench.text import detect_language, stem


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The warranty is two years.", "en"),
        ("Гарантия — два года, API v2.", "ru"),
        ("Гарантія діє два роки.", "uk"),
        ("保証は2年間です。", "ja"),
        ("保修期为两年。", "zh"),
        ("JSON APIを使います", "ja"),
        ("Die Garantie gilt für zwei Jahre und ist nicht übertragbar.", "und"),
        ("보증 기간은 2년입니다", "ko"),
        ("1234 !?", "und"),
        ("", "und"),
    ],
)
def test_language_by_script_and_small_words(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize(
    "forms",
    [
        "refund refunds refunded refunding",
        "study studies studied",
        "rise rose risen",
        "stop stopped stopping",
        "договор договора договоры договором",
        "новая новой новую",
        "оплатил оплатила оплатили",
    ],
)
def test_forms_of_a_word_share_a_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


def test_other_scripts_are_left_alone() -> None:
    assert stem("東京") == "東京"
    assert stem("x86") == "x86"
