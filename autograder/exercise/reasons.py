"""What is said in running text below a mistake's name, in the order of reading."""


def reasons(
    *,
    alternatives: str = "",
    hint: str = "",
    why: str = "",
    besides: str = "",
    look: str = "",
) -> list[str]:
    """Return the paragraphs; each argument is "" if there is nothing of its kind.

    Args:
        alternatives: other names that explain the same answers.
        hint: what relates the answers to what is right.
        why: the reason, and what to do.
        besides: a second slip, with its reason.
        look: the line of the student's own code, and what to look at.
    """
    said = [
        f"It may as well be: {alternatives}." if alternatives else "",
        hint,
        *why.split("\n"),
        f"And a second slip: {besides}" if besides else "",
        f"{look[0].upper()}{look[1:]}." if look else "",
    ]
    return [text for text in said if text]
