"""Word lists of the local judge: small, closed classes only (function words, numerals, opposites).

All forms are casefolded; ё is written е. Lists are data: a change here needs a new ``VERSION``.
"""

# ruff: noqa: E501, SIM905

from __future__ import annotations

from pytest_ragbench.text.stems import stem

STOP_EN = frozenset(
    "a an the and or but so if then than that this these those there here it its it's i me my we us our you your he him his "
    "she her hers they them their who whom whose which what when where why how is am are was were be been being do does did "
    "done have has had having will would shall should can could may might must of in on at by for with from to into onto as "
    "about over under between through during up down out off again very too also just only own same such s t d ll m re ve "
    "don doesn didn isn aren wasn weren won't not no nor n never none cannot any some all each every both more most other "
    "yes well oh ok okay please however therefore thus while because since until whether while upon via per within without "
    "one ones thing things way many much lot lots even still yet already always often sometimes usually called "
    "known additionally especially generally typically specifically particularly like various "
    "example instance overall also furthermore moreover thus hence etc actually really quite".split()
)
STOP_RU = frozenset(
    "и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее мне было вот от меня еще нет о "
    "из ему теперь когда даже ну ли если уже или ни быть был него до вас нибудь вам ведь там потом себя ничего ей может они "
    "тут где есть надо ней для мы тебя их чем была сам чтоб без будто чего раз тоже себе под будет ж тогда кто этот того "
    "потому этого какой ним здесь этом мой тем чтобы нее были куда зачем всех можно при об другой хоть после над больше тот "
    "через эти нас про них какая много разве эту моя свою этой перед иногда том такой им более всегда конечно всю между это "
    "эта эти этих которая который которые которого которой которых которую которым котором также является являются являлся "
    "было будут быть свой своей своего своих из-за однако поэтому хотя пока лишь например то кроме особенно обычно также примерно около различные различных".split()
)
# Hiragana (and a few others) that carry grammar and no content; taken off a run longest first.
GRAMMAR_JA = sorted(
    "が を に へ と で も は の や か ね よ な だ た て から まで より ほど など だけ のみ しか さえ ばかり こそ でも とも には では とは への との "
    "からの までの での について によって により による に対して に関して として において における にとって です ます でした ました ません "
    "ませんでした である であり であった でいる ている ていた ています ていました てある てあり てあります であります した して する します され される "
    "されて された されています しています している していた し せ させ れる られる れて られて れた られた せる させる ない なく なかった なくて ず "
    "いる いた いて います いました ある あり あって あった あります おり おります こと もの ため ので のに けど けれど しかし また この その "
    "あの どの これ それ あれ ここ そこ そして さらに および または なる なり なって なった なります できる できます できた できません れ られ "
    "い う る り っ く き け げ ら っている っていた っています んで んだ お ご という といった といい といいます ところ とき よう ような ように "
    "ましょう ください".split(),
    key=len,
    reverse=True,
)

VARIANTS_JA = dict(
    pair.split("=")
    for pair in "ネコ=猫 ねこ=猫 イヌ=犬 いぬ=犬 ゾウ=象 ウマ=馬 ウシ=牛 サル=猿 ヒツジ=羊 クマ=熊 カメ=亀 ブタ=豚 ニワトリ=鶏 リンゴ=林檎 りんご=林檎 つくえ=机 "
    "子ども=子供 こども=子供 ひとり=一人 ふたり=二人 イス=椅子 いす=椅子 メガネ=眼鏡 めがね=眼鏡 カバン=鞄 タバコ=煙草 たばこ=煙草 ガン=癌 がん=癌 レンガ=煉瓦 "
    "きれい=綺麗 たくさん=多く 沢山=多く 大勢=多く いろいろ=色々 さまざま=様々 すべて=全て ガイコツ=骸骨 クルマ=車 くるま=車 ヒト=人 ベット=ベッド コーヒー=珈琲 "
    "お皿=皿 お寿司=寿司 パーセント=% パソコン=PC デスク=机 プレート=皿 はぶらし=歯ブラシ ハブラシ=歯ブラシ オートバイ=バイク".split()
)
"""Spellings of one word, brought to one of them before anything else."""
TIME_JA = (
    "今週",
    "今日",
    "今年",
    "今月",
    "来週",
    "来年",
    "来月",
    "先週",
    "先月",
    "昨年",
    "去年",
    "昨日",
    "明日",
    "毎日",
    "毎週",
    "毎月",
    "毎年",
    "現在",
    "当時",
    "通常",
)
"""Words of time that stand before a verb without a particle, so that their kanji run into its own."""
GENERIC_JA = frozenset(
    "彼 彼女 私 場合 特 一方 具体的 例 主 可能 行 持 見 際 時 言 呼 示 用 使 基 通 様 中 者 的 方法 以下 次 他 約 程度 非常 重要 最 各 等 状態 これら".split()
)
"""Kanji that carry little: they open a clause or stand for "do", "have", "case"."""
NEGATION_EN = frozenset(
    "not no never without neither nor cannot n't none nobody nothing nowhere hardly".split()
)
NEGATION_RU = frozenset(
    "не нет ни без никогда нельзя никто ничто никакой никакие никакая никаких никак".split()
)

