"""Where a chapter's notebook can be opened, besides downloading it.

Jupyter Book's own settings in _config.yml say it:

    repository:
      url: https://github.com/NAME/COURSE
      branch: main
    launch_buttons:
      colab_url: https://colab.research.google.com
      binderhub_url: https://mybinder.org
      jupyterhub_url: https://jupyter.example.org

Without a repository there is the download alone. The theme would make its own buttons
of these settings, for the pages' sources; links to the notebooks take their place.
"""

from urllib.parse import quote, urlsplit

SERVICES = {
    "colab_url": "Colab",
    "binderhub_url": "Binder",
    "jupyterhub_url": "JupyterHub",
}
HOSTS = {"github.com": "gh", "gitlab.com": "gl"}  # as Binder calls them


def take_over(_app, config) -> None:
    """Keep the services' addresses for ourselves; the theme then adds no buttons."""
    buttons = config.html_theme_options.get("launch_buttons") or {}
    services = {key: buttons.pop(key) for key in SERVICES if buttons.get(key)}
    if services:
        config.html_theme_options["course_services"] = services


def links(config, chapter: str) -> list[tuple[str, str]]:
    """Give names and addresses of the services that can open a chapter's notebook."""
    options = config.html_theme_options
    repository = (options.get("repository_url") or "").rstrip("/").removesuffix(".git")
    services = options.get("course_services", {})
    if not repository or not services:
        return []
    branch = options.get("repository_branch") or "main"
    folder = (options.get("path_to_docs") or "").strip("/")
    notebook = f"exercises/{chapter}/{chapter}.ipynb"
    path = f"{folder}/{notebook}" if folder else notebook
    found = [
        (SERVICES[key], address(key, base.rstrip("/"), repository, branch, path))
        for key, base in services.items()
    ]
    return [(name, where) for name, where in found if where]


def address(service: str, base: str, repository: str, branch: str, path: str):
    """Give the address of a notebook at a service, or None where it cannot open it."""
    host = HOSTS.get(urlsplit(repository).netloc)
    project = urlsplit(repository).path.strip("/")
    if service == "colab_url":
        if host != "gh":
            return None
        return f"{base}/github/{project}/blob/{quote(branch, safe='')}/{path}"
    if service == "binderhub_url":
        if host is None:
            return None
        where = project if host == "gh" else quote(project, safe="")
        inside = quote(f"lab/tree/{path}")
        return f"{base}/v2/{host}/{where}/{quote(branch, safe='')}?urlpath={inside}"
    inside = quote(f"lab/tree/{project.rsplit('/', 1)[-1]}/{path}", safe="")
    return (
        f"{base}/hub/user-redirect/git-pull?repo={quote(repository, safe='')}"
        f"&branch={quote(branch, safe='')}&urlpath={inside}"
    )
