"""Texts: three corpora, and a clear word about every file that cannot be used."""

import gzip
import hashlib
from pathlib import Path

import pooch
import pytest

from autograder.generator import ROOT
from workbench.data import phrasebook, texts
from workbench.data.texts import load_corpus
from workbench.errors import WorkbenchError

MULTI30K = ROOT.parent / "shared" / "data" / "multi30k"

PAIRS = [(f"Sentence {number}.", f"Satz {number}.") for number in range(60)]


def write_pairs(folder: Path, pairs=PAIRS) -> str:
    """Write pairs as two files, and return the corpus's name."""
    for side, name in enumerate(("a.en", "a.de")):
        lines = "".join(pair[side] + "\n" for pair in pairs)
        (folder / name).write_text(lines, encoding="utf-8")
    return f"text:{folder / 'a.en'},{folder / 'a.de'}"


def write_tabs(folder: Path, content: str) -> str:
    """Write a file with tabs, and return the corpus's name."""
    path = folder / "pairs.tsv"
    path.write_text(content, encoding="utf-8", newline="")
    return f"text:{path}"


def everything(corpus) -> list[tuple[str, str]]:
    return [*corpus.train, *corpus.validation, *corpus.test]


# --- the phrasebook


def test_the_phrasebook_goes_both_ways(monkeypatch):
    sizes = {"train": 400, "validation": 5, "test": 20}
    monkeypatch.setattr(phrasebook, "SIZES", sizes)
    there = load_corpus("phrasebook")
    back = load_corpus("phrasebook", source="de", target="en")
    assert there.name == "phrasebook"
    assert there.test[0] == ("Bobby likes blackberries.", "Bobby mag Brombeeren.")
    assert everything(back) == [
        (german, english) for english, german in everything(there)
    ]


# --- one's own sentences


def test_own_pairs_are_all_there_in_three_splits(tmp_path):
    corpus = load_corpus(write_pairs(tmp_path))
    assert sorted(everything(corpus)) == sorted(PAIRS)
    assert (len(corpus.validation), len(corpus.test)) == (3, 3)


def test_two_files_and_one_with_tabs_are_the_same_corpus(tmp_path):
    tabs = "".join(f"{source}\t{target}\r\n" for source, target in PAIRS)
    one, two = (
        load_corpus(write_tabs(tmp_path, tabs)),
        load_corpus(write_pairs(tmp_path)),
    )
    assert (one.train, one.test) == (two.train, two.test)


def test_the_same_source_is_never_in_two_splits(tmp_path):
    repeated = [(source, f"{target} {way}") for source, target in PAIRS for way in "ab"]
    corpus = load_corpus(write_pairs(tmp_path, repeated))
    splits = [{source for source, _ in each} for each in (corpus.train, corpus.test)]
    assert not splits[0] & splits[1]
    assert len(corpus.test) == 6


def test_a_line_ends_where_the_file_says_so(tmp_path):
    pairs = [("one\u2028line", "eine\x0bZeile"), *PAIRS]
    assert pairs[0] in everything(load_corpus(write_pairs(tmp_path, pairs)))


def test_a_mark_at_the_beginning_is_no_part_of_the_text(tmp_path):
    tabs = "\ufeff" + "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    assert sorted(everything(load_corpus(write_tabs(tmp_path, tabs)))) == sorted(PAIRS)


def test_files_of_different_length_are_refused(tmp_path):
    name = write_pairs(tmp_path)
    with (tmp_path / "a.de").open("a", encoding="utf-8") as file:
        file.write("Einer mehr.\n")
    with pytest.raises(WorkbenchError, match=r"a\.en has 60 lines but .*a\.de has 61"):
        load_corpus(name)


def test_an_empty_line_is_refused_by_number(tmp_path):
    pairs = [*PAIRS[:4], ("There.", " \t"), *PAIRS[4:]]
    with pytest.raises(WorkbenchError, match=r"a\.de, line 5 is empty"):
        load_corpus(write_pairs(tmp_path, pairs))


@pytest.mark.parametrize(
    "content, words",
    [
        ("a\tb\nonly one\n", r"line 2: expected .* found 1 sentences"),
        ("a\tb\nc\t\n", r"line 2: expected .* found 1 sentences"),
        ("a\tb\tc\n", r"line 1: expected .* found 3 sentences"),
        ("a\tb\n\nc\td\n", r"line 2 is empty"),
        ("", r"pairs\.tsv is empty"),
        ("a\tb\nc\td\n", r"2 different sentences are too few"),
    ],
)
def test_a_file_without_pairs_is_refused(tmp_path, content, words):
    with pytest.raises(WorkbenchError, match=words):
        load_corpus(write_tabs(tmp_path, content))


def test_what_is_no_text_is_refused(tmp_path):
    (tmp_path / "pairs.tsv").write_bytes("Mädchen\tgirl\n".encode("latin-1"))
    with pytest.raises(WorkbenchError, match=r"pairs\.tsv is not UTF-8"):
        load_corpus(f"text:{tmp_path / 'pairs.tsv'}")
    with pytest.raises(WorkbenchError, match=r"none\.tsv is not a file"):
        load_corpus(f"text:{tmp_path / 'none.tsv'}")
    with pytest.raises(WorkbenchError, match="names 3 files"):
        load_corpus("text:a,b,c")


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"name": "multi31k"}, "'multi31k' is unknown: take phrasebook"),
        ({"name": "phrasebook", "target": "fr"}, "not en to fr"),
        ({"name": "everyday", "source": "de", "target": "en"}, "en to de alone"),
        ({"name": "multi30k:test_2015"}, "no test set 'test_2015': take test_2016_f"),
        ({"name": "phrasebook", "source": "de"}, "not de to de"),
        ({"name": "multi30k", "form": "tidy"}, "form 'tidy' is unknown"),
        ({"name": "phrasebook", "form": "lowercased"}, "only multi30k has the form"),
    ],
)
def test_an_unknown_choice_is_refused(arguments, words):
    with pytest.raises(WorkbenchError, match=words):
        load_corpus(**arguments)


