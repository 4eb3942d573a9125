"""The search page has the course's own search in place of Sphinx's."""


def add_script(app, pagename, _template, _context, _doctree) -> None:
    """Load search.js where one searches; elsewhere course.js does when it is opened."""
    if pagename == "search":
        app.add_js_file("search.js", loading_method="defer")


def setup(app) -> dict:
    """Tell Sphinx of the script."""
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
