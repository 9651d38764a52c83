"""Opposites, exclusive values and synonyms in English, Russian and Japanese.

Forms are casefolded, ё is written е; English and Russian words are matched by stem. A change here
needs a new ``VERSION``.
"""
# ruff: noqa: E501

from __future__ import annotations

from pytest_ragbench.text.stems import stem

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
