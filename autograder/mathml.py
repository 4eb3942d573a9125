r"""Formulas as MathML: pages of the site, and of a grading, need no script for them.

TeX is read as TeX reads it: every part of a formula is an atom (ordinary, operator,
binary, relation, opening, closing, punctuation, inner), and the space between two of
them follows from what they are. Browsers know another rule, so spaces that differ from
theirs are written out. What is not known here is refused, with the formula, instead of
being shown wrongly. Names of symbols come from latex2mathml's table.
"""

import importlib.resources
import itertools
import re
import unicodedata
from dataclasses import dataclass
from xml.etree import ElementTree

Element = ElementTree.Element

TOKEN = re.compile(
    r"%[^\n]*\n?|(\\[a-zA-Z]+\*?|\\.|\d+(?:\.\d+)?|\.\d+|\s+|.)", re.DOTALL
)

# Spaces between atoms in eighteenths of an em (The TeXbook, page 170). Negative ones
# are left out in subscripts and superscripts.
KINDS = ("ord", "op", "bin", "rel", "open", "close", "punct", "inner")
SPACES = {
    "ord": (0, 3, -4, -5, 0, 0, 0, -3),
    "op": (3, 3, 0, -5, 0, 0, 0, -3),
    "bin": (-4, -4, 0, 0, -4, 0, 0, -4),
    "rel": (-5, -5, 0, 0, -5, 0, 0, -5),
    "open": (0, 0, 0, 0, 0, 0, 0, 0),
    "close": (0, 3, -4, -5, 0, 0, 0, -3),
    "punct": (-3, -3, 0, -3, -3, -3, -3, -3),
    "inner": (-3, 3, -4, -5, -3, 0, -3, -3),
}
# What browsers leave beside these without being told
KNOWN_SPACES = dict.fromkeys("=<>≤≥≠≈∈→←", (5, 5)) | dict.fromkeys("+−", (4, 4))
KNOWN_SPACES |= {",": (0, 3), ";": (0, 3)}

KERNS = {",": 3, ":": 4, ">": 4, ";": 5, "!": -3, " ": 4.5, "quad": 18, "qquad": 36}
KERNS |= {"thinspace": 3, "enspace": 9}
NAMED = "arccos arcsin arctan arg cos cosh cot deg dim exp hom ker ln log sec sin sinh"
NAMED = {*NAMED.split(), "tan", "tanh"}
LIMITS = {"max", "min", "lim", "sup", "inf", "det", "gcd", "Pr", "argmax", "argmin"}
WIDE = {"widehat": "^", "widetilde": "~", "overrightarrow": "→"}
ACCENTS = {"hat": "ˆ", "bar": "¯", "tilde": "˜", "vec": "→", "dot": "˙", "ddot": "¨"}
ACCENTS |= {"mathring": "˚"}
# Drawn by the style sheet: browsers cut stretched braces off when a font comes late
LINES = {"underbrace": True, "overbrace": True, "overline": False, "underline": False}
ALPHABETS = {
    "mathbf": ("BOLD",),
    "boldsymbol": ("BOLD ITALIC", "BOLD"),
    "bm": ("BOLD ITALIC", "BOLD"),
    "mathit": ("ITALIC",),
    "mathcal": ("SCRIPT",),
    "mathbb": ("DOUBLE-STRUCK",),
    "mathfrak": ("FRAKTUR", "BLACK-LETTER"),
    "mathsf": ("SANS-SERIF",),
}
BIG = {"big": 1.2, "Big": 1.8, "bigg": 2.4, "Bigg": 3.0}
DELIMITERS = {"lbrace": "{", "rbrace": "}", "{": "{", "}": "}", "|": "‖", "Vert": "‖"}
DELIMITERS |= {"lvert": "|", "rvert": "|", "vert": "|", "lVert": "‖", "rVert": "‖"}
DELIMITERS |= {"langle": "⟨", "rangle": "⟩", "lfloor": "⌊", "rfloor": "⌋"}
DELIMITERS |= {"lceil": "⌈", "rceil": "⌉", "lbrack": "[", "rbrack": "]"}
MATRICES = {"matrix": "", "smallmatrix": "", "pmatrix": "()", "bmatrix": "[]"}
MATRICES |= {"vmatrix": "||", "Vmatrix": "‖‖", "Bmatrix": "{}", "array": ""}
ALIGNED = {"aligned", "split", "align", "alignedat", "eqnarray"}
GATHERED = {"gathered", "gather", "equation", "displaymath"}

