"""Make book/_static/mathfont/stix-two-math.woff2 from STIXTwoMath-Regular.ttf.

    python -m pip install brotli
    python -m tools.site.math_font STIXTwoMath-Regular.ttf

Keeps the characters of CHARACTERS, and the taller forms of delimiters and roots. Two
things are changed besides: browsers leave room for the widest form of a delimiter or a
root, whichever they draw, so no form is wider than the first by more than a little;
and the prime is the one made for superscripts, where alone formulas have it.
"""

import sys
from pathlib import Path

from fontTools import subset

TARGET = Path(__file__).resolve().parents[2] / "book" / "_static" / "mathfont"

CHARACTERS = """
    0020-007E 00A0 00AF 00B1 00B7 00D7 00F7 02C6 02D9 02DC 0391-03A9 03B1-03C9 03D5 03F5
    2016 2019 2026 2032 210E 2112 2113 211D 2190-2192 2202 2203 2207 2208 220F 2211-2213
    2217 221A 221E 2223 2225 2227-222B 223C 2248 2260 2264 2265 226A 226B 2295 2297 2299
    22A4 22A5 22EE 22EF 2308-230B 23DE 23DF 1D434-1D467 1D6FC-1D714 1D715 1D716 1D719
    1D4A9
"""
WIDER = 110  # thousandths of an em
TALLER = 8  # forms of a delimiter; beyond, it is put together from parts
PRIME = 0x2032


def main() -> None:
    """Read the font, change it, cut it, write it."""
    options = subset.Options(flavor="woff2", hinting=False, layout_features=[])
    options.drop_tables += ["DSIG", "GDEF", "GPOS", "GSUB"]
    font = subset.load_font(sys.argv[1], options)
    use_raised_prime(font)
    even_widths(font)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=characters())
    cutter.subset(font)
    subset.save_font(font, TARGET / "stix-two-math.woff2", options)


def characters() -> set[int]:
    """Give the numbers of CHARACTERS."""
    spans = [span.partition("-") for span in CHARACTERS.split()]
    return {
        code
        for first, _, last in spans
        for code in range(int(first, 16), int(last or first, 16) + 1)
    }


def use_raised_prime(font) -> None:
    """Let the prime's number lead to its form for superscripts."""
    plain = font.getBestCmap()[PRIME]
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for table in lookup.SubTable:
            forms = getattr(table, "alternates", {}).get(plain)
            if forms:
                for cmap in font["cmap"].tables:
                    cmap.cmap[PRIME] = forms[0]


def even_widths(font) -> None:
    """Move taller forms of an opening delimiter or a root to the left."""
    variants = font["MATH"].table.MathVariants
    names = variants.VertGlyphCoverage.glyphs
    by_name = dict(zip(names, variants.VertGlyphConstruction, strict=True))
    cmap = font.getBestCmap()
    for character in "()[]{}⌊⌋⌈⌉√":
        forms = by_name[cmap[ord(character)]]
        records = forms.MathGlyphVariantRecord
        forms.MathGlyphVariantRecord = records[: TALLER if character != "√" else None]
        glyphs = [record.VariantGlyph for record in forms.MathGlyphVariantRecord]
        parts = [part.glyph for part in forms.GlyphAssembly.PartRecords]
        room = 0 if character == "√" else WIDER
        widest = font["hmtx"][glyphs[0]][0] + room
        for name in dict.fromkeys(glyphs + parts):
            narrow(font, name, widest, stays=character in ")]}⌋⌉")


def narrow(font, name: str, widest: int, stays: bool) -> None:
    """Let a glyph stand out at one side instead of being wider."""
    width, left = font["hmtx"][name]
    if width <= widest:
        return
    move = 0 if stays else widest - width
    glyph = font["glyf"][name]
    glyph.coordinates.translate((move, 0))
    glyph.recalcBounds(font["glyf"])
    font["hmtx"][name] = (widest, left + move)


if __name__ == "__main__":
    main()