UNIVERSAL = frozenset(
    stem(word)
    for word in "all every everyone everybody everything always entire whole each "
    "все всех всем всеми каждый каждая каждое каждого каждому всегда любой любая любые весь вся".split()
)
PARTIAL = frozenset(
    stem(word)
    for word in "some many most several few sometimes often usually partly certain various majority half mostly "
    "некоторые некоторых некоторым многие многих часто иногда обычно часть большинство несколько нескольких ряд половина "
    "отдельные частично".split()
)
EXCLUSIVE = frozenset("only solely exclusively только исключительно лишь единственный единственная".split())
UNIVERSAL_JA = ("全て", "全部", "全員", "みな", "必ず", "常に", "いつも", "あらゆる", "全国", "誰でも")
PARTIAL_JA = (
    "一部",
    "いくつか",
    "多く",
    "時々",
    "ときどき",
    "たまに",
    "ほとんど",
    "大半",
    "半分",
    "場合がある",
    "場合があり",
    "ことがある",
    "ことがあり",
    "通常",
    "普通",
    "普段",
    "たいてい",
    "大抵",
)
EXCLUSIVE_JA = ("だけが", "だけに", "だけで", "だけを", "だけの", "だけです", "のみ", "しか")

# What weakens a statement: a claim that drops it says more than the chunk does.
HEDGE = frozenset(
    "may might perhaps possibly probably likely allegedly reportedly supposedly almost nearly hope hopes hoped plan plans planned planning "
    "try tries tried attempt attempts attempted if unless expected proposed rumored rumoured consider considers considering".split()
) | frozenset(
    stem(word)
    for word in "возможно вероятно почти надеется надеются планирует планируют пытается пытались пытался если якобы предположительно "
    "предполагается ожидается собирается намерен едва рассматривает".split()
)
ABLE = frozenset("can could able possible может могут можно".split())
HEDGE_JA = (
    "かもしれ",
    "だろう",
    "でしょう",
    "予定",
    "もし、",
    "可能性",
    "見込み",
    "ようとし",
    "検討",
    "らしい",
)

_UNITS = """
% percent per-cent процент процента процентов パーセント ％
second seconds sec сек секунда секунды секунд 秒 秒間
minute minutes min мин минута минуты минут минуту 分 分間
hour hours hr час часа часов ч 時間
day days день дня дней 日 日間 сутки суток
week weeks неделя недели недель неделю 週間 週
month months месяц месяца месяцев か月 ヶ月 カ月 ヵ月 月間
year years год года лет 年 年間
mm millimeter millimeters мм ミリ
cm centimeter centimeters centimetre см センチ センチメートル
m meter meters metre metres метр метра метров м メートル
km kilometer kilometers kilometre kilometres км километр километра километров キロ キロメートル
mile miles миля мили миль マイル
foot feet ft фут футов フィート
inch inches дюйм дюйма дюймов インチ
g gram grams грамм грамма граммов グラム
kg kilogram kilograms кг килограмм килограмма килограммов キログラム
pound pounds lb lbs фунт фунта фунтов ポンド
ton tons tonne tonnes т тонна тонны тонн トン
l liter liters litre litres л литр литра литров リットル
usd dollar dollars $ доллар доллара долларов ドル
eur euro euros € евро ユーロ
rub ruble rubles ₽ руб рубль рубля рублей ルーブル
jpy yen ¥ иена иены иен 円
kb килобайт
mb мб мегабайт мегабайта
gb гб гигабайт гигабайта gigabytes gigabyte ギガ
tb тб терабайт терабайта
ms millisecond milliseconds мс миллисекунд ミリ秒
hz герц
person people человек человека чел 人 名
time times раз раза 回
"""
UNIT: dict[str, str] = {}
for _line in _UNITS.strip().splitlines():
    _forms = _line.split()
    for _form in _forms:
        UNIT[_form] = _forms[0]

