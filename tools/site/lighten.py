"""Make built pages light: one style sheet without unused rules, few scripts.

`lighten(site, cache)` changes the files of a built site in place. What a page loads,
read from its top to its end, is weighed afterwards; a page over LIMIT fails the build.
"""

import functools
import gzip
import hashlib
import html
import json
import math
import re
import shutil
import struct
from pathlib import Path
from xml.etree import ElementTree

import tinycss2
from PIL import Image

from tools.site import section_heights

# How high the letters of a plot are at least where it scrolls in its own frame, and how
# wide it must be then before it does so on a phone, in pixels
LETTERS = 9
PHONE = 412

# What a page may weigh, with all that loads on scrolling, compressed. What is loaded
# when somebody asks for it, as a model, is not in it.
LIMIT = 300_000

# Scripts that are not needed anywhere: course.js does what the theme's would do
NEVER = (
    "scripts/bootstrap.js",
    "scripts/fontawesome.js",
    "scripts/sphinx-book-theme.js",
    "scripts/pydata-sphinx-theme.js",
    "sphinx_highlight.js",  # marks what was searched for, on later pages, too
)
# Sphinx's search and its index, which book/_static/search.js stands for
SEARCH = ("searchtools.js", "language_data.js", "searchindex.js")
# Scripts that a page needs when it holds one of these classes
NEEDED_BY = {
    "clipboard.min.js": ("highlight",),
    "copybutton.js": ("highlight",),
    "togglebutton.js": ("toggle", "admonition dropdown"),
    "design-tabs.js": ("sd-tab-set",),
}
THEME_SCRIPTS = ("doctools.js", "course.js")
# Chosen before the page is drawn, so that it is drawn once
THEME = """
(() => {
  const { dataset } = document.documentElement;
  let mode = "auto";
  try { mode = localStorage.getItem("mode") || mode; } catch { }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.mode = mode;
  dataset.theme = ["light", "dark"].includes(mode) ? mode : dark ? "dark" : "light";
})();
"""
LEFT_OVER = (
    "locales",
    "webpack-macros.html",
    "sbt-webpack-macros.html",
    "basic.css",
)