OWN_SYMBOLS = {
    "dots": ("inner", "…"),
    "ldots": ("inner", "…"),
    "cdots": ("inner", "⋯"),
    "vdots": ("ord", "⋮"),
    "ddots": ("inner", "⋱"),
    "cdot": ("bin", "·"),
    "to": ("rel", "→"),
    "gets": ("rel", "←"),
    "iff": ("rel", "⟺"),
    "implies": ("rel", "⟹"),
    "lt": ("rel", "<"),
    "gt": ("rel", ">"),
    "colon": ("punct", ":"),
    "lvert": ("open", "|"),
    "rvert": ("close", "|"),
    "lVert": ("open", "‖"),
    "rVert": ("close", "‖"),
    "vert": ("ord", "|"),
    "|": ("ord", "‖"),
    "{": ("open", "{"),
    "}": ("close", "}"),
    "_": ("ord", "_"),
    "%": ("ord", "%"),
    "#": ("ord", "#"),
    "&": ("ord", "&"),
    "$": ("ord", "$"),
    "emptyset": ("ord", "∅"),
}
CHARACTERS = {
    **dict.fromkeys("=<>:≤≥≠≈∈→←", "rel"),
    **dict.fromkeys("+-*−×·", "bin"),
    **dict.fromkeys("([", "open"),
    **dict.fromkeys(")]!?", "close"),
    **dict.fromkeys(",;", "punct"),
    "…": "inner",
}


STYLES = {r"\displaystyle": "d", r"\textstyle": "t"}


class UnknownTeX(ValueError):
    """TeX that cannot be shown as MathML."""


@dataclass
class Atom:
    """A part of a formula: its kind, its element, and the <mo> that holds its space."""

    kind: str
    element: Element | None = None
    operator: Element | None = None
    limits: bool = False
    kern: float = 0  # of a space alone


def to_mathml(
    tex: str, display: bool = False, symbols: dict[tuple, str] | None = None
) -> str:
    """Convert a formula; raise UnknownTeX where that cannot be done well.

    `symbols` are forms with their names: what has such a form is given the name as
    `data-lights` (lights.py).
    """
    atoms = Parser(tex, display).whole()
    math = make("math", **({"display": "block"} if display else {}))
    lay_out(atoms, math, script=False)
    mark(math, symbols or {})
    return ElementTree.tostring(math, encoding="unicode", short_empty_elements=False)


def mark(element: Element, symbols: dict[tuple, str]) -> None:
    """Name the outermost parts of an element that are one of these symbols."""
    if name := symbols.get(form(element)):
        element.set("data-lights", name)
        return
    for part in element:
        mark(part, symbols)


def form(element: Element) -> tuple:
    """Give what makes an element the same symbol, whatever the space around it."""
    parts = tuple(form(part) for part in element if part.tag != "mspace")
    return element.tag, element.text or "", parts


def form_of(tex: str) -> tuple:
    """Give the form of a symbol that is one element."""
    (element,) = ElementTree.fromstring(to_mathml(tex))
    return form(element)


def make(
    tag: str, *children: Element, text: str | None = None, **attributes
) -> Element:
    """Make an element."""
    element = Element(tag, {name.rstrip("_"): str(v) for name, v in attributes.items()})
    element.text = text
    element.extend(children)
    return element


# ----------------------------------------------------------------------
# From TeX to atoms
# ----------------------------------------------------------------------


