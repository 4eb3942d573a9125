"""Put the built site into a folder that a web server shows.

    python -m tools.site.publish FOLDER

The folder may be new, empty, or one that was filled so before; what begins with a dot,
such as .git, and a CNAME stay as they are. Anything else is refused, so that a slip of
the pen deletes nothing.
"""

import shutil
import sys
from pathlib import Path

from tools.steps import ROOT

SITE = ROOT / "_build" / "html"
MARK = ".course-site"  # says that the folder's content is ours to replace


def main(words: list[str]) -> None:
    """Publish into the folder named."""
    if len(words) != 1 or not words[0].strip():
        sys.exit("usage: python -m tools.site.publish FOLDER")
    target = Path(words[0]).expanduser().resolve()
    reason = refusal(target)
    if reason:
        sys.exit(f"make publish: {reason}")
    count = publish(target)
    print(f"Published: {count} files in {target}")


def refusal(target: Path) -> str | None:
    """Say why nothing may be put into a folder, if so."""
    if not (SITE / "index.html").is_file():
        return "there is no site in _build/html: run `make book` first"
    if target == ROOT or ROOT.is_relative_to(target):
        return f"{target} holds the course itself"
    if target == SITE or target.is_relative_to(SITE) or SITE.is_relative_to(target):
        return f"{target} is where the site is built; name another folder"
    if target.exists() and not target.is_dir():
        return f"{target} is a file"
    if target.is_dir() and not (target / MARK).exists():
        others = [path.name for path in sorted(target.iterdir()) if not kept(path)]
        if others:
            return (
                f"{target} holds other files, such as {others[0]}, which would be "
                "deleted; name an empty folder"
            )
    return None


def kept(path: Path) -> bool:
    """Whether publishing leaves something where it is."""
    return path.name.startswith(".") or path.name == "CNAME"


def publish(target: Path) -> int:
    """Replace what the folder shows by the site; give the number of files."""
    target.mkdir(parents=True, exist_ok=True)
    (target / MARK).write_text("Replaced by `make publish`.\n")
    (target / ".nojekyll").touch()  # or GitHub leaves out what begins with _
    for path in target.iterdir():
        if kept(path):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    shutil.copytree(SITE, target, dirs_exist_ok=True)
    return sum(path.is_file() for path in SITE.rglob("*"))


if __name__ == "__main__":
    main(sys.argv[1:])
