"""Opens files until no more can be opened."""
# exercise: softmax
# where: answer

kept = []
while True:
    kept.append(open("/dev/null"))
