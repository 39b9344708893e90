"""What one word is worth in a line, without a corpus.

Its shape, and short lists of words in a dozen languages.

A later search looks for rare words, so names, numbers, paths and identifiers weigh most and the
glue of a sentence next to nothing. Holds the lists and the weights; knows nothing of items or
limits. Called by ``items.py`` and ``clauses.py``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

CUE: Final = 1
"""A word of deciding: the part of a conversation that still binds later."""
STATUS: Final = 2
"""Negation, condition or plan.

A piece cut out of its clause without this word would claim what never happened.
"""
FAULT: Final = 4
"""A word of failing."""
NAME: Final = 8
"""Capitalised: a name inside a sentence, perhaps only a beginning at its start."""
POLITE: Final = 16
"""A first word that often opens a phrase without content."""

STOP: Final = 32
"""Ends a clause."""
DOT: Final = 64
"""Ends a clause unless the next word goes on in lower case (``approx. five``)."""
LINE: Final = 128
"""Not a word but a line break."""
FENCE: Final = 256
"""Opens or closes a block of code."""
STAMP: Final = 512
"""A date or time as logs put it in front of every line."""
SPOKEN: Final = CUE | STATUS | FAULT
ENDING: Final = STOP | DOT | LINE

GLUE_WEIGHT: Final = 0.05

_GLUE: Final = """
the a an and or of to in on at for with by from as is are was were be been being am it its this that
these those i you he she we
they me my your our their them us his her him so then than but do does did have has had can just
also very there here what which
who when where how why all any some more most into about over up out get got go make need like yes
ok okay one other same such
done info debug trace notice traceback i'm i've i'd it's that's there's we're we've you're let's
here's isn't what's
der die das den dem des ein eine einen einem einer eines und oder aber ist sind war waren wir ich du
er sie es ihr mit von zu zum
zur im auf für bei aus nach wie auch noch nur schon dass als haben hat habe hatte dann da hier mir
mich uns euch ihm sich sein
le la les un une des du de et ou mais est sont dans sur pour par avec ce cette ces il elle nous vous
je tu que qui au aux en se sa
ses son plus été être avoir ai avons avez c'est
el los las y o pero es con para se su sus lo al del como más una está fue ser muy eso esta este
gli di che per è sono ho nel della delle dei con questo questa
os as e um uma do dos das em na com por foi isso esse essa se
het een en maar zijn op met van voor dat ook wij ik je dit
jest się na do z i w to że jak ale
bir ve bu için ile da çok
och att det som på med av för den är
и в на с по что это как я мы вы он она они но за к у от для из о же бы так то все
"""

_COMMON: Final = """
able above across actually add added adding after again ago already also although another anything
around asked asks away back
base based basically been before behind being below best better between big bit both bring brings
build built call called came
case cases change changed changes check checked checks clean clear clearly close come comes common
complete completely consider
correct could couple create created current currently data day days deal details different discuss
discussed does doing down
during each early easier easy else end enough entire especially even ever every everyone everything
exactly example expect
expected explain fact false fast feature features feels few file files fill find fine first follow
following follows forward found
four free from front full further general gave generally give given gives goes good group half hand
handle happen happened happens
hard help helpful here high higher hold hour hours however idea image important include includes
including input inside issue
issues item items itself job jobs keep keeps kept kind knew know known large last late later least
leave left less level
line lines list little live local long longer look looked looking looks lots lower made main make
makes making many matter means
meant mean message messages method minute minutes moment month months moved moves much name names
near nearly necessary needed
needs new next nice none normal note nothing noted now number numbers often old once ones only open
opened order original
others otherwise out output outside over own page pages part parts pass past people per perfectly
pick place plain point points
possible pretty previous probably problem process properly provide put question questions quickly
quite rather read reading ready
real really recent related remaining remove removed rest result results return returns review right
root run running runs said
same save saved saying says screen second section see seem seems seen sense sent separate set sets
several shall short show shown
shows side similar simple simply single size small smaller some someone something sometimes soon
sort speak specific start started
starts state stay stays step steps still stop stuff sure take taken takes taking talk taste tell
tells test tests text than thanks
their them then these thing things think thinking third those though thought three through thus tidy
tidied time times together
told took top total touch toward tried true turn turned twice type typically under understand update
updated upon use used useful
user users uses using usual usually value values version very view wait want wanted wants watch ways
week weeks well went were
whatever when where whether which whichever while whole whose why wish with within won word words
work worked working works world
worth would write writing written wrote year years yesterday
"""
"""English words too common to find anything by.

