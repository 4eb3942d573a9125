"""Sentence pairs to learn from: of two grammars, Multi30k, or one's own."""

import gzip
import hashlib
import random
import zlib
from dataclasses import dataclass
from pathlib import Path

from workbench.data import everyday, phrasebook
from workbench.errors import WorkbenchError

Pair = tuple[str, str]  # source, target

LANGUAGES = ("en", "de")
CACHE = "transformers-by-hand"
GRAMMARS = {"phrasebook": phrasebook, "everyday": everyday}

# Multi30k (Elliott et al. 2016), CC BY-NC-SA. The sums are those of the text itself, so
# that a file may be packed or not.
REPOSITORY = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1"
TEST_SETS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
FORMS = {"raw": "raw/{}.{}.gz", "lowercased": "tok/{}.lc.norm.tok.{}"}
SUMS = {
    "train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "val.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "test_2016_flickr.en": (
        "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"
    ),
    "test_2016_flickr.de": (
        "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"
    ),
    "test_2017_flickr.en": (
        "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98"
    ),
    "test_2017_flickr.de": (
        "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081"
    ),
    "test_2017_mscoco.en": (
        "43051fdfa86fd5395182e718a94ca67b1b227b9f7c79596ff0f6b813216981d2"
    ),
    "test_2017_mscoco.de": (
        "58277df3c75f92f7145a11b910b553d1cf82c439249d4dc237c899609eafac22"
    ),
    "train.lc.norm.tok.en": (
        "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"
    ),
    "train.lc.norm.tok.de": (
        "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"
    ),
    "val.lc.norm.tok.en": (
        "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"
    ),
    "val.lc.norm.tok.de": (
        "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"
    ),
    "test_2016_flickr.lc.norm.tok.en": (
        "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"
    ),
    "test_2016_flickr.lc.norm.tok.de": (
        "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"
    ),
    "test_2017_flickr.lc.norm.tok.en": (
        "c9d1dfd7a26add989382e534af235af9f0f658b2a30e7eb0efdaf142496ee54f"
    ),
    "test_2017_flickr.lc.norm.tok.de": (
        "02067e4a9402786a4fcb8c1b6f4307e4a5073ced64800abead5273b54f5f31f6"
    ),
    "test_2017_mscoco.lc.norm.tok.en": (
        "fe69ae004d71c42ead0301e70c57de5b1b6b5fb7f52210d42b22801e98e656f3"
    ),
    "test_2017_mscoco.lc.norm.tok.de": (
        "e2825990b8a4e5289d2cdba801d57c187810bab9b4f5d87a30c35800a0d871b6"
    ),
}
# What the raw files, packed, must be for pooch to keep them.
PACKED_SUMS = {
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "test_2016_flickr.en.gz": (
        "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"
    ),
    "test_2016_flickr.de.gz": (
        "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"
    ),
    "test_2017_flickr.en.gz": (
        "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074"
    ),
    "test_2017_flickr.de.gz": (
        "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee"
    ),
    "test_2017_mscoco.en.gz": (
        "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58"
    ),
    "test_2017_mscoco.de.gz": (
        "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338"
    ),
}


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs (source, target) in three splits."""

    name: str
    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]


def load_corpus(
    name: str,
    data_dir: Path | None = None,
    source: str = "en",
    target: str = "de",
    form: str = "raw",
) -> Corpus:
    """Load sentence pairs.

    Args:
        name: "phrasebook"; "everyday", more words and forms, from English alone;
            "multi30k", whose test split is test_2016_flickr, or "multi30k:NAME" for
            another one; or "text:PATH", one's own pairs, a tab between source and
            target on each line, or "text:SOURCE_FILE,TARGET_FILE".
        data_dir: a folder that holds Multi30k's files; None: they are downloaded once.
        source: the language to translate from, en or de; one's own pairs are read in
            the order that they stand in.
        target: the other one.
        form: for multi30k, "raw" or "lowercased" (normalised and tokenised, too).

    Raises:
        WorkbenchError: on an unknown name or language, and on a file that is missing,
            damaged, empty, or not made of pairs.
    """
    if form not in FORMS:
        raise WorkbenchError(f"form {form!r} is unknown: take {' or '.join(FORMS)}")
    kind, _, test = name.partition(":")
    if form != "raw" and kind != "multi30k":
        raise WorkbenchError(f"only multi30k has the form {form!r}: take --form raw")
    if name.startswith("text:"):
        return Corpus(name, *divide(own_pairs(name.removeprefix("text:"))))
    if name not in GRAMMARS and kind != "multi30k":
        raise WorkbenchError(
            f"corpus {name!r} is unknown: take phrasebook, everyday, multi30k, "
            "text:FILE.tsv or text:SOURCE_FILE,TARGET_FILE"
        )
    if sorted((source, target)) != sorted(LANGUAGES):
        raise WorkbenchError(
            f"{name} translates en to de or de to en, not {source} to {target}"
        )
    if kind == "multi30k":
        test = test or TEST_SETS[0]
        return Corpus(name, *multi30k(data_dir, source, target, form, test))
    if name == "everyday" and source == "de":
        raise WorkbenchError(
            "everyday translates en to de alone: German has one form for several of "
            "English; take phrasebook"
        )
    splits = GRAMMARS[name].generate()
    if source == "de":
        splits = [[(german, english) for english, german in each] for each in splits]
    return Corpus(name, *splits)


# --- Multi30k


def test_name(name: str, split: str) -> str:
    """Name a split of a corpus for a record: Multi30k has several test sets."""
    kind, _, test = name.partition(":")
    if (kind, split) != ("multi30k", "test"):
        return split
    return test or TEST_SETS[0]


def multi30k(
    data_dir: Path | None, source: str, target: str, form: str, test: str
) -> list[list[Pair]]:
    """Read the three splits; ``test`` is one of the published test sets."""
    if test not in TEST_SETS:
        raise WorkbenchError(
            f"multi30k has no test set {test!r}: take {', '.join(TEST_SETS)}"
        )
    splits = []
    for stem in ("train", "val", test):
        sides = []
        for language in (source, target):
            name = Path(FORMS[form].format(stem, language)).name.removesuffix(".gz")
            sides.append(multi30k_file(name, data_dir, form))
        splits.append(zip_sides(*sides))
    return splits


def multi30k_file(name: str, data_dir: Path | None, form: str) -> tuple[Path, str]:
    """Find a file, check it against the published one, and return its text."""
    path = fetch(name, form) if data_dir is None else find(name, Path(data_dir))
    content = unpack(path)
    if hashlib.sha256(content).hexdigest() != SUMS[name]:
        raise WorkbenchError(
            f"{path} is not Multi30k's published {name} (its SHA-256 differs): delete "
            "it and fetch it again; sentences of your own are read with text:PATH"
        )
    return path, content.decode("utf-8")


def find(name: str, data_dir: Path) -> Path:
    """Find a file in a folder, packed or not."""
    for path in (data_dir / f"{name}.gz", data_dir / name):
        if path.is_file():
            return path
    raise WorkbenchError(
        f"{data_dir} has no {name}.gz: put Multi30k's files there by their own names "
        "(from the repository multi30k/dataset, folder data/task1), or leave out the "
        "folder to have them downloaded"
    )


def fetch(name: str, form: str) -> Path:
    """Download a file into the user's cache, unless a good one is there."""
    folder = FORMS[form].split("/")[0]
    remote = f"{name}.gz" if form == "raw" else name
    known = PACKED_SUMS[remote] if form == "raw" else SUMS[name]
    return download(
        f"{REPOSITORY}/{folder}/{remote}", known, remote, "Multi30k's files"
    )


