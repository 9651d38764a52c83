import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.judge.local import Part, answer_parts, is_abstention, split_claims


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        (
            "Hello! According to the documentation, refunds take 5 days. You need a receipt. Hope this helps!",
            ["Refunds take 5 days.", "You need a receipt."],
        ),
        ("The steps are as follows:\n1. Open the menu.\n2. Choose Save.", ["Open the menu.", "Choose Save."]),
        (
            "The electric oven heats up in ten minutes, and it cools down slowly in thirty minutes.",
            ["The electric oven heats up in ten minutes", "it cools down slowly in thirty minutes."],
        ),
        ("Mario and Zelda are popular games.", ["Mario and Zelda are popular games."]),
        ("I'm not sure, but the shop opens at nine.", ["The shop opens at nine."]),
        ("Согласно документации, возврат занимает 5 дней. Обращайтесь!", ["Возврат занимает 5 дней."]),
        ("はい、返金には5日かかります。お気軽にお問い合わせください。", ["返金には5日かかります。"]),
        ("Would you like to know more?", []),
        # Where it says so is no part of what it says.
        ("The ferry leaves at 8, according to the provided context.", ["The ferry leaves at 8."]),
        ("The ferry leaves at 8, as stated in the second document.", ["The ferry leaves at 8."]),
        ("Tickets cost 20 euros, which is mentioned in chunk 2.", ["Tickets cost 20 euros."]),
        ("Паром отходит в 8:00, как указано в документе.", ["Паром отходит в 8:00."]),
        ("Билет стоит 20 евро согласно предоставленному тексту.", ["Билет стоит 20 евро."]),
        ("フェリーは8時に出る、と資料に書かれています。", ["フェリーは8時に出る。"]),
        ("As stated in the document.", []),
        ("The documents state that tickets cost 20 euros.", ["Tickets cost 20 euros."]),
        ("In the first document it says that tickets cost 20 euros.", ["Tickets cost 20 euros."]),
        ("According to the travel policy, tickets cost 20 euros.", ["Tickets cost 20 euros."]),
        ("Согласно правилам, билет стоит 20 евро.", ["Билет стоит 20 евро."]),
        ("規約によると、料金は20ユーロです。", ["料金は20ユーロです。"]),
        ("Как следует из текста, билет стоит 20 евро.", ["Билет стоит 20 евро."]),
        ("The library lends documents on paper.", ["The library lends documents on paper."]),
        # What something costs per document or is based on is what is said.
        ("A copy costs 5 euros per document.", ["A copy costs 5 euros per document."]),
        ("The decision is based on the documents.", ["The decision is based on the documents."]),
        ("Salaries are set according to the contract.", ["Salaries are set according to the contract."]),
        ("Решение принято на основании документов.", ["Решение принято на основании документов."]),
        ("The ferry leaves at 8, based on the documents.", ["The ferry leaves at 8."]),
    ],
)
def test_statements_are_kept_and_courtesies_are_not(answer: str, claims: list[str]) -> None:
    assert split_claims(answer) == claims


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("The pass costs 12 euros. Tickets were free in May. something more?", "claim claim question"),
        ("The pass costs 12 euros, right?", "claim question"),
        ("The pool opens at nine - do you want a ticket?", "claim question"),
        ("Did you know that the pass costs 12 euros?", "claim"),
        ("Do you mean Mr. Brown?", "question"),
        ("When does it open, and where is it?", "question"),
        ("High tides come twice a day.", "claim"),
        ("Surely the pass costs 12 euros.", "claim"),
        ("Thank you for asking, the pass costs 12 euros.", "claim"),
        ("Thank you for asking!", "greeting"),
        ("Feel free to write to desk@example.org.", "claim"),
        ("The pass costs 12 euros:\n- children pay nothing here", "claim claim"),
        ("The 3 steps are as follows:\n- Open the red menu.", "lead-in claim"),
        (
            "Hope this helps! The text does not mention the price. Shall I look elsewhere?",
            "greeting refusal question",
        ),
        ("Билет стоит 12 евро. что-то ещё?", "claim question"),
        ("Билет стоит 12 евро, верно?", "claim question"),
        ("Знаете ли вы, что билет стоит 12 евро?", "claim"),
        ("入場料は12ユーロですが、他にご質問はありますか？", "claim question"),
        ("入場料は12ユーロですので、お気軽にお問い合わせください。", "claim"),
        ("入場料が12ユーロであることをご存じですか？", "claim"),
    ],
)
def test_each_part_of_an_answer_is_told(answer: str, kinds: str) -> None:
    assert [part.kind for part in answer_parts(answer)] == kinds.split()


