"""What a published site needs: a date, a sitemap, social cards, a 404 page.

The site's own address comes from `html: baseurl:` in _config.yml or, before it, from
the variable SITE_URL. With it, pages name their canonical address, the sitemap is
written and social cards have a picture; without it, nothing on a page depends on where
it lies.
"""

import html
import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes

ROOT = Path(__file__).resolve().parents[2]
PICTURE = "social.png"
PICTURE_SIZE = (1200, 630)
DESCRIPTION_LENGTH = 155
PACKAGES = {"torch": "PyTorch", "jupyter-book": "Jupyter Book"}
NO_GIT = "not under version control"
STAMP = re.compile(r'(<(\w+)[^>]* data-verified="([^"]*)"[^>]*>).*?(</\2>)', re.DOTALL)


# Where the site lies ------------------------------------------------------------------


def set_address(_app, config) -> None:
    """Take the site's address from the environment, if it is there."""
    address = os.environ.get("SITE_URL") or config.html_baseurl or ""
    if address and urlsplit(address).scheme not in {"http", "https"}:
        raise ValueError(f"the site's address must begin with http(s): {address!r}")
    config.html_baseurl = address.rstrip("/") + "/" if address else ""


def base_path(config) -> str:
    """Give the path under which the site lies on its host."""
    return urlsplit(config.html_baseurl).path or "/"


# Last verified ------------------------------------------------------------------------


def git(*arguments: str) -> str | None:
    """Ask git about the course; None where it cannot answer."""
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return ran.stdout if ran.returncode == 0 else None


def verified() -> str:
    """Say at which commit, and with which versions, the pages' cells were run.

    The date is the commit's and not the build's, so that one commit always gives the
    same pages.
    """
    used = [f"Python {platform.python_version()}"]
    used += [
        f"{name} {version(package).partition('+')[0]}"
        for package, name in PACKAGES.items()
    ]
    with_versions = f"with {', '.join(used[:-1])} and {used[-1]}"
    head = git("log", "-1", "--format=%h %cs")
    if not head:
        return f"Last verified {with_versions} ({NO_GIT}: no date, no commit)."
    commit, date = head.split()
    changed = git("status", "--porcelain", "--untracked-files=no")
    and_more = " and changes that are not committed" if changed else ""
    when = f'<time datetime="{date}">{date}</time>'
    return (
        f"Last verified {when} at commit <code>{commit}</code>{and_more}, "
        f"{with_versions}."
    )


def last_changes() -> dict[str, str]:
    """Give the day on which each file was last changed in a commit."""
    log = git("log", "--format=%x00%cs", "--name-only", "--no-renames") or ""
    days = {}
    for entry in log.split("\0")[1:]:
        day, *names = entry.split("\n")
        for name in filter(None, names):
            days.setdefault(name, day)
    return days


def source_of(pagename: str) -> list[str]:
    """Give the files that a page may be made from."""
    return [f"{pagename}{suffix}" for suffix in (".md", ".ipynb")]


def stamp(text: str, said: str, days: dict[str, str]) -> str:
    """Put into a page when it was verified, and when its text was last changed."""

    def fill(match: re.Match) -> str:
        day = next(filter(None, map(days.get, source_of(match[3]))), None)
        changed = f" Text last changed {day}." if day else ""
        return f"{match[1]}{said}{changed}{match[4]}"

    return STAMP.sub(fill, text)


def finish(app, error) -> None:
    """Stamp all pages, also those that were not written anew; write the sitemap."""
    if error or app.builder.name != "html":
        return
    out, said, days = Path(app.outdir), verified(), last_changes()
    for docname in sorted(app.env.found_docs):
        page = out / f"{docname}.html"
        if page.is_file():
            text = page.read_text("utf-8")
            stamped = stamp(text, said, days)
            if stamped != text:
                page.write_text(stamped, "utf-8")
    sitemap = out / "sitemap.xml"
    sitemap.unlink(missing_ok=True)
    if app.config.html_baseurl:
        names = sorted(app.env.found_docs)
        sitemap.write_text(site_map(app.config.html_baseurl, names, days), "utf-8")


def site_map(address: str, docnames: list[str], days: dict[str, str]) -> str:
    """Write the list of pages for search engines."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">')
    for docname in docnames:
        day = next(filter(None, map(days.get, source_of(docname))), None)
        changed = f"<lastmod>{day}</lastmod>" if day else ""
        place = html.escape(f"{address}{docname}.html")
        lines.append(f"  <url><loc>{place}</loc>{changed}</url>")
    return "\n".join([*lines, "</urlset>", ""])


# Social cards -------------------------------------------------------------------------


def description(doctree) -> str:
    """Give a page's first sentences, as many as search engines show."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > 40 and "\\" not in text:
            if len(text) <= DESCRIPTION_LENGTH:
                return text
            return text[: DESCRIPTION_LENGTH - 1].rsplit(" ", 1)[0].rstrip(",;:") + " …"
    return ""


def cards(config, pagename: str, title: str, text: str) -> str:
    """Write what other sites show when they link to a page."""
    known = {
        "og:type": "website" if pagename.endswith("index") else "article",
        "og:site_name": config.project,
        "og:title": title,
        "og:description": text,
    }
    if config.html_baseurl:
        known["og:url"] = f"{config.html_baseurl}{pagename}.html"
        known["og:image"] = f"{config.html_baseurl}_static/{PICTURE}"
        known["og:image:width"], known["og:image:height"] = map(str, PICTURE_SIZE)
        known["og:image:alt"] = "Attention weights, and the name of the course"
    tags = [
        f'<meta property="{name}" content="{html.escape(value)}" />'
        for name, value in known.items()
        if value
    ]
    large = "summary_large_image" if config.html_baseurl else "summary"
    tags.append(f'<meta name="twitter:card" content="{large}" />')
    return "\n    " + "\n    ".join(tags)


def add_cards(app, pagename, _template, context, doctree) -> None:
    """Put description and social card into a page's head."""
    title = re.sub(r"<[^>]*>", "", html.unescape(context.get("title") or ""))
    text = description(doctree) if doctree else ""
    text = text or f"{title or pagename}: a page of the course {app.config.project}"
    tags = context.get("metatags") or ""
    if 'name="description"' not in tags:
        tags += f'\n    <meta name="description" content="{html.escape(text)}" />'
    context["metatags"] = tags + cards(app.config, pagename, title, text)


# The page for addresses that lead nowhere ---------------------------------------------


def missing_page(app):
    """Make 404.html, which a server shows at any depth."""
    yield "404", {"base_path": base_path(app.config)}, "404.html"


def setup(app) -> dict:
    """Tell Sphinx of it."""
    app.connect("config-inited", set_address)
    app.connect("html-page-context", add_cards, priority=600)
    app.connect("html-collect-pages", missing_page)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
