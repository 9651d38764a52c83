"""Sentences of the world: a paragraph for each script, cut into what its readers would call sentences.

Where nobody here reads the script well, the paragraph is of plain words and checks the marks alone.
"""

from __future__ import annotations

import pytest

from pytest_ragbench import RagSample, score
from pytest_ragbench.text import is_question, sentences

PARAGRAPHS: dict[str, list[str]] = {
    "Latin, German": ["„Er kam im Mai.“", "Dann ging Dr. Weber.", "Warum?"],
    "Latin, French": ["Il a dit : « Je viens. »", "Puis il est parti.", "Pourquoi ?"],
    "Latin, Spanish": ["¿Cuánto cuesta?", "Cuesta 3.5 euros.", "¡Es barato!"],
    "Latin, Vietnamese": ["Thời hạn đổi trả là 30 ngày.", "Giao hàng miễn phí."],
    "Cyrillic, Ukrainian": ["Повернення можливе протягом 30 днів.", "Доставка безкоштовна."],
    "Cyrillic, Kazakh": ["Қайтару мерзімі 30 күн.", "Жеткізу тегін."],
    "Greek": ["Πόσο διαρκεί η εγγύηση;", "Διαρκεί 24 μήνες.", "Η αποστολή είναι δωρεάν."],
    "Armenian": ["Վերադարձի ժամկետը 30 օր է։", "Առաքումը անվճար է։", "Որտե՞ղ է խանութը։"],
    "Georgian": ["K7 მუშაობს 24 საათი.", "მიწოდება უფასოა.", "რატომ?"],
    "Hebrew": ["תקופת ההחזרה היא 30 יום.", "המשלוח חינם!"],
    "Arabic": ["مدة الإرجاع 30 يومًا.", "هل الشحن مجاني؟", "نعم، الشحن مجاني."],
    "Persian": ["مهلت بازگشت ۳۰ روز است.", "آیا ارسال رایگان است؟", "بله."],
    "Urdu": ["واپسی کی مدت ۳۰ دن ہے۔", "قیمت ۳۔۵ ڈالر ہے۔", "ترسیل مفت ہے۔"],
    "Syriac": ["ܫܠܡܐ ܠܟܘܢ܀", "ܐܢܐ ܟܬܒܬ܂"],
    "Thaana": ["މިއީ ދިވެހި ބަހެވެ.", "ކިހިނެއްތަ؟", "ރަނގަޅު."],
    "N'Ko": ["ߒ ߓߘߊ߫ ߣߊ߬߹", "ߌ ߕߐ߮ ߦߋ߫ ߘߌ߬."],
    "Devanagari, Hindi": ["वापसी की अवधि 30 दिन है।", "शिपिंग मुफ़्त है।", "क्या यह सच है?"],
    "Devanagari, verse": ["धर्मक्षेत्रे कुरुक्षेत्रे॥", "समवेता युयुत्सवः॥"],
    "Bengali": ["ফেরতের সময়সীমা ৩০ দিন।", "শিপিং বিনামূল্যে।"],
    "Gurmukhi": ["ਵਾਪਸੀ ਦੀ ਮਿਆਦ 30 ਦਿਨ ਹੈ।", "ਡਿਲੀਵਰੀ ਮੁਫ਼ਤ ਹੈ।"],
    "Gujarati": ["પરત કરવાની મુદત 30 દિવસ છે.", "ડિલિવરી મફત છે."],
    "Odia": ["ଫେରସ୍ତ ସମୟ ୩୦ ଦିନ।", "ଡେଲିଭରି ମାଗଣା।"],
    "Tamil": ["திரும்ப அளிக்கும் காலம் 30 நாட்கள்.", "விநியோகம் இலவசம்."],
    "Telugu": ["వాపసు గడువు 30 రోజులు.", "డెలివరీ ఉచితం."],
    "Kannada": ["ಹಿಂತಿರುಗಿಸುವ ಅವಧಿ 30 ದಿನಗಳು.", "ವಿತರಣೆ ಉಚಿತ."],
    "Malayalam": ["മടക്കി നൽകാനുള്ള കാലാവധി 30 ദിവസമാണ്.", "ഡെലിവറി സൗജന്യമാണ്."],
    "Sinhala": ["ආපසු භාරදීමේ කාලය දින 30 කි.", "බෙදාහැරීම නොමිලේ."],
    "Ol Chiki": ["ᱱᱚᱣᱟ ᱫᱚ ᱥᱟᱨᱤ ᱠᱟᱱᱟ᱾", "ᱪᱮᱫ ᱢᱮᱱᱟᱜᱼᱟ᱾"],
    "Meetei Mayek": ["ꯃꯁꯤ ꯑꯐꯕꯅꯤ꯫", "ꯃꯍꯥꯛ ꯂꯥꯛꯂꯦ꯫"],
    "Thai": ["ระยะเวลาคืนสินค้าคือ 30 วันและเหมือนกันสำหรับลูกค้าทุกคน", "จัดส่งฟรีทุกวัน"],
    "Lao": ["ໄລຍະເວລາສົ່ງຄືນແມ່ນ 30 ວັນສຳລັບລູກຄ້າທຸກຄົນ", "ການຈັດສົ່ງແມ່ນຟຣີ"],
    "Khmer": ["រយៈពេលប្រគល់មកវិញគឺ ៣០ ថ្ងៃ។", "ការដឹកជញ្ជូនគឺឥតគិតថ្លៃ៕"],
    "Burmese": ["ပြန်ပေးရန် ကာလသည် ရက် ၃၀၊ လူတိုင်းအတွက် အတူတူ ဖြစ်သည်။", "ပို့ဆောင်ခ အခမဲ့ ဖြစ်သည်။"],
    "Tibetan": ["འདི་ནི་དཔེ་ཆ་རེད།", "ང་སློབ་ཕྲུག་ཡིན།"],
    "Mongolian": ["ᠡᠨᠡ ᠨᠣᠮ ᠮᠥᠨ᠃", "ᠪᠢ ᠢᠷᠡᠪᠡ᠃"],
    "Ethiopic": ["የመመለሻ ጊዜው 30 ቀን ነው።", "ማድረስ ነጻ ነው፡፡", "ለምን፧"],
    "Javanese": ["ꦲꦤꦕꦫꦏ꧉", "ꦢꦠꦱꦮꦭ꧉"],
    "Balinese": ["ᬳᬦᬘᬭᬓ᭟", "ᬤᬢᬲᬯᬮ᭟"],
    "Canadian Syllabics": ["ᐃᓄᒃᑎᑐᑦ ᐅᖃᐅᓯᖅ᙮", "ᐊᐃᓐᖓᐃ᙮"],
    "Cherokee": ["ᎣᏏᏲ ᎢᏧᎳ.", "ᏩᏙ ᎯᎠ."],
    "Tifinagh": ["ⴰⵣⵓⵍ ⴼⵍⵍⴰⵡⵏ.", "ⵎⴰⵏⵉ ⵜⵍⵍⵉⴷ?"],
    "Vai": ["ꕙꔤ ꕚꕌ꘎", "ꖸ ꔰꕩ꘎"],
    "Lisu": ["ꓡꓲ ꓢꓴ꓿", "ꓙꓳ ꓠꓬꓲ꓿"],
    "Adlam": ["𞤀𞤣𞤤𞤢𞤥 𞤤𞤢𞤱𞤤.", "𞤃𞤭 𞤱𞤢𞤪𞤭.", "𞤖𞤮𞤤𞤮?"],
    "Coptic": ["ⲁⲛⲟⲕ ⲡⲉ\u2cf9", "ⲛⲧⲟⲕ ⲡⲉ\u2cfa"],
    "Hangul": ["환불은 30일 이내에 가능합니다.", "배송은 무료입니다.", "정말인가요?"],
    "Han": ["退货期限为30天。", "免费送货！", "真的吗？"],
    "Kana": ["返品は30日以内です。", "送料は無料です。"],
    "Kana, wide full stop": ["値は３．１４である．", "次に進む．"],
}
UNSPACED = {"Han", "Kana", "Kana, wide full stop", "Tibetan"}