class Parser:
    """Reads one formula. `style` is d, t or s: display, text, script."""

    def __init__(self, tex: str, display: bool):
        self.tokens = [m[1] for m in TOKEN.finditer(tex) if m[1]]
        self.at = 0
        self.style = "d" if display else "t"

    def whole(self) -> list[Atom]:
        """Read all of it."""
        atoms = self.atoms()
        if self.at < len(self.tokens):
            raise UnknownTeX(f"{self.peek()!r} has no beginning")
        return atoms

    def peek(self) -> str | None:
        """Give the next token that is no white space."""
        while self.at < len(self.tokens) and self.tokens[self.at].isspace():
            self.at += 1
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, expected: str | None = None) -> str:
        """Take the next token that is no white space."""
        token = self.peek()
        if token is None or (expected and token != expected):
            raise UnknownTeX(f"{expected or 'something'!r} is missing")
        self.at += 1
        return token

    def raw(self) -> str:
        """Take a group as it is written."""
        self.take("{")
        depth, begin = 1, self.at
        while depth:
            if self.at == len(self.tokens):
                raise UnknownTeX("'}' is missing")
            depth += {"{": 1, "}": -1}.get(self.tokens[self.at], 0)
            self.at += 1
        return "".join(self.tokens[begin : self.at - 1])

    def styled(self, style: str, read):
        """Read something in another style."""
        before, self.style = self.style, style
        result = read()
        self.style = before
        return result

    def atoms(self) -> list[Atom]:
        r"""Read up to what ends a list: `}`, `&`, `\\`, `\right`, `\end`."""
        found: list[Atom] = []
        while (token := self.peek()) not in {None, "}", "&", r"\\", r"\right", r"\end"}:
            if token in STYLES:
                found.append(self.rest_in(STYLES[self.take()]))
            elif token in {r"\limits", r"\nolimits"}:
                self.take()
                set_limits(found[-1:], token == r"\limits")
            elif token in {"^", "_", "'"}:
                empty = Atom("ord", make("mrow"))
                base = found.pop() if found and found[-1].element is not None else empty
                found.append(self.scripts(base))
            else:
                found += self.atom()
        return found

    def rest_in(self, style: str) -> Atom:
        """Read the rest of a list in another style."""
        inside = lay_out(self.styled(style, self.atoms), make("mstyle"), script=False)
        inside.set("displaystyle", "true" if style == "d" else "false")
        inside.set("scriptlevel", "0")
        return Atom("ord", inside)

    def row(self) -> Element:
        """Read up to what ends a list, as one element."""
        return row(self.atoms(), self.style == "s")

    def argument(self) -> Element:
        """Read what a command or a script applies to: a group, or one token."""
        token = self.peek()
        if token == "{":
            self.take()
            element = self.row()
            self.take("}")
            return element
        if token and len(token) > 1 and token[0].isdigit():  # \frac12
            self.tokens[self.at : self.at + 1] = [token[0], token[1:]]
        return row(self.atom(), self.style == "s")

    def scripts(self, base: Atom) -> Atom:
        """Read primes, subscripts and superscripts of an atom."""
        below = above = None
        primes = 0
        while (token := self.peek()) in {"^", "_", "'"}:
            self.take()
            if token == "'":
                primes += 1
            elif token == "_":
                below = self.styled("s", self.argument)
            else:
                above = self.styled("s", self.argument)
        if primes:
            prime = make("mo", text="′" * primes, lspace="0", rspace="0")
            above = make("mrow", prime, above) if above is not None else prime
        parts = [part for part in (below, above) if part is not None]
        name = ("under" if base.limits else "sub") if below is not None else ""
        name += ("over" if base.limits else "sup") if above is not None else ""
        return Atom(base.kind, make("m" + name, base.element, *parts), base.operator)

    def atom(self) -> list[Atom]:
        """Read one atom, or what a command stands for."""
        token = self.take()
        if token == "{":
            element = self.row()
            self.take("}")
            return [Atom("ord", element)]
        if token[0] == "\\":
            return self.command(token[1:])
        if token[0].isdigit() or (token[0] == "." and len(token) > 1):
            return [Atom("ord", make("mn", text=token))]
        if token == "~":
            return [Atom("space", kern=4.5)]
        if token.isalpha():
            return [Atom("ord", identifier(token))]
        return [symbol(CHARACTERS.get(token, "ord"), token)]

    def command(self, name: str) -> list[Atom]:
        """Read what follows a command."""
        if name in KERNS:
            return [Atom("space", kern=KERNS[name])]
        if name in {"nonumber", "notag"}:
            return []
        if name in NAMED or name in LIMITS:
            return [function(name, name in LIMITS)]
        if name in {"operatorname", "operatorname*"}:
            return [function(self.raw().replace(r"\,", " "), name.endswith("*"))]
        if name in {"text", "textrm", "textit", "textbf", "texttt", "mbox"}:
            return [Atom("ord", text(name, self.raw()))]
        if name in ALPHABETS or name in {"mathrm", "mathtt"}:
            return [Atom("ord", in_alphabet(name, self.argument()))]
        if name in {"frac", "tfrac", "dfrac"}:
            return [Atom("ord", self.fraction(name))]
        if name in {"label", "hspace", "tag"}:
            return self.beside(name)
        if name == "mathop":
            return [Atom("op", self.argument(), limits=True)]
        if name == "substack":
            return [Atom("ord", self.substack())]
        if name == "binom":
            return [self.binomial()]
        if name == "not":
            return [negated(self.atom())]
        if name in {"bmod", "pmod"}:
            return self.modulo(name)
        if name == "sqrt":
            return [Atom("ord", self.root())]
        if name in ACCENTS:
            return [Atom("ord", accented(self.argument(), ACCENTS[name]))]
        if name in WIDE:
            sign = operator(WIDE[name], stretchy="true")
            return [Atom("ord", make("mover", self.argument(), sign, accent="true"))]
        if name in {"xrightarrow", "xleftarrow"}:
            sign = operator("→" if "right" in name else "←", stretchy="true")
            above = self.styled("s", self.argument)
            return [Atom("rel", make("mover", sign, above), sign)]
        if name in LINES:
            lined = make("mrow", self.argument(), class_=name)
            return [Atom("op" if LINES[name] else "ord", lined, limits=LINES[name])]
        if name in {"underset", "overset", "stackrel"}:
            return [self.stacked("munder" if name == "underset" else "mover")]
        if name == "phantom":
            return [Atom("ord", make("mphantom", self.argument()))]
        if name == "left":
            return [self.fenced()]
        if name.rstrip("lrm") in BIG:
            return [self.big(name)]
        if name == "begin":
            return [self.environment(self.raw())]
        kind, character = OWN_SYMBOLS.get(name) or symbols().get(name, ("", ""))
        if not kind:
            raise UnknownTeX(rf"\{name}")
        return [symbol(kind, character)]

    def fraction(self, name: str) -> Element:
        """Read a fraction."""
        style = {"tfrac": "t", "dfrac": "d"}.get(name, self.style)
        parts = [self.styled("t" if style == "d" else "s", self.argument) for _ in "ab"]
        fraction = make("mfrac", *parts)
        if style != self.style:
            fraction.set("displaystyle", "true" if style == "d" else "false")
        return fraction

    def binomial(self) -> Atom:
        """Read a binomial coefficient: a fraction without its line, in brackets."""
        fraction = self.fraction("frac")
        fraction.set("linethickness", "0")
        return fence("(", [Atom("ord", fraction)], ")", self.style == "s")

    def beside(self, name: str) -> list[Atom]:
        """Read what is no part of a formula: its name, a space, its number."""
        given = self.raw()
        if name == "label":
            return []
        space = Atom("space", kern=18)
        return [space, Atom("ord", text("text", f"({given})"))][: 1 + (name == "tag")]

    def substack(self) -> Element:
        """Read lines, one below the other, of a limit."""
        self.take("{")
        rows = self.cells(aligned=False)
        self.take("}")
        table = make("mtable", class_="gathered")
        for cells in rows:
            line = ElementTree.SubElement(table, "mtr")
            for cell in cells:
                lay_out(cell, ElementTree.SubElement(line, "mtd"), script=True)
        return table

    def modulo(self, name: str) -> list[Atom]:
        """Read what follows a modulo, which stands between two numbers or behind."""
        if name == "bmod":
            return [Atom("bin", word("mod"))]
        left, right = symbol("open", "("), symbol("close", ")")
        inside = [function("mod", limits=False), Atom("ord", self.argument())]
        return [Atom("space", kern=8), left, *inside, right]

    def root(self) -> Element:
        """Read a root, with its degree if it has one."""
        if self.peek() != "[":
            radicand = self.argument()
            root = make("msqrt", *([radicand] if radicand.tag != "mrow" else radicand))
            room = 5 if is_tall(root) else 2 if root.find(".//msup") is not None else 0
            if room:  # math_font.py lets the taller signs stand out
                root.set("style", f"margin-left:{em(room)}")
            return root
        degree = "".join(iter(self.take, "]"))[1:]
        return make("mroot", self.argument(), make("mn", text=degree))

    def stacked(self, tag: str) -> Atom:
        """Read an atom with something above or below it."""
        beside = self.styled("s", self.argument)
        inside = self.peek() == "{" and self.take()
        atoms = self.atoms() if inside else self.atom()
        if inside:
            self.take("}")
        if len(atoms) == 1:
            kind, carrier = atoms[0].kind, atoms[0].operator
            return Atom(kind, make(tag, atoms[0].element, beside), carrier)
        return Atom("ord", make(tag, row(atoms, self.style == "s"), beside))

    def delimiter(self) -> str:
        """Read a delimiter; `.` is none."""
        token = self.take()
        character = DELIMITERS.get(token[1:]) if token[0] == "\\" else token
        if not character or character not in "()[]{}|‖⟨⟩⌊⌋⌈⌉./<>":
            raise UnknownTeX(f"{token} is no delimiter")
        return {".": "", "<": "⟨", ">": "⟩"}.get(character, character)

    def fenced(self) -> Atom:
        r"""Read from `\left` to `\right`."""
        left = self.delimiter()
        inside = self.atoms()
        self.take(r"\right")
        return fence(left, inside, self.delimiter(), self.style == "s")

    def big(self, name: str) -> Atom:
        r"""Read a delimiter of a chosen size, as in `\bigl(`."""
        size = f"{BIG[name.rstrip('lrm')]}em"
        character = self.delimiter()
        side = name[len(name.rstrip("lrm")) :]
        natural = "open" if character in "([{⟨⌊⌈" else "close"
        natural = "ord" if character in "|‖/" else natural
        kind = {"l": "open", "r": "close", "m": "rel"}.get(side, natural)
        sized = operator(character, stretchy="true", symmetric="true")
        sized.attrib |= {"minsize": size, "maxsize": size}
        return Atom(kind, sized, sized)

    def environment(self, name: str) -> Atom:
        """Read a matrix, cases or lines."""
        name = name.rstrip("*")
        lines = name in ALIGNED | GATHERED
        if not lines and name not in {*MATRICES, "cases"}:
            raise UnknownTeX(rf"\begin{{{name}}}")
        if name == "array":
            self.raw()  # where columns are aligned: in the middle, here
        rows = self.styled("d" if lines else "t", lambda: self.cells(name in ALIGNED))
        self.take(r"\end")
        self.raw()
        if name in ALIGNED | GATHERED and len(rows) == len(rows[0]) == 1:
            return Atom("ord", row(rows[0][0], self.style == "s"))
        table = make("mtable", class_="aligned" if name in ALIGNED else name)
        if name in GATHERED:
            table.set("class", "gathered")
        if lines:
            table.set("displaystyle", "true")
        for cells in rows:
            line = ElementTree.SubElement(table, "mtr")
            for cell in cells:
                lay_out(cell, ElementTree.SubElement(line, "mtd"), script=False)
        if lines:
            return Atom("ord", table)
        left, right = "{", ""
        if name != "cases":
            left, right = MATRICES[name] or ("", "")
        return fence(left, [Atom("ord", table)], right, script=False)

    def cells(self, aligned: bool) -> list[list[list[Atom]]]:
        """Read rows of cells. An aligned formula goes on in its every second cell."""
        rows: list[list[list[Atom]]] = [[]]
        while True:
            cell = self.atoms()
            if aligned and len(rows[-1]) % 2:
                cell.insert(0, Atom("ord"))
            rows[-1].append(cell)
            if self.peek() == "&":
                self.take()
            elif self.peek() == r"\\":
                self.take()
                if self.at < len(self.tokens) and self.tokens[self.at] == "[":
                    while self.take() != "]":  # space between lines: as elsewhere
                        pass
                rows.append([])
            else:
                break
        if rows[-1] == [[]] and len(rows) > 1:
            rows.pop()
        return rows


