"""Formulas as MathML: TeX's spaces, what stands where, and what is refused."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docutils import nodes

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_extensions"))

from mathml import UnknownTeX, bound, to_mathml  # noqa: E402


def within(tex: str, display: bool = False) -> str:
    """Convert, and give what stands within <math>."""
    return to_mathml(tex, display).partition(">")[2].removesuffix("</math>")


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        ("a-b", "<mi>a</mi><mo>−</mo><mi>b</mi>"),
        ("-b", '<mo lspace="0" rspace="0">−</mo><mi>b</mi>'),
        ("a=-1", '=</mo><mo lspace="0" rspace="0">−</mo><mn>1</mn>'),
        (r"10{,}000", '<mn>10</mn><mo lspace="0" rspace="0">,</mo><mn>000</mn>'),
        (r"\ln x", '<mi>ln</mi><mspace width="0.1667em"></mspace><mi>x</mi>'),
        (r"\ln(x)", '<mi>ln</mi><mo stretchy="false">(</mo>'),
        (r"x^{a+b}", '<mo lspace="0" rspace="0">+</mo>'),
        (r"a\,b", '<mi>a</mi><mspace width="0.1667em"></mspace><mi>b</mi>'),
        (r"a\!b", '<mi style="margin-left:-0.1667em">b</mi>'),
        (r"\tfrac12 .5", "<mn>1</mn><mn>2</mn></mfrac><mn>.5</mn>"),
        (r"x_10", "<msub><mi>x</mi><mn>1</mn></msub><mn>0</mn>"),
        (r"d_\text{model}", "<msub><mi>d</mi><mtext>model</mtext></msub>"),
        (r"x'_i", '<mi>i</mi><mo lspace="0" rspace="0">′</mo></msubsup>'),
        (r"\mathrm{PE}", "<mi>PE</mi>"),
        (r"\mathbb{R}", "<mi>ℝ</mi>"),
        (r"\mathcal L", "<mi>ℒ</mi>"),
        (r"\mathbf{W}", "<mi>𝐖</mi>"),
        (r"\Delta\delta", '<mi mathvariant="normal">Δ</mi><mi>δ</mi>'),
        (r"\sum_i^n x", "<munderover><mo"),
        (r"\max_i x", '<munder><mo movablelimits="true"'),
        (r"\underbrace{a b}_{c}", '<munder><mrow class="underbrace">'),
        (r"\hat y", '<mover accent="true"><mi>y</mi>'),
        (r"\sqrt[3]{x}", "<mroot><mi>x</mi><mn>3</mn></mroot>"),
        (r"a < b", "<mo>&lt;</mo>"),
    ],
)
def test_formula_becomes_what_tex_would_set(tex, expected):
    assert expected in within(tex, display=True)


def test_lines_are_aligned_cell_by_cell():
    lines = r"a &= b\\[2pt] &= c &\ & (1)"
    tex = rf"\begin{{split}}\begin{{aligned}}{lines}\end{{aligned}}\end{{split}}"
    table = ElementTree.fromstring(to_mathml(tex, display=True)).find("mtable")
    assert table.get("class") == "aligned"
    assert [len(line) for line in table] == [2, 4]
    sign = table[0][1][0]
    assert sign.text == "="
    assert sign.get("lspace") == sign.get("rspace") == "0.2778em"


def test_matrix_and_cases_have_their_delimiters():
    for tex, signs in (
        (r"\begin{bmatrix}1&2\\3&4\end{bmatrix}", "[]"),
        (r"\begin{cases}1&2\\3&4\end{cases}", "{"),
    ):
        root = ElementTree.fromstring(to_mathml(tex, display=True))
        assert "".join(sign.text for sign in root.iter("mo")) == signs
        assert [len(line) for line in root.iter("mtr")] == [2, 2]


@pytest.mark.parametrize(
    "tex",
    [r"\nosuchcommand", r"\begin{tikzcd}a\end{tikzcd}", "{a", "a}", r"\left( a",
     r"\text{$x$}", r"\mathbb{é}", "x^", r"\frac{1}", r"\bigl x"],
)  # fmt: skip
def test_what_cannot_be_shown_is_refused(tex):
    with pytest.raises(UnknownTeX):
        to_mathml(tex)


@pytest.mark.parametrize(
    ("before", "after", "together"),
    [
        ("a shape (", ", d) of two", "($T$,"),
        ("the width ", ". Then", "$T$."),
        ("a ", "-dimensional-vectors, ", "$T$-"),
        ("the width ", " of", ""),
        ("half-", "’s", "half-$T$’s"),
    ],
)
def test_what_touches_a_formula_stays_in_its_line(before, after, together):
    parts = [nodes.Text(before), nodes.math("", "$T$"), nodes.Text(after)]
    made = bound(parts)
    assert "".join(each.astext() for each in made) == f"{before}$T${after}"
    lines = [each.astext() for each in made if isinstance(each, nodes.inline)]
    assert lines == ([together] if together else [])
