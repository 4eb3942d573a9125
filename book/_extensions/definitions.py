"""Definitions and equations that a page's links lead to, kept in the page.

book/_static/reading.js shows them when a link is pointed at, or reached by keyboard.
Only what a page links to is put into it. Without scripts they stay hidden, and the
links lead where they always led.
"""

from docutils import nodes
from docutils.utils import new_document
from sphinx import addnodes

GLOSSARY = "book/glossary"


def targets(doctree) -> dict[str, None]:
    """Give the names of terms and equations that a page links to, in order."""
    found = {}
    for reference in doctree.findall(nodes.reference):
        name = reference.get("refid") or reference.get("refuri", "").partition("#")[2]
        if name.startswith(("term-", "equation-")):
            found[name] = None
    return found


def definitions(env) -> dict[str, nodes.Node]:
    """Give the definition of each term of the glossary."""
    if GLOSSARY not in env.found_docs:
        return {}
    known = {}
    for item in env.get_doctree(GLOSSARY).findall(nodes.definition_list_item):
        (definition,) = item.findall(nodes.definition)
        for term in item.findall(nodes.term):
            known.update(dict.fromkeys(term["ids"], definition))
    return known


def equation(env, name: str) -> nodes.Node | None:
    """Give a numbered equation, without its number."""
    domain = env.get_domain("math")
    for docname, _ in domain.equations.values():
        for block in env.get_doctree(docname).findall(nodes.math_block):
            label = block.get("label")
            if label and name == nodes.make_id(f"equation-{label}"):
                copy = block.deepcopy()
                copy["number"] = None  # it stands where the equation itself does
                copy["ids"] = []
                return copy
    return None


def render(app, docname: str, node: nodes.Node) -> str:
    """Write a part of one page as HTML for another, its links included."""
    parts = node.children if isinstance(node, nodes.definition) else [node]
    document = new_document("")
    document.settings.env = app.env
    holder = nodes.container("", *(part.deepcopy() for part in parts))
    document += holder
    for link in document.findall(addnodes.pending_xref):
        link["refdoc"] = docname  # where links begin, now
    app.env.resolve_references(document, docname, app.builder)
    for part in document.findall(nodes.Element):
        part["ids"] = []  # the original keeps its name
    return app.builder.render_partial(holder)["fragment"]


def keep_in_page(app, pagename, _template, context, doctree) -> None:
    """Put into a page's context what its links lead to."""
    context["definitions"] = []
    if doctree is None or pagename == GLOSSARY:
        return
    own = {node_id for part in doctree.findall() for node_id in ids_of(part)}
    if not hasattr(app.builder, "course_definitions"):
        app.builder.course_definitions = definitions(app.env)
    known = app.builder.course_definitions
    for name in targets(doctree):
        if name in own:  # the script finds it on the page itself
            continue
        node = known.get(name)
        if node is None and name.startswith("equation-"):
            node = equation(app.env, name)
        if node is not None:
            context["definitions"].append((name, render(app, pagename, node)))


def ids_of(node) -> list[str]:
    """Give the names under which a node can be linked to."""
    if isinstance(node, nodes.math_block) and node.get("label"):
        return [nodes.make_id(f"equation-{node['label']}")]
    return node.get("ids", []) if isinstance(node, nodes.Element) else []


def setup(app) -> dict:
    """Tell Sphinx of it."""
    app.connect("html-page-context", keep_in_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
