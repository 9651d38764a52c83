"""Word lists of the local judge: small, closed classes only (function words, numerals, opposites).

All forms are casefolded; ё is written е. Lists are data: a change here needs a new ``VERSION``.
"""

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
TIME_JA = ("今週", "今日", "今年", "今月", "来週", "来年", "来月", "先週", "先月", "昨年", "去年", "昨日", "明日", "毎日", "毎週", "毎月", "毎年", "現在", "当時", "通常")
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

# Sets whose members exclude each other: a claim with one where the chunk has another is contradicted.
# Words are matched by stem, phrases by their words in a row.
_CONTRASTS = """
allow permit | forbid prohibit ban disallow
before prior earlier | after later following
more greater higher above over larger bigger | less fewer lower below under smaller
increase rise grow gain raise expand | decrease fall decline drop reduce shrink lower
accept approve | reject refuse decline deny
open opened | close closed shut
start begin | end finish stop
win won | lose lost
buy purchase | sell sold
first | last
minimum min | maximum max
always | never | sometimes
enable enabled | disable disabled
include included | exclude excluded
require required mandatory compulsory necessary | optional voluntary
free | paid chargeable
success succeed successful | fail failure failed
true correct right | false incorrect wrong
north northern | south southern | east eastern | west western
left | right
hot warm | cold cool
old | new | young
high | low
long | short
big large | small little
early | late
fast quick | slow
rich | poor
strong | weak
public | private
internal inside indoor | external outside outdoor
upper top | lower bottom
male man boy men | female woman girl women
father | mother
husband | wife
son | daughter | child
brother | sister
king | queen
day daytime | night nighttime
morning | afternoon | evening
monday | tuesday | wednesday | thursday | friday | saturday | sunday
red | blue | green | yellow | black | white | orange | purple | pink | brown | gray grey
spring | summer | autumn fall | winter
safe | dangerous unsafe
alive living | dead
import | export
upload | download
encrypt | decrypt
add | remove delete
send | receive
good better best | bad worse worst
full | empty
easy simple | hard difficult
cheap cheaper | expensive
majority | minority
positive | negative
most | few least
single | married
domestic | foreign
temporary | permanent
manual manually | automatic automatically
heavy heavier heaviest | light lighter lightest
loud louder | quiet quieter
wide wider | narrow narrower
thick thicker | thin thinner
deep deeper | shallow shallower
near nearer close closer | far farther further
longer longest | shorter shortest
older oldest | newer newest younger youngest
taller tallest higher | shorter
faster fastest quicker | slower slowest
stronger strongest | weaker weakest
hotter warmer | colder cooler
easier | harder
richer | poorer
earlier earliest | later latest
clean cleaner | dirty dirtier
wet | dry
bright brighter | dark darker
love like | hate dislike
remember | forget
agree | disagree
arrive | depart
enter | exit leave
beginning | ending
import imported | export exported
manual | automated
optimistic | pessimistic
increase increased | cut
daily | weekly | monthly | yearly annually
разрешить разрешено разрешается разрешен можно позволять | запретить запрещено запрещается запрещен нельзя
до раньше перед ранее | после позже спустя
больше более свыше выше крупнее | меньше менее ниже мельче
увеличить увеличиться увеличивать расти вырасти вырос выросла повысить повыситься рост подняться | уменьшить уменьшиться снизить снизиться упасть упал упала сократить сократиться снижение падение
принять одобрить | отклонить отвергнуть отказать
открыть открыт открыться открывается | закрыть закрыт закрыться закрывается
начать начаться начинаться начало | закончить закончиться завершить завершиться заканчиваться конец
выиграть победить | проиграть
купить покупать приобрести | продать продавать
первый первая первое | последний последняя последнее
минимум минимальный минимально | максимум максимальный максимально
всегда | никогда | иногда
включить включен включена включено | выключить выключен отключить отключен отключена выключена
обязательный обязательно обязан | необязательный необязательно добровольный
бесплатный бесплатно | платный платно
север северный | юг южный | восток восточный | запад западный
левый слева | правый справа
горячий теплый жаркий | холодный
старый | новый | молодой
высокий | низкий
длинный долгий | короткий
большой крупный | маленький небольшой малый
рано ранний | поздно поздний
быстрый быстро | медленный медленно
богатый | бедный
сильный | слабый
внутренний внутри | внешний снаружи
верхний | нижний
мужчина мальчик мужской | женщина девочка женский
отец | мать
муж | жена
сын | дочь | ребенок
брат | сестра
день дневной днем | ночь ночной ночью
утро утром | вечер вечером
понедельник | вторник | среда | четверг | пятница | суббота | воскресенье
красный | синий | голубой | зеленый | желтый | черный | белый | оранжевый | фиолетовый | розовый | коричневый | серый
весна весной весенний | лето летом летний | осень осенью осенний | зима зимой зимний
безопасный | опасный
импорт | экспорт
загрузить | скачать
добавить | удалить
отправить отправлять | получить получать
хороший лучше | плохой хуже
полный | пустой
легкий легко простой просто | трудный сложный трудно сложно
дешевый дешевле | дорогой дороже
большинство | меньшинство
положительный | отрицательный
временный временно | постоянный постоянно
ручной вручную | автоматический автоматически
ежедневно | еженедельно | ежемесячно | ежегодно
полдень | полночь
тяжелый тяжелее | легкий легче
громкий громче | тихий тише
широкий шире | узкий уже
толстый толще | тонкий тоньше
глубокий глубже | мелкий мельче
близкий ближе | далекий дальше
выше | ниже
старше | младше
быстрее | медленнее
сильнее | слабее
теплее горячее | холоднее
проще легче | сложнее труднее
раньше | позже позднее
длиннее дольше | короче
чистый | грязный
сухой | мокрый влажный
светлый | темный
любить | ненавидеть
помнить | забыть
прибыть прибывает | отбыть отбывает
вход войти | выход выйти
удаться успешно успешный удался | провалиться провалился неудача
включает | исключает
"""