@pytest.mark.parametrize(
    ("answer", "question", "claims"),
    [
        ("Yes, dogs stay free.", "Can I bring a cat?", ["Yes: Can I bring a cat?", "Dogs stay free."]),
        ("No it does not.", "Does the lift work?", ["no: Does the lift work?"]),
        ("It is.", "Is the lift new?", ["yes: Is the lift new?"]),
        ("You can't.", "May I smoke here?", ["no: May I smoke here?"]),
        ("No dogs are allowed.", "Are dogs allowed?", ["No dogs are allowed."]),
        ("Sure! The lift works.", "Where is the lift?", ["The lift works."]),
        ("Нет, лифт старый.", "Лифт новый?", ["Нет: Лифт новый?", "Лифт старый."]),
        ("はい、できます。", "予約できますか？", ["はい: 予約できますか？"]),
        ("できません。", "予約できますか？", ["いいえ: 予約できますか？"]),
    ],
)  # fmt: skip
def test_a_yes_or_no_claims_what_was_asked(answer: str, question: str, claims: list[str]) -> None:
    assert split_claims(answer, question) == claims


@pytest.mark.parametrize(
    ("answer", "claim"),
    [
        ("The ferry leaves at 8, but I have no information about the return trip.", "The ferry leaves at 8"),
        ("The ferry leaves at 8; however, the text does not say when it returns.", "The ferry leaves at 8"),
        (
            "Although the documents do not mention a return trip, the ferry leaves at 8.",
            "The ferry leaves at 8.",
        ),
        ("Unfortunately, I can't find the price, but the ferry leaves at 8.", "the ferry leaves at 8."),
        ("Паром отходит в 8:00, но в документах не сказано, когда он возвращается.", "Паром отходит в 8:00"),
        ("Хотя в документах нет информации о возвращении, паром отходит в 8:00.", "Паром отходит в 8:00."),
        ("フェリーは8時に出発しますが、帰りの時刻は資料に書かれていません。", "フェリーは8時に出発しますが"),
    ],
)
def test_what_is_not_known_beside_a_claim_is_told_apart(answer: str, claim: str) -> None:
    parts = answer_parts(answer, "When does the ferry leave?")
    assert sorted(part.kind for part in parts) == ["claim", "refusal"]
    assert [part.text for part in parts if part.kind == "claim"] == [claim]


def test_what_is_said_of_the_documents_is_no_claim_beside_a_refusal() -> None:
    [part] = answer_parts("The documents describe the ferry, but I could not find when it leaves.")
    assert part.kind == "refusal"


def test_a_yes_to_no_question_is_a_greeting() -> None:
    assert answer_parts("Yes.") == [Part("Yes.", "greeting")]


def test_a_bare_yes_is_read_with_its_question() -> None:
    assert split_claims("Yes.", "Is the pool heated?") == ["Yes: Is the pool heated?"]
    assert split_claims("Нет.", "Есть ли парковка?") == ["Нет: Есть ли парковка?"]
    assert split_claims("Yes.") == []


ABSTENTIONS = [
    "I don't know.",
    "I'm sorry, but I cannot answer that question.",
    "The documentation does not mention a refund period.",
    "There is no information about this in the provided context.",
    "Я не знаю.",
    "В документации нет ответа на этот вопрос.",
    "К сожалению, в тексте это не указано.",
    "分かりません。",
    "提供された文書には記載がありません。",
    "申し訳ありませんが、お答えできません。",
]


@pytest.mark.parametrize("answer", ABSTENTIONS)
def test_an_abstention_is_told_and_makes_no_claim(answer: str) -> None:
    assert is_abstention(answer)
    assert split_claims(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "The warranty is two years.",
        "I don't know the price, but the warranty covers two full years of use.",
        "Refunds are not possible after 30 days.",
        "Возврат после 30 дней невозможен.",
        "30日を過ぎると返品できません。",
    ],
)
def test_an_answer_is_no_abstention(answer: str) -> None:
    assert not is_abstention(answer)


@given(st.text(max_size=100), st.text(max_size=30))
def test_any_text_can_be_split(answer: str, question: str) -> None:
    claims = split_claims(answer, question)
    assert all(claim.strip() for claim in claims)
    assert len(set(claims)) == len(claims)


@pytest.mark.parametrize(
    ("answer", "claim"),
    [
        ("The warranty lasts two years. Have a nice day!", "The warranty lasts two years."),
        ("Гарантия составляет два года. Хорошего дня!", "Гарантия составляет два года."),
        ("保証期間は2年間です。良い一日をお過ごしください。", "保証期間は2年間です。"),
    ],
)
def test_a_farewell_is_no_claim(answer: str, claim: str) -> None:
    assert list(split_claims(answer)) == [claim]