# --- Multi30k: the real files where they are, small ones of the same names elsewhere


@pytest.mark.parametrize("form", ["raw", "lowercased"])
def test_the_published_files_are_read(form):
    if not MULTI30K.is_dir():
        pytest.skip("Multi30k is not beside the checkout")
    corpus = load_corpus("multi30k", MULTI30K, source="de", target="en", form=form)
    sizes = [len(each) for each in (corpus.train, corpus.validation, corpus.test)]
    assert sizes == [29000, 1014, 1000]
    german, english = corpus.test[0]
    assert english.lower().startswith("a man in an orange hat")
    assert german.lower().startswith("ein mann mit einem orangefarbenen hut")
    assert (english == english.lower()) == (form == "lowercased")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder of small files under Multi30k's names, known by their sums."""
    known = {}
    for stem in ("train", "val", *texts.TEST_SETS):
        for side, language in enumerate(("en", "de")):
            lines = "".join(f"{stem} {pair[side]}\n" for pair in PAIRS[:5]).encode()
            path = tmp_path / f"{stem}.{language}.gz"
            path.write_bytes(gzip.compress(lines, mtime=0))
            known[path.stem] = hashlib.sha256(lines).hexdigest()
    monkeypatch.setattr(texts, "SUMS", known)
    return tmp_path


def test_each_split_comes_from_its_file(small):
    corpus = load_corpus("multi30k", small)
    assert corpus.train[0] == ("train Sentence 0.", "train Satz 0.")
    assert corpus.validation[4] == ("val Sentence 4.", "val Satz 4.")
    assert corpus.test[1][0] == "test_2016_flickr Sentence 1."


def test_another_published_test_set_is_named(small):
    other = load_corpus("multi30k:test_2017_mscoco", small)
    assert other.test[1] == (
        "test_2017_mscoco Sentence 1.",
        "test_2017_mscoco Satz 1.",
    )
    assert other.train == load_corpus("multi30k", small).train


def test_unpacked_files_will_do(small):
    packed = small / "val.de.gz"
    (small / "val.de").write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    assert load_corpus("multi30k", small).validation[0][1] == "val Satz 0."


def test_a_missing_file_is_named(small):
    (small / "val.de.gz").unlink()
    with pytest.raises(WorkbenchError, match=r"has no val\.de\.gz: put Multi30k"):
        load_corpus("multi30k", small)


@pytest.mark.parametrize("keep", [0, 3, 20, -1])
def test_a_file_cut_short_is_named(small, keep):
    path = small / "train.en.gz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(WorkbenchError, match=r"train\.en"):
        load_corpus("multi30k", small)


def test_a_file_of_other_sentences_is_refused(small):
    (small / "train.en.gz").write_bytes(gzip.compress(b"Something else.\n" * 5))
    with pytest.raises(WorkbenchError, match=r"train\.en\.gz is not Multi30k's"):
        load_corpus("multi30k", small)


def test_a_flipped_bit_is_found(small):
    path = small / "train.en.gz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(WorkbenchError, match=r"train\.en\.gz"):
        load_corpus("multi30k", small)


# --- downloads, from a folder instead of the network


@pytest.fixture
def published(small, tmp_path_factory, monkeypatch):
    """Serve the small files as if they were downloaded; return where they are kept."""
    cache = tmp_path_factory.mktemp("cache")

    def copy(url: str, output_file: str, _pooch) -> None:
        Path(output_file).write_bytes((small / Path(url).name).read_bytes())

    sums = {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest()
        for each in small.glob("*.gz")
    }
    monkeypatch.setattr(texts, "PACKED_SUMS", sums)
    monkeypatch.setattr(pooch, "os_cache", lambda name: cache)
    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *_, **__: copy)
    return cache


def test_files_are_downloaded_once_and_kept(small, published):
    first = load_corpus("multi30k")
    assert len(list(published.iterdir())) == 6
    for path in small.glob("*.gz"):
        path.unlink()
    assert load_corpus("multi30k") == first


def test_a_corrupt_download_is_refused_and_not_kept(small, published):
    (small / "train.en.gz").write_bytes(b"<html>not found</html>")
    with pytest.raises(WorkbenchError, match=r"train\.en\.gz could not be downloaded"):
        load_corpus("multi30k")
    assert list(published.iterdir()) == []


def test_a_corrupt_file_in_the_cache_is_downloaded_again(published):
    first = load_corpus("multi30k")
    (published / "train.en.gz").write_bytes(b"half a file")
    assert load_corpus("multi30k") == first


def test_every_file_of_every_form_has_a_known_sum():
    for form, pattern in texts.FORMS.items():
        for stem in ("train", "val", *texts.TEST_SETS):
            for language in texts.LANGUAGES:
                name = Path(pattern.format(stem, language)).name
                assert len(texts.SUMS[name.removesuffix(".gz")]) == 64
                assert form != "raw" or len(texts.PACKED_SUMS[name]) == 64


def test_the_sums_are_those_of_the_published_packed_files():
    if not MULTI30K.is_dir():
        pytest.skip("Multi30k is not beside the checkout")
    for name, known in texts.PACKED_SUMS.items():
        if "2017" in name:  # these files are not there
            continue
        assert hashlib.sha256((MULTI30K / name).read_bytes()).hexdigest() == known
