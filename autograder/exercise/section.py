"""Where the book explains what a check has found: in words, and as an address."""

import re

READ = re.compile(r"chapter (\d+): ([\w-]+\.html)(?:#([\w-]+))?")
ADDRESS = re.compile(r"https?://|file://|[\w./-]+$")


def section(read: str, site: str) -> tuple[str, str]:
    """Name a section of the book for a reader.

    >>> section("chapter 4: 04_attention.html#attention-softmax", "https://a.org/")
    ('chapter 4, “softmax”', 'https://a.org/04_attention.html#attention-softmax')

    Args:
        read: where it is, as a check's failure says.
        site: the address of the book; without one there is no address.

    Returns:
        The words and the address, each "" if there is none.
    """
    found = READ.fullmatch(read)
    if not found:
        return "", ""
    number, name, label = found.groups()
    topic = name.partition("_")[2].removesuffix(".html").replace("_", "-")
    about = (label or "").removeprefix(f"{topic}-").replace("-", " ")
    words = f"chapter {number}" + (f", “{about}”" if about else "")
    if not ADDRESS.match(site):
        return words, ""
    return words, f"{site.rstrip('/')}/{name}" + (f"#{label}" if label else "")