# ----------------------------------------------------------------------
# Atoms
# ----------------------------------------------------------------------


def symbols(known: dict = {}) -> dict[str, tuple[str, str]]:  # noqa: B006 - a cache
    """Give latex2mathml's table: name -> kind of atom and character."""
    if not known:
        table = importlib.resources.files("latex2mathml") / "unimathsymbols.txt"
        kinds = {"mathord": "ord", "mathalpha": "ord", "mathbin": "bin"}
        kinds |= {"mathrel": "rel", "mathop": "op", "mathopen": "open"}
        kinds |= {"mathclose": "close", "mathpunct": "punct", "mathfence": "ord"}
        for line in table.read_text("utf-8").splitlines():
            if line.startswith("#") or line.count("^") < 6:
                continue
            code, _char, *commands, _class, category, _rest = line.split("^", 6)
            remarks = re.findall(r"= (\\[A-Za-z]+),", line.split("^")[-1] + ",")
            for command in (*commands, *remarks):
                if command.startswith("\\") and category in kinds:
                    entry = kinds[category], chr(int(code, 16))
                    known.setdefault(command[1:], entry)
    return known


def operator(character: str, **attributes) -> Element:
    """Make an <mo>."""
    return make("mo", text=character, **attributes)


def identifier(letter: str) -> Element:
    """Make a variable: slanted, but for Greek capitals."""
    element = make("mi", text=letter)
    if "Α" <= letter <= "Ω":
        element.set("mathvariant", "normal")
    return element