# Words that may stand for each other; a match through this list counts a little less than the word itself.
_SYNONYMS = """
get receive obtain gain earn
begin start commence
end finish conclude
buy purchase acquire
make create produce build construct
use utilize employ
keep store retain save hold
need require
show display present demonstrate reveal
big large major huge substantial biggest largest
small little minor tiny
help assist aid support
allow permit enable let
happen occur place
choose select pick
change modify alter edit
get become
release publish launch issue
think believe consider
say state tell mention claim
call name term refer
kind type sort form
people human person men individual
kid child
car vehicle automobile
job work occupation
doctor physician
lawyer attorney
movie film
picture photo photograph image
country nation
town city
fast quick rapid
important significant essential key crucial vital
hard difficult challenging tough
easy simple
famous well-known popular renowned
main primary chief principal
often frequently
many numerous several
live reside
die pass
speak talk
give provide offer supply grant
find discover locate
try attempt
join participate
travel go run
fix repair
send submit transmit
stop cease halt
error mistake fault
answer reply response
enough sufficient
money fund
danger risk
price cost
yearly annually annual
home house
part portion piece
whole entire
area region zone
check verify confirm
remove delete erase
fee charge
forbid prohibit ban
close shut
rise increase grow
fall decrease drop decline
also additionally
similar alike same
male man
female woman
company firm business enterprise corporation
customer client buyer
employee worker staff
about approximately around
dwelling home
cheap inexpensive
legal lawful
origin beginning inception start
speed velocity
usage use
begin originate
легко просто нетрудно
тихий спокойный
большой крупный огромный
маленький небольшой малый
начать начаться начинать стартовать
закончить завершить окончить закончиться завершиться
купить приобрести покупать
сделать создать изготовить произвести
использовать применять использоваться применяться пользоваться
хранить хранится сохранять
нужно необходимо требуется надо нужен требоваться
показать демонстрировать продемонстрировать
помогать помочь содействовать
разрешить позволять разрешать
произойти случиться происходить случаться
выбрать выбирать
изменить менять поменять изменять
выйти выпустить опубликовать выпущен
думать считать полагать
сказать заявить сообщить говорить
назвать называть именовать называется
вид тип сорт
люди человек лица
жители население житель
ребенок дети
машина автомобиль
работа труд
врач доктор медик
фильм кино
фото фотография снимок
страна государство
быстрый скорый
важный значимый существенный
трудный сложный тяжелый
известный знаменитый популярный
основной главный
часто нередко
жить проживать обитать
умереть скончаться
дать предоставить давать предлагать предоставлять
найти обнаружить отыскать
пытаться стараться
ошибка сбой
ответ отклик
опасность риск
цена стоимость
область регион зона район
проверить проверять
удалить удалять стереть
запретить запрещать
расти вырасти увеличиться повыситься увеличить повысить подняться рост увеличение
упасть снизиться уменьшиться сократиться снижение уменьшение
получить получать
компания фирма предприятие
покупатель клиент заказчик
сотрудник работник
вернуть возвращать возврат
основать основан учредить
отправить послать отправлять посылать
менее меньше
более больше свыше
"""

