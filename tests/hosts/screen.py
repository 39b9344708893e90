"""A terminal's screen: what a program on a pty shows, and what has scrolled off above it.

It knows the control sequences that prompt_toolkit and rich send, and ignores all others.
"""

import codecs
import re
import unicodedata

ROWS, COLUMNS = 40, 120

_TOKEN = re.compile(
    r"\x1b\[(?P<args>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # a title, a colour: nothing to be seen
    r"|\x1b[()#%*+].|\x1b[^\[\]()#%*+]"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x1f\x7f]+)",
    re.DOTALL,
)


class Screen:
    """The cells of a terminal. `answer` gets what a terminal answers by itself."""

    def __init__(self, answer=lambda text: None):
        self.cells = [[" "] * COLUMNS for _ in range(ROWS)]
        self.above = []
        self.row = self.column = 0
        self._answer = answer
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""

    def lines(self):
        return ["".join(cells).rstrip() for cells in self.cells]

    def text(self):
        """All that was ever printed and is not wiped out, oldest first."""
        return "\n".join([*self.above, *self.lines()]).rstrip()

    def feed(self, data):
        text = self._rest + self._decode(data)
        end = 0
        for token in _TOKEN.finditer(text):
            if token.start() != end:
                break  # a sequence that is not all there yet
            end = token.end()
            if token["text"]:
                self._write(token["text"])
            elif token["control"]:
                self._control(token["control"])
            elif token["final"]:
                self._sequence(token["final"], token["args"])
        self._rest = text[end:]

    def _write(self, text):
        for sign in text:
            width = _width(sign)
            if width == 0:
                continue
            if self.column + width > COLUMNS:
                self.column = 0
                self._down()
            self.cells[self.row][self.column] = sign
            if width == 2:
                self.cells[self.row][self.column + 1] = ""
            self.column += width

    def _control(self, sign):
        if sign == "\r":
            self.column = 0
        elif sign == "\n":
            self._down()
        elif sign == "\b":
            self.column = max(0, self.column - 1)
        elif sign == "\t":
            self.column = min(COLUMNS - 1, self.column // 8 * 8 + 8)

    def _down(self):
        if self.row + 1 < ROWS:
            self.row += 1
            return
        self.above.append("".join(self.cells.pop(0)).rstrip())
        self.cells.append([" "] * COLUMNS)

    def _sequence(self, final, args):
        numbers = (
            [int(number or 0) for number in args.split(";")]
            if re.fullmatch(r"[\d;]*", args)
            else []
        )
        first = numbers[0] if numbers else 0
        if final in "ABCD":
            self._move(final, max(1, first))
        elif final == "G":
            self.column = min(COLUMNS, max(1, first)) - 1
        elif final in "Hf":
            row, column = [*numbers, 0, 0][:2]
            self.row, self.column = min(ROWS, max(1, row)) - 1, min(COLUMNS, max(1, column)) - 1
        elif final == "J":
            self._erase(first)
        elif final == "K":
            self._erase_line(first)
        elif final == "n" and first == 6:
            self._answer(f"\x1b[{self.row + 1};{min(self.column, COLUMNS - 1) + 1}R")

    def _move(self, final, by):
        if final in "AB":
            self.row = min(ROWS - 1, max(0, self.row + (by if final == "B" else -by)))
        else:
            self.column = min(COLUMNS - 1, max(0, self.column + (by if final == "C" else -by)))

    def _erase(self, what):
        if what == 3:
            self.above.clear()
            return
        rows = (
            range(ROWS)
            if what == 2
            else range(self.row + 1, ROWS)
            if what == 0
            else range(self.row)
        )
        for row in rows:
            self.cells[row] = [" "] * COLUMNS
        if what != 2:
            self._erase_line(what)

    def _erase_line(self, what):
        start, end = {0: (self.column, COLUMNS), 1: (0, self.column + 1)}.get(what, (0, COLUMNS))
        self.cells[self.row][start:end] = [" "] * (min(end, COLUMNS) - min(start, COLUMNS))


def _width(sign):
    """Cells a sign takes, as terminals and prompt_toolkit have it."""
    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