def download(url: str, known: str, name: str, what: str) -> Path:
    """Download a file into the user's cache, unless a good one is there.

    Args:
        url: where it is.
        known: the SHA-256 that it must have.
        name: of the copy.
        what: the data, for messages.

    Raises:
        WorkbenchError: it cannot be had, or is another file.
    """
    import pooch  # only who downloads needs it

    try:
        found = pooch.retrieve(
            url, f"sha256:{known}", fname=name, path=pooch.os_cache(CACHE)
        )
    # ValueError: a wrong checksum; OSError: no network, no such page, no room
    except (OSError, ValueError) as error:
        raise WorkbenchError(
            f"{url} could not be downloaded ({error}): try again, or fetch {what} by "
            "hand and name their folder with --data-dir"
        ) from error
    return Path(found)


def unpack(path: Path) -> bytes:
    """Read a file, and unpack it if its name ends in .gz."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise WorkbenchError(
            f"{path} cannot be read ({error}): it is damaged or cut short; delete it "
            "and fetch it again"
        ) from error


# --- One's own sentences


def own_pairs(where: str) -> list[Pair]:
    """Read one file with tabs, or two files separated by a comma."""
    if Path(where).is_file() or "," not in where:
        return tabbed_pairs(Path(where))
    names = where.split(",")
    if len(names) != 2:
        raise WorkbenchError(f"{where!r} names {len(names)} files: name one or two")
    return zip_sides(*((Path(name), read_text(Path(name))) for name in names))


def read_text(path: Path) -> str:
    """Read a text file in UTF-8, packed by gzip or not."""
    if not path.is_file():
        raise WorkbenchError(f"{path} is not a file: check the name after text:")
    try:
        return unpack(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WorkbenchError(
            f"{path} is not UTF-8 ({error}): save it in that encoding"
        ) from error


def lines_of(path: Path, text: str) -> list[str]:
    """Split a text into its lines, and refuse an empty one."""
    lines = text.split("\n")  # not splitlines: U+2028 inside a sentence ends no line
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise WorkbenchError(f"{path} is empty: write a sentence on each line")
    lines = [line.removesuffix("\r") for line in lines]
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise WorkbenchError(
                f"{path}, line {number} is empty: write a sentence there, or take the "
                "line out, in the other language, too"
            )
    return lines


def zip_sides(source: tuple[Path, str], target: tuple[Path, str]) -> list[Pair]:
    """Pair the lines of two files, each given as its path and its text."""
    sources, targets = lines_of(*source), lines_of(*target)
    if len(sources) != len(targets):
        raise WorkbenchError(
            f"{source[0]} has {len(sources)} lines but {target[0]} has {len(targets)}: "
            "line 1 of one must be the translation of line 1 of the other, and so on"
        )
    return list(zip(sources, targets, strict=True))


def tabbed_pairs(path: Path) -> list[Pair]:
    """Read a file with a tab between source and target on each line."""
    pairs = []
    for number, line in enumerate(lines_of(path, read_text(path)), start=1):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 2 or not all(cells):
            raise WorkbenchError(
                f"{path}, line {number}: expected a sentence, a tab and its "
                f"translation, found {len([c for c in cells if c])} sentences"
            )
        pairs.append((cells[0], cells[1]))
    return pairs


def divide(pairs: list[Pair]) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Divide one's own pairs: a twentieth to validate, a twentieth to test.

    Pairs with the same source stay together, so that nothing is tested that was
    trained on; the same pairs are always divided in the same way.
    """
    sources = sorted({source for source, _ in pairs})
    if len(sources) < 3:
        raise WorkbenchError(
            f"{len(sources)} different sentences are too few: at least 3 are needed, "
            "to train, to validate and to test"
        )
    random.Random(0).shuffle(sources)
    share = max(1, len(sources) // 20)
    validation, test = set(sources[:share]), set(sources[share : 2 * share])
    held_out = validation | test
    return (
        [pair for pair in pairs if pair[0] not in held_out],
        [pair for pair in pairs if pair[0] in validation],
        [pair for pair in pairs if pair[0] in test],
    )