@pytest.mark.parametrize("script", PARAGRAPHS)
def test_a_paragraph(script: str) -> None:
    expected = PARAGRAPHS[script]
    assert sentences(("" if script in UNSPACED else " ").join(expected)) == expected


@pytest.mark.parametrize("script", [name for name in PARAGRAPHS if name not in UNSPACED])
def test_a_line_is_a_sentence_too(script: str) -> None:
    assert sentences("\n".join(PARAGRAPHS[script])) == PARAGRAPHS[script]


def test_thirty_scripts_are_tried() -> None:
    assert len({name.partition(",")[0] for name in PARAGRAPHS}) >= 40


@pytest.mark.parametrize(
    "text",
    [
        "แดง เขียว ดำ",  # an enumeration
        "ส่งคืนได้ภายใน 30 วัน",
        "เด็กเล็กต่าง ๆ ชอบเล่นที่สวนสาธารณะ",
        "ร้านเปิดทุกวันทำการของเรา และปิดในวันหยุดนักขัตฤกษ์",
        "Τιμή 3,5 ευρώ· δωρεάν αποστολή",
        "ပစ္စည်း၊ ဈေးနှုန်း၊ ကာလ",
        "קוראים לו ד. כהן",
        "डॉ. शर्मा और प्रो. वर्मा आए।",
    ],
)
def test_what_ends_no_sentence(text: str) -> None:
    assert sentences(text) == [text]


