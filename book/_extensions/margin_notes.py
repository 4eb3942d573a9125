"""A note in the margin and the paragraph that it is about are one element.

The note comes first, to stand beside the paragraph. Where a screen has no margin,
course.css puts it behind.
"""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform


class KeepNotesWithParagraphs(SphinxPostTransform):
    """Wrap each note and the paragraph after it."""

    default_priority = 910
    formats = ("html",)

    def run(self, **_options) -> None:
        """Change every note that a paragraph follows."""
        for note in list(self.document.findall(nodes.sidebar)):
            paragraph = note.next_node(descend=False, siblings=True)
            if "margin" in note["classes"] and isinstance(paragraph, nodes.paragraph):
                together = nodes.container(classes=["with-note"])
                note.parent.replace(note, together)
                paragraph.parent.remove(paragraph)
                together += [note, paragraph]


def setup(app) -> dict:
    """Tell Sphinx of the change."""
    app.add_post_transform(KeepNotesWithParagraphs)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