COUNTERS_JA = "人名頭匹羽個本枚台機つ年月日時分秒回度階歳才円倍冊杯件社国種類ヶか所箇点週番機隻棟軒歩行章部割字文字店室席戸曲話巻通問組着足"

_SMALL_EN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen".split()
)
_TENS_EN = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS_EN = (
    "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
    "seventeenth eighteenth nineteenth twentieth".split()
)
NUMBER_WORD: dict[str, float] = {word: float(value) for value, word in enumerate(_SMALL_EN)}
NUMBER_WORD |= {word: 20.0 + 10 * step for step, word in enumerate(_TENS_EN)}
NUMBER_WORD |= {word: 3.0 + step for step, word in enumerate(_ORDINALS_EN)}
NUMBER_WORD |= {"dozen": 12.0, "twice": 2.0, "thrice": 3.0}
for _value, _forms_ru in {
    0: "ноль нуля", 2: "два две двух двум двумя двое двоих второй вторая второго второе второму дважды",
    3: "три трех трем тремя трое троих третий третья третьего третье третьей трижды",
    4: "четыре четырех четырем четырьмя четверо четвертый четвертая четвертого четвертое",
    5: "пять пяти пятью пятый пятая пятого пятое пятеро", 6: "шесть шести шестью шестой шестая шестого шестое",
    7: "семь семи семью седьмой седьмая седьмого", 8: "восемь восьми восьмью восьмой восьмая восьмого",
    9: "девять девяти девятью девятый девятая девятого", 10: "десять десяти десятью десятый десятая десятого",
    11: "одиннадцать одиннадцати одиннадцатый", 12: "двенадцать двенадцати двенадцатый дюжина",
    13: "тринадцать тринадцати тринадцатый", 14: "четырнадцать четырнадцати четырнадцатый",
    15: "пятнадцать пятнадцати пятнадцатый", 16: "шестнадцать шестнадцати шестнадцатый",
    17: "семнадцать семнадцати семнадцатый", 18: "восемнадцать восемнадцати восемнадцатый",
    19: "девятнадцать девятнадцати девятнадцатый", 20: "двадцать двадцати двадцатый двадцатого",
    30: "тридцать тридцати тридцатый тридцатого", 40: "сорок сорока", 50: "пятьдесят пятидесяти",
    60: "шестьдесят шестидесяти", 70: "семьдесят семидесяти", 80: "восемьдесят восьмидесяти",
    90: "девяносто девяноста", 100: "сто ста", 200: "двести двухсот", 300: "триста трехсот",
    400: "четыреста четырехсот", 500: "пятьсот пятисот", 600: "шестьсот шестисот", 700: "семьсот семисот",
    800: "восемьсот восьмисот", 900: "девятьсот девятисот",
}.items():  # fmt: skip
    for _form in _forms_ru.split():
        NUMBER_WORD[_form] = float(_value)
# "one" and "first" are pronouns and adverbs more often than numbers: they can support, but need no support.
WEAK_NUMBER_WORD = frozenset({"one", "first", "once", "второй"})

MULTIPLIER: dict[str, float] = {
    "hundred": 1e2, "hundreds": 1e2, "thousand": 1e3, "thousands": 1e3, "million": 1e6, "millions": 1e6,
    "billion": 1e9, "billions": 1e9, "trillion": 1e12, "mln": 1e6, "bn": 1e9, "k": 1e3,
    "тыс": 1e3, "тысяча": 1e3, "тысячи": 1e3, "тысяч": 1e3, "тысячу": 1e3, "млн": 1e6, "миллион": 1e6, "миллиона": 1e6,
    "миллионов": 1e6, "млрд": 1e9, "миллиард": 1e9, "миллиарда": 1e9, "миллиардов": 1e9, "трлн": 1e12,
}  # fmt: skip

MONTH: dict[str, int] = {}
for _number, _names in enumerate(
    "january jan январь января январе|february feb февраль февраля феврале|march mar март марта марте|"
    "april apr апрель апреля апреле|may май мая мае|june jun июнь июня июне|july jul июль июля июле|"
    "august aug август августа августе|september sep sept сентябрь сентября сентябре|"
    "october oct октябрь октября октябре|november nov ноябрь ноября ноябре|december dec декабрь декабря декабре".split(
        "|"
    ),
    start=1,
):
    for _name in _names.split():
        MONTH[_name] = _number