@pytest.mark.parametrize(("before", "after", "ends"), [(6, 6, True), (5, 9, False), (9, 5, False)])
def test_between_two_spaces_of_thai_a_sentence_has_six_letters(before: int, after: int, ends: bool) -> None:
    parts = ["ก" * before, "ข" * after]
    assert sentences(" ".join(parts)) == (parts if ends else [" ".join(parts)])


def test_of_three_parts_in_thai_each_is_measured() -> None:
    long, short = "ก" * 20, "ข" * 5
    assert sentences(f"{long} {long} {long}") == [long, long, long]
    assert sentences(f"{long} {short} {long}") == [f"{long} {short}", long]


@pytest.mark.parametrize(
    "text",
    [
        "Why?",
        "なぜ？",
        "هل الشحن مجاني؟",
        "Πόσο;",
        "Πόσο\u037e",
        "Որտե՞ղ է խանութը։",
        "ለምን፧",
        "“Really?”",
        "⁇",
    ],
)
def test_a_question(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", ["Yes.", "It ends;", "Ναι.", "Այո։", "है।", ""])
def test_no_question(text: str) -> None:
    assert not is_question(text)


@pytest.mark.parametrize(
    ("said", "invented"),
    [
        ("ফেরতের সময়সীমা ৩০ দিন এবং এটি সবার জন্য একই।", "শিপিং বিনামূল্যে।"),
        ("वापसी की अवधि 30 दिन है और यह सबके लिए समान है।", "शिपिंग मुफ़्त है।"),
        ("واپسی کی مدت 30 دن ہے اور یہ سب کے لیے یکساں ہے۔", "ترسیل مفت ہے۔"),
        ("Վերադարձի ժամկետը 30 օր է և նույնն է բոլորի համար։", "Առաքումը անվճար է։"),
        ("የመመለሻ ጊዜው 30 ቀን ነው።", "ማድረስ ነጻ ነው።"),
        ("រយៈពេលប្រគល់មកវិញគឺ ៣០ ថ្ងៃ។", "ការដឹកជញ្ជូនគឺឥតគិតថ្លៃ។"),
        ("ပြန်ပေးရန် ကာလသည် ရက် ၃၀ ဖြစ်သည်။", "ပို့ဆောင်ခ အခမဲ့ ဖြစ်သည်။"),
        ("ระยะเวลาคืนสินค้าคือ 30 วันสำหรับลูกค้าทุกคน", "จัดส่งฟรีทุกวัน"),
        ("დაბრუნების ვადა 30 დღეა K7 მოდელისთვის.", "მიწოდება უფასოა."),
    ],
)
def test_an_invented_last_sentence_is_a_claim_of_its_own(said: str, invented: str) -> None:
    sample = RagSample("30?", f"{said} {invented}", [said])
    found = score("faithfulness", sample, judge="local")
    assert [finding.ok for finding in found.evidence] == [True, False]
    assert 0.4 < found.value < 0.7
