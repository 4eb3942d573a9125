"""The file was saved in UTF-16."""


def change(notebook):
    return json.dumps(notebook, ensure_ascii=False).encode("utf-16")