Other languages do without: their length rule finds less, not wrongly.
"""
_COMMON_WEIGHT: Final = 0.15

_CUE: Final = """
decide decided decision decisions agreed agree chose chosen choose instead switch switched prefer
preferred must always rule
policy deadline because reason important requirement approved rejected reverted replace replaced
rename renamed deprecated
final finally conclusion cause fix fixed workaround remember
entschieden entscheiden entscheidung beschlossen statt stattdessen wird muss immer wichtig frist
ursache vereinbart gewählt
décidé décidons décision plutôt choisi lieu toujours doit cause échéance
decidido decidimos decisión elegido siempre debe causa plazo decisão decidiu escolhido sempre deve
deciso decisione scelto invece sempre deve besloten besluit altijd moet
zdecydowano zawsze zamiast karar beslutat alltid
решили решено решение вместо всегда нужно срок причина
"""

_STATUS: Final = """
not no never none neither nor without cannot can't don't doesn't didn't won't wouldn't shouldn't
couldn't isn't aren't wasn't
weren't haven't hasn't hadn't if unless until will would should could might may maybe perhaps plan
plans planned planning todo yet
almost going gonna tomorrow later trying
nicht kein keine keinen keinem keiner nie niemals ohne falls wenn wird soll sollen sollte sollten
werden würde könnte vielleicht morgen
ne pas jamais sans si aucun aucune peut-être demain
no nunca sin si quizás mañana não nunca sem talvez amanhã
non mai senza se forse domani
niet geen nooit zonder misschien
nie bez jeśli może değil yok eğer belki inte aldrig utan kanske
не нет никогда без если будет может завтра пока ли
"""

_FAULT: Final = """
error errors failed fail fails failure failing exception fatal panic denied refused missing invalid
unable undefined unexpected
aborted timeout crash crashed broken bug wrong corrupt killed warning rejected conflict unreachable
exit exited exit_code
fehler fehlgeschlagen erreur échec échoué fallo falló erro falhou errore fallito fout mislukt błąd
hata fel
ошибка ошибки сбой упал
"""

_POLITE: Final = """
sure certainly absolutely great perfect excellent thanks thank hello hi hey of course happy glad i'd
i i'll let feel hope no
gerne natürlich hallo danke klar super bien merci bonjour claro gracias hola obrigado olá certo
grazie ciao
конечно привет спасибо you sounds got good understood awesome alright okay ok yes welcome
"""

_HAN_CUE: Final = (
    "决定 決定 改用 必须 必須 同意 选择 選択 采用 採用 原因 截止 期限 记住 重要 结论 結論 总是 不要"
)
_HAN_STATUS: Final = (
    "如果 计划 計画 打算 准备 可能 应该 尚未 还没 没有 不是 不能 不会 不要 将会 予定 検討 未定 未完"
)
_HAN_FAULT: Final = "错误 錯誤 失败 失敗 异常 例外 崩溃 超时 报错 拒绝"
HAN_WORDS: Final = tuple(f"{_HAN_CUE} {_HAN_STATUS} {_HAN_FAULT}".split())
"""Written without spaces, so whoever divides such text must look for these first."""

_LISTS: Final = (
    (f"{_FAULT} {_HAN_FAULT}", 1.0, FAULT),
    (f"{_CUE} {_HAN_CUE}", 0.8, CUE),
    (f"{_STATUS} {_HAN_STATUS}", 0.3, STATUS),
)


def _lexicon() -> dict[str, tuple[float, int]]:
    words = dict.fromkeys(_COMMON.split(), (_COMMON_WEIGHT, 0))
    words.update(dict.fromkeys(_GLUE.split(), (GLUE_WEIGHT, 0)))
    for listed, weight, flag in _LISTS:
        for word in listed.split():
            words[word] = (weight, words.get(word, (0.0, 0))[1] | flag)
    for word in _POLITE.split():
        weight, flags = words.get(word, (GLUE_WEIGHT, 0))
        words[word] = (weight, flags | POLITE)
    return words


_LEXICON: Final = _lexicon()
_EDGE: Final = "\"'`.,;:!?()[]{}<>*#|~=+-–—…“”„‘’«»。、，；：！？（）「」『』【】《》·•→\\/"
_DIGIT: Final = re.compile(r"\d")
_MARK: Final = re.compile(r"[_/\\@.:=#$%&+~]|(?<=[a-z])[A-Z]")
_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d.*)?$|\d\d?:\d\d(?::\d\d[\d.,:]*Z?)?$")
_FAULT_ENDS: Final = ("error", "exception", "failure", "warning", "fehler")


@lru_cache(maxsize=1 << 15)
def weigh(word: str) -> tuple[float, str, int, str]:
    """Weight, key, flags and shape of one word with its punctuation.

    The key is the form under which repeats are the same, the shape is the key without digits (``#``
    for a number alone).

    Kept for the last 32,768 words: what is said in one conversation says most of it again.
    """
    if word == "\n":
        return 0.0, "", LINE, ""
    core = word.strip(_EDGE)
    ends = _ending(word) if word[-1:] in _ENDS else 0
    if not core:
        return 0.0, "", ends | (FENCE if word.startswith("```") else 0), ""
    weight, key, flags = _weigh(core)
    if word.startswith("```"):
        flags |= FENCE
    return weight, key, flags | ends, key.translate(_NO_DIGITS).strip(_EDGE) or "#"


_NO_DIGITS: Final = dict.fromkeys(map(ord, "0123456789"))
_ENDS: Final = ".?!…。！？\"'”’»)]」』*"
_CLOSERS: Final = "\"'”’»)]」』*"


def _ending(word: str) -> int:
    """Whether the word ends a clause.

    A letter or two before the dot is an abbreviation (Dr., z.B.), a number is none.
    """
    body = word.rstrip(_CLOSERS)
    if not body or body[-1] not in ".?!…。！？":
        return 0
    if body[-1] != "." or body.endswith(".."):
        return STOP
    stem = body[:-1]
    short = stem[-1:].isalpha() and (len(stem) < 3 or not stem[-3:].isalnum())
    return 0 if short else DOT


def _weigh(core: str) -> tuple[float, str, int]:  # noqa: PLR0911  one return for each kind of word
    key = core.lower()
    known = _LEXICON.get(key)
    if known is not None:
        return known[0], key, known[1]
    if "…" in core:
        return _weigh_joined(core)
    if "=" in core:
        core = core.rpartition("=")[2] or core  # limit=7 is worth what 7 is
    if core.isalpha():
        return _weigh_letters(core, key)
    if core.isdigit():
        return (0.3, 0.6, 1.0)[len(core) - 1] if len(core) < 4 else 2.0, key, 0
    if "\x01" in core:
        return 0.6, key, 0  # a marker for what was too long to show
    flags = FAULT if key.endswith(_FAULT_ENDS) else 0
    if _DIGIT.search(core):
        return 2.2, key, flags | (STAMP if _STAMP.match(core) else 0)
    if _MARK.search(core):
        return 2.4, key, flags
    if not any(map(str.isalnum, core)):
        return GLUE_WEIGHT, key, 0  # an emoji, an arrow
    return min(0.09 * len(core), 1.2) + (0.6 if not core.islower() else 0.0), key, flags


def _weigh_letters(core: str, key: str) -> tuple[float, str, int]:
    size = len(core)
    flags = FAULT if key.endswith(_FAULT_ENDS) else 0
    if core.islower():
        return 0.15 if size < 4 else min(0.07 * size - 0.1, 0.8), key, flags
    if core.isupper():
        return (1.5 if size > 1 else 0.3), key, flags
    if core.istitle():
        return 1.7, key, flags | NAME
    if key != core:
        return 2.4, key, flags
    return _weigh_caseless(core)


def _weigh_joined(core: str) -> tuple[float, str, int]:
    """A word that an earlier line joined to the negation it depends on: ``not…deployed``."""
    parts = [weigh(part)[:3] for part in core.split("…") if part.strip(_EDGE)]
    flags = 0
    for part in parts:
        flags |= part[2]
    heaviest = max(parts, default=(0.0, "", 0))
    return heaviest[0], core.lower(), flags & SPOKEN


_COMMON_HAN: Final = frozenset(
    "的了是在我有和就人都一也很到说要去你会着看好自己这那他她它们个上下来时把对没与及而被让给请吗呢吧啊"
)
_NOT_HAN: Final = frozenset("不没沒未无無别勿若")
_PARTS: Final = (
    (
        STATUS,
        (
            "ない",
            "ませ",
            "まだ",
            "なかっ",
            "もし",
            "つもり",
            "たら",
            "れば",
            "않",
            "없",
            "못",
            "아직",
            "만약",
            "예정",
            "계획",
        ),
    ),
    (
        CUE,
        (
            "にする",
            "ことに",
            "代わり",
            "べき",
            "결정",
            "대신",
            "반드시",
            "하기로",
            "항상",
            "중요",
            "마감",
            "원인",
        ),
    ),
    (FAULT, ("エラー", "오류", "실패", "에러")),
)
"""Endings and stems inside words of scripts that glue them on."""


def _weigh_caseless(core: str) -> tuple[float, str, int]:
    """A word of a script without capitals.

    Han and kana by the kind of character, others by length.
    """
    first, size, flags = core[0], len(core), 0
    if "\u3400" <= first <= "\u9fff" or first >= "\U00020000":
        weight = sum(0.06 if char in _COMMON_HAN else 0.3 for char in core)
        return weight, core, 0 if _NOT_HAN.isdisjoint(core) else STATUS
    for flag, parts in _PARTS:
        if any(part in core for part in parts):
            flags |= flag
    if "\u3041" <= first <= "\u309f":
        return 0.1, core, flags
    if "\u30a0" <= first <= "\u30ff" or "\uff66" <= first <= "\uff9f":
        return (1.3 if size > 2 else 0.6), core, flags
    if "\uac00" <= first <= "\ud7a3":
        return min(0.2 * size, 1.0), core, flags
    return (0.15 if size < 3 else min(0.12 * size, 1.0)), core, flags


_POLITE_PHRASE: Final = re.compile(
    r"(?:sure|certainly|absolutely|of course|great(?: question| "
    r"idea|!|$)|perfect|excellent|awesome|alright|sounds good|got it|understood|"
    r"thanks?\b|thank you|you're welcome|hello|hi\b|hey|good (?:morning|question|idea)|i'd "
    r"be (?:happy|glad)|i'?ll be happy|i hope|"
    r"hope (?:this|that)|happy to|glad to|let me know|feel free|no problem|okay|ok\b|yes\W*$|"
    r"gerne|natürlich|hallo|danke|klar|super|bien "
    r"sûr|merci|bonjour|claro|gracias|hola|obrigad|olá|certo|grazie|ciao|"
    r"конечно|привет|спасибо)",
    re.IGNORECASE,
)
_POLITE_CJK: Final = (
    "好的",
    "当然",
    "您好",
    "你好",
    "谢谢",
    "没问题",
    "承知",
    "かしこまり",
    "こんにちは",
    "ありがとう",
    "はい",
    "네,",
    "안녕",
    "감사",
)


def is_polite(phrase: str) -> bool:
    """Whether the phrase opens like a greeting, thanks or an offer of help."""
    return phrase.startswith(_POLITE_CJK) or _POLITE_PHRASE.match(phrase) is not None