def word(name: str) -> Element:
    """Make a variable or function of letters that stand upright."""
    upright = {"mathvariant": "normal"} if len(name) == 1 else {}
    return make("mi", text=name, **upright)


def symbol(kind: str, character: str) -> Atom:
    """Make the atom of one character."""
    if kind == "ord" and (character.isalpha() or character in "∞∂∇∅⊤⊥%#$&_"):
        return Atom(kind, identifier(character))
    element = operator({"-": "−", "*": "∗"}.get(character, character))
    if kind in {"open", "close", "ord"}:
        element.set("stretchy", "false")
    return Atom(kind, element, element, limits=character in "∑∏⋃⋂⨁⨂∐")


def function(name: str, limits: bool) -> Atom:
    """Make a named function; only <mo> knows that its limits may move."""
    if not limits:
        return Atom("op", word(name))
    element = operator(name, movablelimits="true")
    return Atom("op", element, element, limits=True)


def set_limits(last: list[Atom], limits: bool) -> None:
    """Say where the limits of an operator stand, whatever the style."""
    if not last or last[0].operator is None:
        raise UnknownTeX("limits of nothing that has them")
    last[0].limits = limits
    last[0].operator.set("movablelimits", "false")


def negated(atoms: list[Atom]) -> Atom:
    """Strike a relation through."""
    if len(atoms) != 1 or atoms[0].operator is None:
        raise UnknownTeX(r"\not")
    (atom,) = atoms
    struck = f"{atom.operator.text}\N{COMBINING LONG SOLIDUS OVERLAY}"
    atom.operator.text = unicodedata.normalize("NFC", struck)
    return atom