SYNONYM: dict[str, frozenset[int]] = {}
for _row, _line in enumerate(_SYNONYMS.strip().splitlines()):
    for _word in _line.split():
        SYNONYM[stem(_word)] = SYNONYM.get(stem(_word), frozenset()) | {_row}
SYNONYM_ROWS = [frozenset(stem(word) for word in line.split()) for line in _SYNONYMS.strip().splitlines()]

LIGHT = frozenset(
    stem(word)
    for word in "take takes took taken taking come comes came coming go goes went going make makes made making give gives gave put let "
    "seem become became get gets got part back kind type sort back way using use used allow contain contains involve "
    "можно нужно стать стал стала становится делать сделать идти идет бывает иметь имеет имеют происходит находиться "
    "находится существует".split()
)
"""Verbs and nouns that carry little by themselves."""

CONTRAST: dict[str, tuple[int, int]] = {}
"""stem -> (number of the set, number of the side). A stem in two sets keeps the first."""
for _row, _line in enumerate(line for line in _CONTRASTS.strip().splitlines()):
    for _side, _words in enumerate(_line.split("|")):
        for _word in _words.split():
            CONTRAST.setdefault(stem(_word), (_row, _side))

# Opposites in Japanese are looked for as substrings; longer ones first, so that 不可能 is not 可能.
CONTRAST_JA: list[list[tuple[str, int]]] = [
    sorted(
        ((word, side) for side, cell in enumerate(line.split("|")) for word in cell.split()),
        key=lambda pair: -len(pair[0]),
    )
    for line in """
許可 可能 認め | 禁止 不可 認めら
増加 増え 上昇 増大 拡大 | 減少 減り 減っ 下降 低下 縮小 下落
以上 | 以下 | 未満
以前 前に までに | 以降 以後 後に
多い 多く | 少ない 少なく 少な
高い 高く 高か | 低い 低く 低か
大きい 大きく 大きな 大型 | 小さい 小さく 小さな 小型
長い 長く | 短い 短く
新しい 新しく | 古い 古く
早い 早く 早め | 遅い 遅く
速い 速く | 遅い 遅く
開始 始ま 始め | 終了 終わ
開く 開い 開館 開店 開け | 閉じ 閉ま 閉館 閉店
有効 | 無効
有料 | 無料
必須 必要 | 任意 不要
成功 | 失敗
勝っ 勝利 勝ち | 負け 敗北 敗れ
購入 買っ 買い | 売却 売っ 売り 販売
含む 含ま 含み | 除く 除か 除き
最大 | 最小
最高 | 最低
最初 | 最後
男性 男 | 女性 女
父 | 母
息子 | 娘
兄 弟 | 姉 妹
夫 | 妻
東 | 西 | 南 | 北
左 | 右
上に 上で 上の 上を | 下に 下で 下の 下を | 横に 横で 横の
内側 内部 屋内 室内 | 外側 外部 屋外 室外
朝 午前 | 午後 夕方 | 夜
昼 | 夜
春 | 夏 | 秋 | 冬
月曜 | 火曜 | 水曜 | 木曜 | 金曜 | 土曜 | 日曜
赤 | 青 | 緑 | 黄色 | 黒 | 白 | 紫 | 茶色 | 灰色
暑い 暑く 熱い 熱く 暖か | 寒い 寒く 冷た 涼し
安全 | 危険
公開 | 非公開
自動 | 手動
輸入 | 輸出
送信 送っ 送り | 受信 受け取
追加 | 削除
国内 | 海外 国外
一部 | 全て 全部
良い 良く | 悪い 悪く
強い 強く | 弱い 弱く
簡単 容易 | 困難 難し
安い 安く 安価 | 高価 高い 高く
常に いつも 必ず | 決して | 時々
承認 | 却下 拒否
重い 重く | 軽い 軽く
広い 広く | 狭い 狭く
厚い 厚く | 薄い 薄く
深い 深く | 浅い 浅く
近い 近く | 遠い 遠く
明るい 明るく | 暗い 暗く
到着 | 出発
入口 入り口 | 出口
毎日 | 毎週 | 毎月 | 毎年
""".strip().splitlines()
]

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
    "一部", "いくつか", "多く", "時々", "ときどき", "たまに", "ほとんど", "大半", "半分", "場合がある", "場合があり", "ことがある", "ことがあり",
    "通常", "普通", "普段", "たいてい", "大抵",
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