SCRIPT = re.compile(r"[ \t]*<script\b([^>]*)>(.*?)</script>\n?", re.DOTALL)
STYLE = re.compile(r"[ \t]*<link\b[^>]*\bhref=\"([^\"]+\.css[^\"]*)\"[^>]*>\n?")
IMAGE = re.compile(r"<img\b([^>]*?)\s*/?>")
SCALED_TEXT = re.compile(r"\bscale\((0\.\d+) -0\.\d+\)")
SOURCE = re.compile(r'\bsrc="([^"]+)"')
NOSCRIPT = re.compile(r"<noscript>.*?</noscript>", re.DOTALL)
INNER_SECTION = re.compile(r"<h2\b")
CODE = re.compile(r"<pre\b.*?</pre>", re.DOTALL)
# Words of code within a line that a phone's line hardly holds, options excepted, and
# the joints where they may break; a name without any breaks before its capitals
LONG_CODE = re.compile(
    r'<span class="pre">((?:[^<&-]|&[#\w]+;){24,}|(?:[^<&]|&[#\w]+;){30,})</span>'
)
JOINT = re.compile(r"(?<=\w[_/=,(|])(?=\w)|(?<=\w\.)(?=[^\W\d])")
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Names, punctuation and white space in code: as both themes of _config.yml show them,
# they look like the text around them
PLAIN_SPAN = re.compile(r'<span class="(?:n|nn|nx|p|pm|w)">([^<]*)</span>')
# Code, not what a program has printed, whose columns stay one below the other
SOURCE_CODE = re.compile(
    r'(<div class="[^"]*\bhighlight-(?!none|text|myst-ansi)[^"]*">'
    r'<div class="highlight"><pre[^>]*>)(.*?)(?=</pre>)',
    re.DOTALL,
)
LONG_LINE = 40  # letters: what a phone shows in a line
TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
ROW_NAME = re.compile(r"(<tr[^>]*>\s*)<td>(.*?)</td>", re.DOTALL)
# A script names classes and tags in texts
SCRIPT_TEXT = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|`[^`]*`")
WORD = re.compile(r"[A-Za-z_][\w-]*")
ASKED = re.compile(r"var\(\s*(--[\w-]+)")
# What publishing.py writes on every page, anew with every commit
STAMP = re.compile(r'( data-verified="[^"]*">)(.*?)</p>')


def lighten(site: Path, cache: Path) -> None:
    """Change all pages of a built site; refuse one that is too heavy.

    What was worked out for a page is kept in `cache` for the next time.
    """
    pages = {path: path.read_text("utf-8") for path in sorted(site.rglob("*.html"))}
    pages = {path: text for path, text in pages.items() if is_page(path, text, site)}
    write_theme_script(site)
    sheets = write_sheets(site, pages, cache)
    around = digest(site, "theme.js") + json.dumps([*sheets.items()])
    around += pictures_by_name(site)
    for path, text in pages.items():
        bare, stamp = parted(text)
        work = functools.partial(light_page, site, path, bare, sheets)
        place = str(path.relative_to(site))
        light = remembered(cache, f"{around}{place}{bare}", work)
        pages[path] = STAMP.sub(lambda match, it=stamp: f"{match[1]}{it}</p>", light, 1)
        path.write_text(pages[path], "utf-8")
    remove_left_overs(site, {name for names in sheets for name in names})
    weights = {path: weigh(site, path, text, cache) for path, text in pages.items()}
    report(site, weights)


def remembered(cache: Path, key: str, work) -> str:
    """Give what `work` gave for the same key before, or let it work."""
    key += own_text()
    stored = cache / hashlib.sha256(key.encode()).hexdigest()
    if not stored.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        stored.write_text(work(), "utf-8")
    return stored.read_text("utf-8")


@functools.cache
def own_text() -> str:
    """Give what works a page out, which may change, too."""
    paths = (Path(__file__), Path(section_heights.__file__))
    return "".join(path.read_text("utf-8") for path in paths)


def parted(text: str) -> tuple[str, str]:
    """Part a page and its stamp, so that a commit does not make all pages new."""
    match = STAMP.search(text)
    if match is None:
        return text, ""
    return text[: match.start(2)] + text[match.end(2) :], match[2]


def pictures_by_name(site: Path) -> str:
    """Give a digest of the pictures whose names are not made from their content."""
    pictures = [
        path
        for path in sorted((site / "_images").glob("*"))
        if not re.fullmatch(r"[0-9a-f]{64}", path.stem)
    ]
    return "".join(hashlib.sha256(path.read_bytes()).hexdigest() for path in pictures)


def is_page(path: Path, text: str, site: Path) -> bool:
    """Whether a file is a page with the theme around it, still as it was built."""
    within = path.relative_to(site).parts
    return "_static" not in within and bool(sheets_of(text))


# ----------------------------------------------------------------------
# Pages
# ----------------------------------------------------------------------


def light_page(
    site: Path, path: Path, text: str, sheets: dict[tuple[str, ...], str]
) -> str:
    """Give the page's text with fewer and later requests."""
    root = "../" * len(path.relative_to(site).parent.parts)
    here = f"{root}_static/"
    text = re.sub(r'<link rel="preload"[^>]*as="script"[^>]*>\s*', "", text)
    text = one_viewport(text)
    # where scripts are off, nothing replaces "auto", which no rule knows
    text = text.replace('data-theme="auto"', 'data-theme="light"', 1)
    text = re.sub(r'<div id="ethical-ad-placement".*?</div>', "", text, flags=re.DOTALL)
    text = LONG_CODE.sub(
        lambda match: f'<span class="pre long">{with_joints(match[1])}</span>',
        text,
    )
    text = CODE.sub(lambda match: without_plain_spans(match[0]), text)
    text = SOURCE_CODE.sub(lambda match: match[1] + with_folds(match[2]), text)
    first = iter([f'<link rel="stylesheet" href="{here}{sheets[sheets_of(text)]}">\n'])
    text = STYLE.sub(lambda match: next(first, ""), text)
    text = light_scripts(site, path, text, here)
    text = IMAGE.sub(functools.partial(sized_image, path), text)
    text = with_first_picture(text)
    return section_heights.with_heights(with_names(text))


def with_first_picture(text: str) -> str:
    """Have a picture that opens a page come at once: it is the largest thing to see."""
    head, divide, article = text.partition("<article")
    opening = INNER_SECTION.split(NOSCRIPT.sub("", article), maxsplit=1)[0]
    first = re.search(r"<img\b[^>]*>", opening)
    if first is None:
        return text
    lazy = first[0]
    soon = lazy.replace(' loading="lazy"', ' fetchpriority="high"')
    return head + divide + article.replace(lazy, soon, 1)


def without_plain_spans(code: str) -> str:
    """Drop elements of code that look like plain text: a third of a chapter's."""
    return PLAIN_SPAN.sub(r"\1", code)


def with_folds(code: str) -> str:
    """Put each long line into an element that says how far it is indented.

    Where it is too long for a screen, it goes on below, further to the right. A line
    with only a part of an element in it, as of a long text, is left as it is.
    """
    lines = code.split("\n")
    for i, line in enumerate(lines):
        bare = html.unescape(re.sub(r"<[^>]*>", "", line))
        opened = len(re.findall(r"<[^/]", line)) - line.count("</")
        if len(bare) > LONG_LINE and opened == 0 and not line.startswith("</"):
            indent = len(bare) - len(bare.lstrip())
            lines[i] = f'<span class="fold" style="--in: {indent}">{line}</span>'
    return "\n".join(lines)


def with_names(text: str) -> str:
    """Name what a screen reader would meet without a name."""
    text = re.sub(
        r'(<a class="(?:current )?reference internal" href="[^"]*">)([^<]*)'
        "(</a><details[^>]*>)<summary>",
        r'\1\2\3<summary aria-label="Pages of \2">',
        text,
    )
    text = text.replace('<th class="head"><p></p></th>', "<td></td>")
    text = TABLE.sub(lambda match: with_row_names(match[0]), text)
    # what can be read on a control is its name, for those who say it aloud, too
    text = text.replace('<summary aria-label="Toggle hidden content">', "<summary>")
    text = re.sub(
        r'(<button class="[^"]*search-button-field[^>]*) aria-label="[^"]*"',
        r"\1",
        text,
    )
    text = text.replace('role="doc-biblioentry"', 'role="listitem"')  # deprecated
    return text.replace(
        '<div id="pst-primary-sidebar"',
        '<div id="pst-primary-sidebar" role="region" aria-label="Course"',
    )


def with_row_names(table: str) -> str:
    """Say of a table without a name above its first column that it names the rows."""
    head, divide, body = table.partition("<tbody>")
    if not re.search(r"<tr[^>]*>\s*<td></td>", head):
        return table
    return head + divide + ROW_NAME.sub(r'\1<th scope="row">\2</th>', body)


def one_viewport(text: str) -> str:
    """Keep the first of several equal wishes about the width of a screen."""
    found = iter(range(99))
    return re.sub(
        r'\s*<meta name="viewport"[^>]*>',
        lambda match: match[0] if next(found) == 0 else "",
        text,
    )


def static_name(address: str) -> str:
    """Give the name of a file within _static/, without its digest."""
    return address.split("?")[0].rpartition("_static/")[2]


def digest(site: Path, name: str) -> str:
    """Give a short digest of a file in _static/, for its address."""
    return hashlib.sha256((site / "_static" / name).read_bytes()).hexdigest()[:8]


def light_scripts(site: Path, path: Path, text: str, here: str) -> str:
    """Leave out scripts that the page does not need, and defer the others."""
    head, divide, body = text.partition("<body")
    inline = (site / "_static" / "documentation_options.js").read_text("utf-8")
    theme = (
        f'<script defer src="{here}theme.js?v={digest(site, "theme.js")}"></script>\n'
    )

    def light(match: re.Match) -> str:
        source = SOURCE.search(match[1])
        if source is None:
            if "dataset.theme =" in match[2]:
                return f"<script>{squeezed(THEME)}</script>\n"
            settings = re.match(r"\s*(let|var) toggle", match[2])
            idle = settings and not uses(body, NEEDED_BY["togglebutton.js"])
            return "" if idle else match[0]
        name = static_name(source[1])
        if name == "documentation_options.js":
            return f"<script>{squeezed(inline)}</script>\n{theme}"
        if name in (*NEVER, *THEME_SCRIPTS) or Path(name).name in SEARCH:
            return ""
        if name in NEEDED_BY and not uses(body, NEEDED_BY[name]):
            return ""
        if re.search(r"\b(defer|async|type=\"(module|text/figure)\")", match[1]):
            return match[0]
        return f"<script defer{match[1]}></script>\n"

    return SCRIPT.sub(light, head) + divide + SCRIPT.sub(light, body)


def with_joints(code: str) -> str:
    """Say where a long word of code may go on in the next line."""
    return (JOINT if JOINT.search(code) else CAPITAL).sub("<wbr>", code)


def squeezed(script: str) -> str:
    """Write a script's object of settings in one line."""
    return " ".join(script.split())


@functools.lru_cache(maxsize=4)
def class_lists(body: str) -> list[set[str]]:
    """Give the classes of every element that has some, without repetition."""
    found = set(re.findall(r'class="([^"]*)"', body))
    return [set(names.split()) for names in found]


def uses(body: str, classes: tuple[str, ...]) -> bool:
    """Whether an element of the page has one of these classes."""
    wanted = [set(each.split()) for each in classes]
    return any(each <= names for names in class_lists(body) for each in wanted)


def sized_image(page: Path, match: re.Match) -> str:
    """Tell of an image how large it is, and to load it when it is near."""
    attributes = match[1]
    source = SOURCE.search(attributes)
    if source is None or re.match(r"data:|https?:", source[1]):
        return match[0]
    extra = ""
    least = 0
    if not re.search(r"\b(width|height)=", attributes):
        path = page.parent / html.unescape(source[1])
        size = size_of(path)
        extra += ' width="{}" height="{}"'.format(*size) if size else ""
        least = least_width(path, size[0]) if size else 0
    for name, value in (("loading", "lazy"), ("decoding", "async")):
        if f"{name}=" not in attributes:
            extra += f' {name}="{value}"'
    if not least:
        return f"<img{attributes}{extra}>"
    least = least if least > PHONE else 0
    image = f'<img{attributes}{extra} style="--least:{least}px">'
    return f'<span class="plot-frame">{image}</span>'


@functools.cache
def least_width(path: Path, width: int) -> int:
    """Give the width at which a plot's smallest letters can still be read.

    Matplotlib draws letters as paths, each text scaled by a hundredth of its size.
    """
    if path.suffix != ".svg":
        return 0
    scales = map(float, SCALED_TEXT.findall(path.read_text("utf-8")))
    letters = [100 * scale * 4 / 3 for scale in scales if 0.05 <= scale <= 0.3]
    return math.ceil(width * LETTERS / min(letters)) if letters else 0


def size_of(path: Path) -> tuple[int, int] | None:
    """Give an image's width and height in a browser's pixels."""
    if path.suffix == ".png":
        return struct.unpack(">II", path.read_bytes()[16:24])
    if path.suffix == ".jpeg":
        with Image.open(path) as picture:
            return picture.size
    if path.suffix != ".svg":
        return None
    root = ElementTree.parse(path).getroot()
    units = {"pt": 4 / 3, "px": 1, "": 1, "in": 96}
    size = []
    for name in ("width", "height"):
        match = re.fullmatch(r"([\d.]+)(pt|px|in|)", root.get(name, ""))
        if match is None:
            return None
        size.append(round(float(match[1]) * units[match[2]]))
    return tuple(size)


# ----------------------------------------------------------------------
# Styles
# ----------------------------------------------------------------------


def sheets_of(text: str) -> tuple[str, ...]:
    """List the style sheets of a page; they stand in its head."""
    head, _, _ = text.partition("</head>")
    return tuple(static_name(name) for name in STYLE.findall(head))


def write_sheets(
    site: Path, pages: dict[Path, str], cache: Path
) -> dict[tuple[str, ...], str]:
    """Write one sheet for all pages that have the same; give the new ones' addresses.

    There are two: pages with figures that move have some sheets more than others.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for text in pages.values():
        groups.setdefault(sheets_of(text), []).append(text)
    fewest = min(groups, key=len)
    addresses = {}
    for names, texts in groups.items():
        css = bundle(site, names, words_of(site, texts, cache), cache)
        more = [Path(name).stem for name in names if name not in fewest]
        made = "_".join(["site", *more]) + ".css"
        (site / "_static" / made).write_text(css)
        addresses[names] = f"{made}?v={digest(site, made)}"
    return addresses


def words_of(site: Path, texts: list[str], cache: Path) -> set[str]:
    """Gather what a selector may name: tags, classes, ids, and words of scripts."""
    words = set()
    for text in texts:
        bare, stamp = parted(text)
        known = remembered(
            cache, f"words{bare}", lambda bare=bare: "\n".join(page_words(bare))
        )
        words |= {*known.splitlines(), *page_words(stamp)}
    addresses = {
        static_name(source[1])
        for text in texts
        for attributes, _ in SCRIPT.findall(text)
        if (source := SOURCE.search(attributes))
    }
    for name in {*addresses, "theme.js", "search.js"} - {*NEVER}:
        script = site / "_static" / name
        # data hold words of texts, which name nothing
        is_data = script.parent.name == "data"
        if script.is_file() and not is_data:
            words |= script_words(script.read_text("utf-8"))
    return words


@functools.lru_cache(maxsize=64)
def script_words(script: str) -> frozenset[str]:
    """Gather what a script may name: the words in its texts."""
    script = re.sub(r"/\*.*?\*/", "", script, flags=re.DOTALL)
    return frozenset(WORD.findall(" ".join(SCRIPT_TEXT.findall(script))))


def page_words(text: str) -> list[str]:
    """Gather a page's tags, classes and ids."""
    words = set(re.findall(r"<([a-z][\w-]*)", text))
    for value in set(re.findall(r'\b(?:class|id)="([^"]*)"', text)):
        words.update(html.unescape(value).split())
    return sorted(words)


def bundle(site: Path, sheets: tuple[str, ...], words: set[str], cache: Path) -> str:
    """Put sheets into one, without the rules that no page can use."""
    static = site / "_static"
    read = {name: (static / name).read_text("utf-8") for name in sheets}
    texts = [rebased(with_imports(static, read[name], name), name) for name in sheets]
    asked = variables_asked_for(static)
    key = json.dumps([texts, sorted(words), sorted(asked)])

    def work() -> str:
        inlined = "".join(used_rules(text, words) for text in texts)
        return without_unused_variables(inlined, asked)

    return remembered(cache, key, work)


def with_imports(static: Path, text: str, name: str) -> str:
    """Put sheets that a sheet imports in their place; they lie in _static/ itself."""
    return re.sub(
        r"@import \"([^\"]+)\";",
        lambda match: (static / Path(name).parent / match[1]).read_text("utf-8"),
        text,
    )


def rebased(text: str, name: str) -> str:
    """Let a sheet's addresses lead from _static/ itself."""
    folder = Path(name).parent

    def moved(match: re.Match) -> str:
        address = match[2]
        if re.match(r"data:|#|/|https?:", address):
            return match[0]
        parts: list[str] = []
        for part in (folder / address).parts:
            parts = parts[:-1] if part == ".." and parts else [*parts, part]
        return f'url("{"/".join(parts)}")'

    return re.sub(r"url\((['\"]?)([^)'\"]+)\1\)", moved, text)


def used_rules(text: str, words: set[str]) -> str:
    """Give a sheet's rules whose selectors name only what is there."""
    rules = tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True)
    return "".join(used_rule(rule, words) for rule in rules)


def used_rule(rule, words: set[str]) -> str:
    """Give one rule, or nothing."""
    if rule.type == "qualified-rule":
        selectors = [s for s in split_selectors(rule.prelude) if can_match(s, words)]
        content = declarations(rule.content)
        return (
            f"{','.join(map(written, selectors))}{{{content}}}"
            if selectors and content
            else ""
        )
    if rule.type != "at-rule" or rule.lower_at_keyword == "charset":
        return ""
    prelude = written(rule.prelude)
    if rule.content is None:
        return f"@{rule.at_keyword} {prelude};"
    if rule.lower_at_keyword in {"media", "supports", "layer", "container"}:
        inner = tinycss2.parse_rule_list(
            rule.content, skip_comments=True, skip_whitespace=True
        )
        content = "".join(used_rule(each, words) for each in inner)
    else:
        content = written(rule.content)
    return f"@{rule.at_keyword} {prelude}{{{content}}}" if content else ""


def declarations(tokens) -> str:
    """Write what a rule declares."""
    parts = []
    for item in tinycss2.parse_blocks_contents(
        tokens, skip_comments=True, skip_whitespace=True
    ):
        if item.type == "declaration":
            end = "!important" if item.important else ""
            parts.append(f"{item.name}:{written(item.value)}{end}")
        elif item.type != "error":
            return written(tokens)
    return ";".join(parts)


def written(tokens) -> str:
    """Write tokens with single spaces and no remarks."""
    text = tinycss2.serialize([token for token in tokens if token.type != "comment"])
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", text).strip()


def split_selectors(tokens) -> list[list]:
    """Split a prelude at its commas."""
    selectors: list[list] = [[]]
    for token in tokens:
        if token.type == "literal" and token.value == ",":
            selectors.append([])
        else:
            selectors[-1].append(token)
    return selectors


def can_match(selector: list, words: set[str]) -> bool:
    """Whether every class, id and tag of a selector is somewhere on the pages."""
    previous = None
    for token in selector:
        named = token.type == "hash" or (
            token.type == "ident" and not is_literal(previous, ":")
        )
        if named and not is_named(token.value, words):
            return False
        previous = token
    return True


def is_named(name: str, words: set[str]) -> bool:
    """Whether a name is among the words, whole or put together by a script.

    A script that writes `figure-${letter}` has the word "figure-" only.
    """
    if name in words or name in {"from", "to"}:
        return True
    return any(name[: match.end()] in words for match in re.finditer("-", name))


def is_literal(token, value: str) -> bool:
    """Whether a token is a certain sign."""
    return token is not None and token.type == "literal" and token.value == value


def variables_asked_for(static: Path) -> set[str]:
    """Name the variables that scripts and sheets in _static/ ask for."""
    texts = "".join(
        path.read_text("utf-8")
        for path in [*static.rglob("*.js"), *static.glob("*.css")]
        if path.stat().st_size < 200_000
    )
    return {*ASKED.findall(texts), *re.findall(r"[\"'](--[\w-]+)", texts)}


def without_unused_variables(css: str, asked: set[str]) -> str:
    """Drop declarations of variables that nothing asks for."""
    while True:
        known = asked | {*ASKED.findall(css)}
        lighter = re.sub(
            r"(--[\w-]+):(?:[^;{}\"']|\"[^\"]*\"|'[^']*')*(;|(?=\}))",
            lambda match, known=known: match[0] if match[1] in known else "",
            css,
        )
        if lighter == css:
            return css
        css = lighter


# ----------------------------------------------------------------------
# Files
# ----------------------------------------------------------------------


def write_theme_script(site: Path) -> None:
    """Put the theme's scripts, which all pages have, into one."""
    static = site / "_static"
    parts = [(static / name).read_text("utf-8") for name in THEME_SCRIPTS]
    parts = [re.sub(r"//# sourceMappingURL=.*", "", part) for part in parts]
    (static / "theme.js").write_text(";\n".join(parts), "utf-8")


def remove_left_overs(site: Path, sheets: set[str]) -> None:
    """Remove files that no page asks for any more."""
    static = site / "_static"
    scripts = (*NEVER, *THEME_SCRIPTS, *SEARCH)
    gone = [static / name for name in (*sheets, *scripts, *LEFT_OVER)]
    gone += [*static.rglob("*.map"), *static.rglob("*.LICENSE.txt")]
    gone += [site / name for name in SEARCH]
    for path in gone:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


# ----------------------------------------------------------------------
# Weights
# ----------------------------------------------------------------------


def weigh(site: Path, path: Path, text: str, cache: Path) -> dict[str, int]:
    """Give what a page loads from its top to its end: name -> bytes, compressed."""
    names = {path}
    for attributes, _ in SCRIPT.findall(text):
        if source := SOURCE.search(attributes):
            names.add(path.parent / source[1].split("?")[0])
    head, _, _ = text.partition("</head>")
    names |= {path.parent / href.split("?")[0] for href in STYLE.findall(head)}
    for attributes in IMAGE.findall(NOSCRIPT.sub("", text)):
        source = SOURCE.search(attributes)
        if source and "data:" not in source[1]:
            names.add(path.parent / source[1])
    static = site / "_static"
    names.add(static / "icons" / "icons.woff")
    if "<math" in text:
        names.add(static / "mathfont" / "stix-two-math.woff2")
    files = {name.resolve() for name in names}
    return {
        str(name.relative_to(site.resolve())): compressed(name, cache)
        for name in sorted(files)
        if name.is_file()
    }


@functools.cache
def compressed(path: Path, cache: Path) -> int:
    """Give a file's bytes as a server sends them."""
    content = path.read_bytes()
    if path.suffix in {".woff", ".woff2", ".png", ".jpeg"}:
        return len(content)
    key = f"compressed {hashlib.sha256(content).hexdigest()}"
    return int(remembered(cache, key, lambda: str(len(gzip.compress(content, 9)))))


def report(site: Path, weights: dict[Path, dict[str, int]]) -> None:
    """Say which page is the heaviest; refuse those over the limit, part by part."""
    sums = {path: sum(parts.values()) for path, parts in weights.items()}
    heaviest = max(sums, key=sums.get)
    name = heaviest.relative_to(site)
    weight = f"{sums[heaviest] / 1000:.0f} KB with all that loads on scrolling"
    print(f"The heaviest page: {name}, {weight}")
    heavy = [path for path in sums if sums[path] > LIMIT]
    for path in heavy:
        print(f"{path.relative_to(site)}: {sums[path]:,} bytes, over {LIMIT:,}:")
        for part, size in sorted(weights[path].items(), key=lambda item: -item[1]):
            print(f"  {size:9,}  {part}")
    if heavy:
        raise SystemExit("make book: pages are too heavy, see above.")
