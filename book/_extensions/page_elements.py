"""A node for any HTML element, with nodes of the page inside."""

import html

from docutils import nodes


class HtmlElement(nodes.General, nodes.TextElement):
    """One element; `element()` makes it."""


def element(tag: str, *children: nodes.Node, **attributes: str) -> HtmlElement:
    """Make an element; `class_` and `for_` stand for Python's reserved words.

    The value True gives an attribute without a value.
    """
    names = {
        name.rstrip("_").replace("_", "-"): attributes[name] for name in attributes
    }
    return HtmlElement("", "", *children, tag=tag, attributes=names)


def start_tag(tag: str, attributes: dict) -> str:
    """Write an opening tag."""
    parts = [tag]
    for name, value in attributes.items():
        parts.append(name if value is True else f'{name}="{html.escape(str(value))}"')
    return f"<{' '.join(parts)}>"


def visit(translator, node: HtmlElement) -> None:
    """Open the element."""
    translator.body.append(start_tag(node["tag"], node["attributes"]))


def depart(translator, node: HtmlElement) -> None:
    """Close the element."""
    if node["tag"] != "input":
        translator.body.append(f"</{node['tag']}>")


def setup(app) -> dict:
    """Tell Sphinx how to write the node."""
    app.add_node(HtmlElement, html=(visit, depart))
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