def text(name: str, content: str) -> Element:
    """Make words; spaces at their ends count."""
    if "$" in content or re.search(r"\\[a-zA-Z]", content):
        raise UnknownTeX(rf"\{name}{{{content}}}")
    content = re.sub(r"\\(.)", r"\1", re.sub(r"\s+", " ", content))
    element = make("mtext", text=content.replace(" ", "\N{NO-BREAK SPACE}"))
    style = {"textit": "font-style:italic", "textbf": "font-weight:bold"}.get(name)
    if style or name == "texttt":
        element.set("style", style or "font-family:monospace")
    return element


def in_alphabet(name: str, element: Element) -> Element:
    r"""Give every letter in another alphabet; what `\mathrm` holds is one word."""
    leaves = list(element.iter("mi")) + list(element.iter("mn"))
    if name in {"mathrm", "mathtt"}:
        parts = [element] if element.tag != "mrow" else list(element)
        if all(part.tag in {"mi", "mn"} for part in parts):
            element = word("".join(part.text for part in parts))
            leaves = [element]
        for leaf in leaves:
            if len(leaf.text) == 1 and leaf.tag == "mi":
                leaf.set("mathvariant", "normal")
            if name == "mathtt":
                leaf.set("style", "font-family:monospace")
        return element
    for leaf in leaves:
        leaf.attrib.pop("mathvariant", None)
        leaf.text = "".join(letter_in(name, letter) for letter in leaf.text)
    return element


