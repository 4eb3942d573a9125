"""Uses names of Python's own for its variables."""
# exercise: softmax
# where: before

list = [1, 2]
str = "text"
type = "kind"
sum = len = max = 3
id = input = dict = None
