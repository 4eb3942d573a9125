"""Formulas as MathML: TeX's spaces, what stands where, and what is refused."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docutils import nodes

from autograder.mathml import UnknownTeX, standing_alone, to_mathml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_extensions"))

from mathml import bound  # noqa: E402


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
        (r"a \not= b", "<mo>≠</mo>"),
        (r"a \not\in b", ">∉</mo>"),
        (r"a \iff b", '<mo lspace="0.2778em" rspace="0.2778em">⟺</mo>'),
        (r"\sum\nolimits_i x", "<msub><mo"),
        (r"\binom n k", '<mfrac linethickness="0"><mi>n</mi><mi>k</mi></mfrac>'),
        (r"\widehat{ab}", '<mo stretchy="true">^</mo></mover>'),
        (r"a \bmod b", '<mi>mod</mi><mspace width="0.2222em"></mspace><mi>b</mi>'),
        (r"x \tag{3}", '<mspace width="1em"></mspace><mtext>(3)</mtext>'),
        (r"x \label{a} \nonumber", "<mi>x</mi>"),
        (r"\xrightarrow{f}", "<mover><mo"),
        (r"\sum_{\substack{a\\b}} x", '<mtable class="gathered">'),
        (r"a + \textstyle \sum_i b", '<mstyle displaystyle="false" scriptlevel="0">'),
    ],
)
def test_formula_becomes_what_tex_would_set(tex, expected):
    assert expected in within(tex, display=True)


def test_a_style_and_limits_hold_in_a_line_too():
    said = within(r"\displaystyle \frac{1}{2} + \sum_i x")
    assert said.startswith('<mstyle displaystyle="true" scriptlevel="0"><mfrac>')
    assert r"<munder>" in within(r"\sum\limits_i x")
    assert 'movablelimits="false"' in within(r"\sum\limits_i x")


def test_what_the_site_draws_by_its_rules_stands_alone_elsewhere():
    tex = r"\underbrace{\overline{a}}_{b} \begin{aligned}a&=b\\c&=d\end{aligned}"
    alone = ElementTree.fromstring(standing_alone(tex, display=True))
    drawn = ElementTree.fromstring(to_mathml(tex, display=True))
    assert [each.tag for each in alone.iter()] == [each.tag for each in drawn.iter()]
    assert not any("class" in each.attrib for each in alone.iter())
    for each, same in zip(drawn.iter(), alone.iter(), strict=True):
        if "class" in each.attrib and each.tag == "mrow":
            assert "padding" in same.get("style")
    assert {len(line) for line in alone.iter("mtr")} == {2}
    assert all("padding" in cell.get("style") for cell in alone.iter("mtd"))


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
     r"\limits_a", r"\not x", r"\href{a}{b}",
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