def letter_in(name: str, letter: str) -> str:
    """Give one letter of an alphabet of Unicode, some of which lie elsewhere."""
    plain = unicodedata.name(letter)
    plain = re.sub(r"^(LATIN|GREEK) |LETTER ", "", plain)
    for style in ALPHABETS[name]:
        for full in (f"MATHEMATICAL {style} {plain}", f"{style} {plain}"):
            try:
                return unicodedata.lookup(full)
            except KeyError:
                continue
    if letter == "h" and name == "mathit":
        return "ℎ"
    raise UnknownTeX(rf"\{name}{{{letter}}}")


def accented(base: Element, mark: str) -> Element:
    """Put an accent over an element."""
    return make("mover", base, operator(mark, stretchy="false"), accent="true")


def fence(left: str, inside: list[Atom], right: str, script: bool) -> Atom:
    """Put delimiters around atoms that grow with them."""
    group = make("mrow")
    inner = row([Atom("open"), *inside, Atom("close")], script)
    if left:
        shape = {"form": "prefix", "stretchy": "true"} | no_space(left)
        if is_tall(inner):  # math_font.py lets it stand out
            shape["lspace"] = em(1.5)
        group.append(operator(left, **shape))
    group.extend(inner if inner.tag == "mrow" else [inner])
    if right:
        shape = {"form": "postfix", "stretchy": "true"}
        group.append(operator(right, **shape, **no_space(right)))
    return Atom("inner", group)


def is_tall(element: Element) -> bool:
    """Whether something within stands higher than a line."""
    return any(part.tag in {"mfrac", "mtable", "munderover"} for part in element.iter())


def no_space(character: str) -> dict[str, str]:
    """Give attributes for a bar, beside which browsers would leave space."""
    return {"lspace": "0", "rspace": "0"} if character in "|‖/" else {}


# ----------------------------------------------------------------------
# From atoms to rows
# ----------------------------------------------------------------------


def row(atoms: list[Atom], script: bool) -> Element:
    """Lay atoms out in one element."""
    group = lay_out(atoms, make("mrow"), script)
    return group[0] if len(group) == 1 else group


def lay_out(atoms: list[Atom], group: Element, script: bool) -> Element:
    """Put atoms into an element, with TeX's spaces between them."""
    real = [atom for atom in atoms if atom.kind != "space"]
    settle_signs(real)
    before: dict[int, float] = {}
    after: dict[int, float] = {}
    between: dict[int, float] = {}  # space before an atom that no <mo> holds
    for left, right in itertools.pairwise(real):
        space = SPACES[left.kind][KINDS.index(right.kind)]
        space = 0 if script and space < 0 else abs(space)
        if left.operator is not None:
            after[id(left)] = space
        elif right.operator is not None:
            before[id(right)] = space
        else:
            between[id(right)] = space
    shown = [atom for atom in real if atom.element is not None]
    pending = 0.0
    for atom in atoms:
        if atom.kind == "space":
            pending += atom.kern
            continue
        pending += between.get(id(atom), 0)
        if atom.element is None:
            continue
        hold_space(atom, before.get(id(atom), 0), after.get(id(atom), 0), shown)
        if pending > 0:
            group.append(make("mspace", width=em(pending)))
        elif pending < 0:
            narrow(atom, pending)
        pending = 0.0
        group.append(atom.element)
    if pending > 0:
        group.append(make("mspace", width=em(pending)))
    return group


