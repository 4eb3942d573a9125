"""A search index that is the same whether all pages are written or only one.

Sphinx reads the index of the build before, for pages that it does not write again. It
loses their index entries there, and keeps words that are on no page any more.
"""

from sphinx.util.index_entries import split_index_msg


def mend(app) -> list:
    """Give the index the entries of all pages, and take words of no page from it."""
    indexer = app.builder.indexer
    if indexer is None:
        return []
    indexer.prune(app.env.all_docs)
    for words in (indexer._mapping, indexer._title_mapping):
        for word in [word for word, pages in words.items() if not pages]:
            del words[word]
    entries = app.env.get_domain("index").entries
    for docname in sorted(entries):
        indexer._index_entries[docname] = sorted(
            {
                (term, target, main)
                for kind, value, target, main, _ in entries[docname]
                for term in split_index_msg(kind, value)
            }
        )
    return []


def setup(app) -> dict:
    """Tell Sphinx of it; pages are collected right before the index is written."""
    app.connect("html-collect-pages", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
