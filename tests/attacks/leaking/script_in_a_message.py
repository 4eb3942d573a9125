"""Raises an error whose text is a script, for whoever opens the feedback."""
# exercise: softmax
# where: answer


def softmax(scores):
    raise ValueError("</pre><script>alert('attack-was-here')</script>")
