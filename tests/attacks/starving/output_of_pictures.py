"""Shows ten thousand pictures."""
# exercise: softmax
# where: answer
# status: any

from IPython.display import Image, display

picture = Image(data=b"\x89PNG\r\n\x1a\n" + bytes(100_000), format="png")
for _ in range(10_000):
    display(picture)
