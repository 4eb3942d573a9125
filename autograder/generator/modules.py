"""From the answers of a text notebook to the reference module of its chapter."""

import ast

from autograder.generator.source import BEGIN_SOLUTION, END_SOLUTION, Cell, Source

PACKAGE = '''"""The reference modules: the parts of the model, as the exercises ask for.

Generated from solutions/*.md by `make exercises`; change those.
"""
'''


def reference_module(source: Source) -> str:
    """Extract what belongs to the model: marked given cells and answers, in order."""
    parts = [
        f'"""{source.title}: the answers to the exercises of chapter '
        f"{source.header['number']}.\n\n"
        f"Generated from solutions/{source.path.name} by `make exercises`; "
        f'change that file.\n"""'
    ]
    titles = {exercise.name: exercise.title for exercise in source.exercises}
    for cell in source.cells:
        if belongs_to_module(cell):
            text = without_markers(cell.text)
            if cell.kind == "answer":
                text = say_where_defined(text, titles[cell.options["exercise"]])
            parts.append(text.strip())
    return "\n\n".join([parts[0], "\n\n\n".join(parts[1:])]).strip() + "\n"


def belongs_to_module(cell: Cell) -> bool:
    """Whether a cell is a part of the model."""
    return cell.options.get("module", cell.kind == "answer")


def has_module(source: Source) -> bool:
    """Whether a chapter has parts of the model; that of a project uses all others'.

    A sheet has a module only if all its exercises are of one chapter.
    """
    return bool(source.module) and any(belongs_to_module(cell) for cell in source.cells)


def without_markers(text: str) -> str:
    """Drop the lines that mark a solution region, keeping what is between them."""
    markers = (BEGIN_SOLUTION, END_SOLUTION)
    return "\n".join(line for line in text.splitlines() if line.strip() not in markers)


def say_where_defined(text: str, title: str) -> str:
    """Add to the docstring of each top-level definition the exercise it comes from."""
    lines = text.splitlines()
    for node in reversed(ast.parse(text).body):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(
            node
        ):
            literal = node.body[0].value
            last = literal.end_lineno - 1
            indent = " " * literal.col_offset
            closed = lines[last].rstrip().removesuffix('"""').rstrip()
            end = [f"{indent}Defined in {title}.", f'{indent}"""']
            lines[last : last + 1] = ([closed] if closed else []) + ["", *end]
    return "\n".join(lines)