def settle_signs(atoms: list[Atom]) -> None:
    """Make a sign with nothing to its left, or to its right, an ordinary atom."""
    last = None
    for atom in atoms:
        no_left = last is None or last.kind in {"bin", "op", "rel", "open", "punct"}
        if atom.kind == "bin" and no_left:
            atom.kind = "ord"
        if atom.kind in {"rel", "close", "punct"} and last and last.kind == "bin":
            last.kind = "ord"
        last = atom
    if last and last.kind == "bin":
        last.kind = "ord"


def hold_space(atom: Atom, before: float, after: float, row: list[Atom]) -> None:
    """Tell an operator of its space, unless a browser leaves just that by itself."""
    holder = atom.operator
    if holder is None:
        return
    inside = atom is not row[0] and atom is not row[-1]
    plain = {"stretchy"} >= set(holder.attrib)
    if (
        inside
        and plain
        and holder is atom.element
        and KNOWN_SPACES.get(holder.text) == (before, after)
    ):
        return
    if holder.text in "()[]{}" and before == after == 0:
        return
    holder.attrib |= {"lspace": em(before), "rspace": em(after)}


def narrow(atom: Atom, space: float) -> None:
    """Move an atom to the left; <mspace> cannot be negative."""
    style = atom.element.get("style")
    rule = f"margin-left:{em(space)}"
    atom.element.set("style", f"{style};{rule}" if style else rule)


def em(space: float) -> str:
    """Write eighteenths of an em."""
    return f"{space / 18:.4g}em" if space else "0"


# ----------------------------------------------------------------------
# Without the site's style sheet
# ----------------------------------------------------------------------

_TICK = "linear-gradient(currentcolor 0 0)"
_BRACE = "background:{0} left {1}/1px .3em no-repeat,{0} right {1}/1px .3em no-repeat,"
_BRACE += "{0} left {1}/100% 1px no-repeat;padding-{1}:.35em"
_LINE = "background:{0} {1}/100% 1px no-repeat;padding-{1}:.12em"
ROWS = {
    "underbrace": _BRACE.format(_TICK, "bottom"),
    "overbrace": _BRACE.format(_TICK, "top"),
    "overline": _LINE.format(_TICK, "top"),
    "underline": _LINE.format(_TICK, "bottom"),
}
# of cells in columns of odd and of even numbers; the first is number 0
TABLES = {
    "aligned": (
        "padding:.22em 0 .22em 2em;text-align:-webkit-right",
        "padding:.22em 0;text-align:-webkit-left",
    ),
    "gathered": ("padding:.22em 0", "padding:.22em 0"),
    "cases": (
        "padding:.16em 1em .16em 0;text-align:-webkit-left",
        "padding:.16em 1em .16em 0;text-align:-webkit-left",
    ),
}


def standing_alone(tex: str, display: bool = False) -> str:
    """Convert a formula for a page that has no rules for what is drawn by them.

    Raises:
        UnknownTeX: it cannot be converted.
    """
    math = ElementTree.fromstring(to_mathml(tex, display))
    for element in math.iter():
        name = element.attrib.pop("class", "")
        if name in ROWS:
            element.set("style", ROWS[name])
        if element.tag == "mtable":
            for line in element:
                for number, cell in enumerate(line):
                    plain = "padding:.16em .45em"
                    style = TABLES.get(name, (plain, plain))[number % 2]
                    cell.set("style", style if number else f"{style};padding-left:0")
    return ElementTree.tostring(math, encoding="unicode", short_empty_elements=False)
